#include "tools/bundle_directory.h"

#include <fmt/format.h>

#include "spyre/base/file.h"
#include "spyre/base/json.h"
#include "spyre/program/fields.h"
#include "spyre/program/image.h"
#include "spyre/program/launch_spec.h"
#include "spyre/runtime/bundle_parts.h"
#include "spyre/runtime/spyre_code.h"

namespace spyre::tools {
namespace {

namespace fs = std::filesystem;

Result<Json> read_object(const fs::path& path) {
  SPYRE_ASSIGN_OR_RETURN(const std::string text, read_text(path));
  return program::parse_bounded_json(text, path.filename().string());
}

/// The files of the init transfers.
Result<std::vector<std::string>> load_binaries(const fs::path& directory, const SpyreCode& code) {
  std::vector<std::string> binaries;
  for (const InitTransfer& init : code.init) {
    SPYRE_ASSIGN_OR_RETURN(std::string bytes, read_file(directory / init.file, init.size.count()));
    if (static_cast<int64_t>(bytes.size()) != init.size.count()) {
      return Error(ErrorKind::kInvalidArgument,
                   fmt::format("{}: found {} bytes, allowed: {}, as spyrecode.json says", init.file,
                               bytes.size(), init.size.count()));
    }
    binaries.push_back(std::move(bytes));
  }
  return binaries;
}

}  // namespace

Result<BundleDirectory> open_bundle(const fs::path& path) {
  BundleDirectory bundle;
  std::error_code failure;
  bundle.code = fs::exists(path / "spyreCodeDir", failure) ? path / "spyreCodeDir" : path;
  SPYRE_ASSIGN_OR_RETURN(const Json plan, read_object(bundle.code / "spyrecode.json"));
  SPYRE_ASSIGN_OR_RETURN(const SpyreCode code, read_spyre_code(plan, "spyrecode.json", spyre_card()));
  SPYRE_ASSIGN_OR_RETURN(const Json launch, read_object(bundle.code / "launch_spec.json"));
  SPYRE_ASSIGN_OR_RETURN(bundle.launch, program::read_launch_spec(launch, "launch_spec.json"));
  SPYRE_ASSIGN_OR_RETURN(const std::vector<std::string> binaries, load_binaries(bundle.code, code));
  SPYRE_TRY(check_parts(bundle.code, plan, code, binaries));
  for (const JobStep& step : code.steps) {
    if (const auto* compute = std::get_if<Compute>(&step.what)) {
      SPYRE_ASSIGN_OR_RETURN(bundle.program,
                             program::read_image_program(bytes_from(compute->entry, code, binaries)));
    }
  }
  return bundle;
}

std::map<std::string, program::OpOrigin> origins_in(const fs::path& path, int part) {
  std::map<std::string, program::OpOrigin> origins;
  const fs::path folder = part < 0 ? path : path / fmt::format("bundle_{}", part);
  std::error_code failure;
  for (const fs::directory_entry& file : fs::directory_iterator(folder, failure)) {
    const std::string name = file.path().filename().string();
    if (!name.starts_with("sdsc_") || !name.ends_with(".json")) continue;
    const Result<std::string> text = read_text(file.path());
    if (text.ok()) origins[name] = program::origin_in(text.value());
  }
  return origins;
}

}  // namespace spyre::tools
