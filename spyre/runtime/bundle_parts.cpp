#include "spyre/runtime/bundle_parts.h"

#include <fmt/format.h>

#include "spyre/base/json.h"
#include "spyre/program/fields.h"
#include "spyre/program/image.h"
#include "spyre/program/launch_spec.h"

namespace spyre {
namespace {

namespace fs = std::filesystem;

constexpr const char* kCodeDirectory = "spyreCodeDir";
constexpr const char* kLaunchSpec = "launch_spec.json";
constexpr const char* kBundle = "bundle.mlir";

Error differ(const fs::path& part, const fs::path& other, std::string_view how) {
  return Error(ErrorKind::kInvalidArgument, fmt::format("{} and {} {}", part.string(), other.string(), how))
      .note("the parts of a bundle say the same; one of them was changed after they were written")
      .try_instead("writing the bundle again");
}

bool is_there(const fs::path& path) {
  std::error_code failure;
  return fs::exists(path, failure);
}

bool is_sdsc(const std::string& name) {
  return name.starts_with("sdsc_") && name.ends_with(".json");
}

/// The parameters of each bundle, as spyrecode.json repeats them.
std::vector<Json> stated_parameters(const Json& plan) {
  std::vector<Json> all;
  for (const Json& command : plan.value("JobExecPlan", Json::array())) {
    const Json::json_pointer path("/properties/hcm/vdci/parameters");
    if (command.is_object() && command.contains(path)) all.push_back(command.at(path));
  }
  return all;
}

/// One bundle of a directory: its image against the files around it.
class PartRules {
 public:
  PartRules(const fs::path& code, const fs::path& folder, const program::ProgramImage& image)
      : code_(code), folder_(folder), image_(image), binary_(code / "init_binary.bin") {}

  Status check(bool alone, const Json* parameters) const {
    for (const auto& [name, text] : image_.files) {
      if (name.find('/') != std::string::npos) continue;  // no name that a bundle has
      const bool with_code = alone && name == kLaunchSpec;
      SPYRE_TRY(same_text((with_code ? code_ : folder_) / name, text, with_code));
    }
    SPYRE_TRY(no_others());
    SPYRE_TRY(same_arguments());
    return same_parameters(parameters);
  }

 private:
  Status same_text(const fs::path& path, const std::string& text, bool with_code) const {
    if (!is_there(path)) {
      const bool alone = with_code || !is_there(folder_ / kBundle);
      return alone ? Status() : Status(differ(path, binary_, "differ: the first is missing"));
    }
    SPYRE_ASSIGN_OR_RETURN(const std::string found, read_text(path));
    return found == text ? Status() : Status(differ(path, binary_, "differ"));
  }

  Status no_others() const {
    std::error_code failure;
    fs::directory_iterator entry(folder_, failure), end;
    for (; !failure && entry != end; entry.increment(failure)) {
      const std::string name = entry->path().filename().string();
      if (is_sdsc(name) && !image_.files.contains(name)) {
        return differ(entry->path(), binary_, "differ: the second has no such file");
      }
    }
    return Status();
  }

  /// Of several bundles each has its own launch specification; what the caller passes is one.
  Status same_arguments() const {
    const fs::path path = code_ / kLaunchSpec;
    const auto own = image_.files.find(kLaunchSpec);
    if (own == image_.files.end() || !is_there(path)) return Status();
    SPYRE_ASSIGN_OR_RETURN(const std::string text, read_text(path));
    SPYRE_ASSIGN_OR_RETURN(const program::LaunchSpec stated, read_spec(text, path.string()));
    SPYRE_ASSIGN_OR_RETURN(const program::LaunchSpec run, read_spec(own->second, kLaunchSpec));
    return stated == run ? Status() : Status(differ(path, binary_, "differ in what the caller passes"));
  }

  static Result<program::LaunchSpec> read_spec(const std::string& text, const std::string& file) {
    SPYRE_ASSIGN_OR_RETURN(const Json json, program::parse_bounded_json(text, file));
    return program::read_launch_spec(json, file);
  }

  Status same_parameters(const Json* parameters) const {
    const auto own = image_.files.find(kLaunchSpec);
    if (own == image_.files.end()) return Status();
    SPYRE_ASSIGN_OR_RETURN(const Json spec, program::parse_bounded_json(own->second, kLaunchSpec));
    const auto kinds = spec.find("symbol_kinds");
    if (kinds == spec.end()) return Status();
    if (parameters != nullptr && *parameters != *kinds) {
      return differ(code_ / "spyrecode.json", binary_, "differ in the parameters of the bundle");
    }
    const fs::path path = folder_ / "symbol_kinds.json";
    if (!is_there(path)) return Status();
    SPYRE_ASSIGN_OR_RETURN(const std::string text, read_text(path));
    SPYRE_ASSIGN_OR_RETURN(const Json beside, program::parse_bounded_json(text, path.string()));
    return beside == *kinds ? Status() : Status(differ(path, binary_, "differ"));
  }

  const fs::path& code_;
  const fs::path& folder_;
  const program::ProgramImage& image_;
  const fs::path binary_;
};

}  // namespace

std::span<const std::byte> bytes_from(Bytes entry, const SpyreCode& code,
                                      std::span<const std::string> binaries) {
  for (size_t i = binaries.size(); i-- > 0;) {  // the last one wins
    const InitTransfer& init = code.init[i];
    if (entry < init.offset || entry >= init.offset + init.size) continue;
    return std::as_bytes(std::span(binaries[i])).subspan(static_cast<size_t>((entry - init.offset).count()));
  }
  return {};
}

Status check_parts(const fs::path& code_directory, const Json& plan, const SpyreCode& code,
                   std::span<const std::string> binaries) {
  const fs::path directory = (code_directory / "").parent_path();  // without a slash at the end
  std::vector<program::ProgramImage> images;
  for (const JobStep& step : code.steps) {
    const auto* compute = std::get_if<Compute>(&step.what);
    if (compute == nullptr) continue;
    Result<program::ProgramImage> image = program::read_image(bytes_from(compute->entry, code, binaries));
    if (!image.ok()) return Status();
    images.push_back(std::move(image).value());
  }
  const std::vector<Json> parameters = stated_parameters(plan);
  // Of a spyreCodeDir that is not in a compile directory, only its own files are its parts.
  const bool inside = directory.filename() == kCodeDirectory;
  const fs::path around = inside ? directory.parent_path() : directory;
  for (size_t i = 0; i < images.size(); ++i) {
    const bool alone = images.size() == 1;
    const fs::path folder = alone ? around : around / fmt::format("bundle_{}", i);
    const bool stated = parameters.size() == images.size();
    SPYRE_TRY(PartRules(directory, folder, images[i]).check(alone, stated ? &parameters[i] : nullptr));
  }
  return Status();
}

}  // namespace spyre
