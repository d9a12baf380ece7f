#include "spyre/codegen/superdsc/bundle.h"

#include <fmt/format.h>
#include <unistd.h>

#include "spyre/codegen/superdsc/bundle_program.h"
#include "spyre/codegen/superdsc/pretty_json.h"
#include "spyre/opspec/validate.h"

namespace spyre {
namespace {

Status failed(const std::filesystem::path& path, std::string_view what, const std::error_code& why) {
  return Error(ErrorKind::kNotFound, fmt::format("{}: {}: {}", path.string(), what, why.message()));
}

Status write_files(const Bundle& bundle, const std::filesystem::path& directory) {
  for (const auto& [name, text] : bundle.files) {
    std::error_code failure;
    std::filesystem::create_directories((directory / name).parent_path(), failure);
    if (failure) return failed(directory, "cannot be created", failure);
    SPYRE_TRY(write_text(directory / name, text));
  }
  return Status();
}

}  // namespace

Result<Bundle> write_bundle(const Kernel& kernel, const BundleOptions& options) {
  SPYRE_TRY(validate(kernel, options.machine));
  SPYRE_ASSIGN_OR_RETURN(const superdsc::BundleProgram program, superdsc::build_program(kernel, options));
  Bundle bundle;
  bundle.files["bundle.mlir"] = bundle_mlir(program);
  for (size_t i = 0; i < program.files.size(); ++i) {
    bundle.files[fmt::format("sdsc_{}.json", i)] = superdsc::pretty_json(program.files[i]);
  }
  const std::string launch_spec = superdsc::pretty_json(launch_spec_json(kernel, program));
  // The card gets what the bundle is made of, and the layouts that readers use to check it.
  std::map<std::string, std::string> image_texts = bundle.files;
  image_texts["launch_spec.json"] = launch_spec;
  const std::string image = program_image(program, image_texts);
  const size_t launch_tensors = kernel.arguments.size() + (program.pool_is_parameter ? 1 : 0);
  bundle.files["symbol_kinds.json"] = superdsc::pretty_json(symbol_kinds_json(program));
  bundle.files["spyreCodeDir/launch_spec.json"] = launch_spec;
  bundle.files["spyreCodeDir/spyrecode.json"] = superdsc::pretty_json(
      spyre_code_json(program, options.machine, static_cast<int64_t>(image.size()), launch_tensors));
  bundle.files["spyreCodeDir/init_binary.bin"] = image;
  return bundle;
}

Status save_bundle(const Bundle& bundle, const std::filesystem::path& directory) {
  const std::filesystem::path fresh = fmt::format("{}.new{}", directory.string(), ::getpid());
  const std::filesystem::path stale = fmt::format("{}.old{}", directory.string(), ::getpid());
  SPYRE_TRY(write_files(bundle, fresh));
  std::error_code failure;
  if (std::filesystem::exists(directory)) {
    std::filesystem::rename(directory, stale, failure);
    if (failure) return failed(directory, "cannot be replaced", failure);
  }
  std::filesystem::rename(fresh, directory, failure);
  if (failure) return failed(directory, "cannot be put in place", failure);
  std::filesystem::remove_all(stale, failure);
  return failure ? failed(stale, "cannot be removed", failure) : Status();
}

}  // namespace spyre
