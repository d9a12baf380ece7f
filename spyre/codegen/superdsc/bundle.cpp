#include "spyre/codegen/superdsc/bundle.h"

#include <fmt/format.h>

#include <utility>

#include "spyre/base/json.h"
#include "spyre/base/thread_pool.h"
#include "spyre/codegen/superdsc/bundle_program.h"
#include "spyre/codegen/superdsc/pretty_json.h"
#include "spyre/opspec/validate.h"

namespace spyre {
namespace {

constexpr const char* kLaunchSpec = "launch_spec.json";

// What the card gets: the bundle itself, and the layouts that readers use to check it.
std::map<std::string, std::string> texts_of(const Kernel& kernel, const superdsc::BundleProgram& program) {
  std::map<std::string, std::string> texts;
  texts["bundle.mlir"] = bundle_mlir(program);
  std::vector<std::string> files(program.files.size());
  parallel_for(std::ssize(files), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) files[i] = superdsc::pretty_json(program.files[i]);
  });
  for (size_t i = 0; i < files.size(); ++i) texts[fmt::format("sdsc_{}.json", i)] = std::move(files[i]);
  texts[kLaunchSpec] = superdsc::pretty_json(launch_spec_json(kernel, program));
  return texts;
}

// What is wrong with an item of a part, which starts at `first`, is wrong with that item of the kernel.
Error in_kernel(Error error, size_t first) {
  if (error.item) *error.item += first;
  return error;
}

}  // namespace

Result<Bundle> write_bundle(const Kernel& kernel, const BundleOptions& asked) {
  BundleOptions options = asked;
  if (options.parts.empty()) options.parts.push_back({.items = kernel.body.size()});
  const bool several = options.parts.size() > 1;
  options.frontend_pool_allocation = options.frontend_pool_allocation || several;
  SPYRE_TRY(validate(kernel, options.machine));
  Bundle bundle;
  std::string region;
  std::vector<superdsc::LoadedPart> loaded;
  auto first = kernel.body.begin();
  for (size_t i = 0; i < options.parts.size(); ++i) {
    const BundlePart& part = options.parts[i];
    SPYRE_CHECK(std::cmp_less_equal(part.items, kernel.body.end() - first), "the parts fit the kernel");
    const auto last = first + static_cast<std::ptrdiff_t>(part.items);
    const Kernel alone{.name = kernel.name,
                       .pool_bytes = kernel.pool_bytes,
                       .arguments = kernel.arguments,
                       .body = std::vector<KernelItem>(first, last)};
    Result<superdsc::BundleProgram> built = superdsc::build_program(alone, options);
    if (!built.ok()) return in_kernel(built.error(), static_cast<size_t>(first - kernel.body.begin()));
    superdsc::BundleProgram program = std::move(built).value();
    first = last;
    std::map<std::string, std::string> texts = texts_of(alone, program);
    const std::string folder = several ? fmt::format("bundle_{}/", i) : "";
    for (const auto& [name, text] : texts) {
      if (several || name != kLaunchSpec) bundle.files[folder + name] = text;
    }
    bundle.files[folder + "symbol_kinds.json"] = superdsc::pretty_json(symbol_kinds_json(program));
    const auto offset = static_cast<int64_t>(region.size());
    region += program_image(program, texts);
    loaded.push_back({std::move(program), offset, part.non_terminal});
  }
  SPYRE_CHECK(first == kernel.body.end(), "the parts are the whole kernel");
  Json launch_spec = launch_spec_json(kernel, loaded.front().program);
  if (several) launch_spec.erase("symbols"), launch_spec.erase("symbol_kinds");  // each bundle has its own
  bundle.files[fmt::format("spyreCodeDir/{}", kLaunchSpec)] = superdsc::pretty_json(launch_spec);
  bundle.files["spyreCodeDir/spyrecode.json"] = superdsc::pretty_json(
      spyre_code_json(loaded, options.machine, static_cast<int64_t>(region.size()),
                      kernel.arguments.size() + (loaded.front().program.pool_is_parameter ? 1 : 0)));
  bundle.files["spyreCodeDir/init_binary.bin"] = std::move(region);
  return bundle;
}

}  // namespace spyre
