#include "tools/bundle_directory.h"

#include <fmt/format.h>

#include "spyre/program/fields.h"
#include "spyre/program/image.h"
#include "spyre/program/launch_spec.h"
#include "spyre/runtime/spyre_code.h"

namespace spyre::tools {
namespace {

namespace fs = std::filesystem;

Result<Json> read_object(const fs::path& path) {
  SPYRE_ASSIGN_OR_RETURN(const std::string text, read_text(path));
  return program::parse_bounded_json(text, path.filename().string());
}

/// The program region as the InitTransfers leave it.
Result<std::string> load_region(const fs::path& directory, const SpyreCode& code) {
  std::string region;
  for (const InitTransfer& init : code.init) {
    SPYRE_ASSIGN_OR_RETURN(const std::string bytes, read_text(directory / init.file));
    if (static_cast<int64_t>(bytes.size()) != init.size.count()) {
      return Error(ErrorKind::kInvalidArgument,
                   fmt::format("{}: found {} bytes, allowed: {}, as spyrecode.json says", init.file,
                               bytes.size(), init.size.count()));
    }
    const auto end = static_cast<size_t>((init.offset + init.size).count());
    region.resize(std::max(region.size(), end), '\0');
    region.replace(static_cast<size_t>(init.offset.count()), bytes.size(), bytes);
  }
  return region;
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
  SPYRE_ASSIGN_OR_RETURN(const std::string region, load_region(bundle.code, code));
  for (const JobStep& step : code.steps) {
    if (const auto* compute = std::get_if<Compute>(&step.what)) {
      const auto entry = std::min(static_cast<size_t>(compute->entry.count()), region.size());
      SPYRE_ASSIGN_OR_RETURN(bundle.program,
                             program::read_image_program(std::as_bytes(std::span(region)).subspan(entry)));
    }
  }
  return bundle;
}

}  // namespace spyre::tools
