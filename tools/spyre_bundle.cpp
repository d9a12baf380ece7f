// spyre-bundle: reads a kernel in OpSpec text form and writes its compile directory.

#include <CLI/CLI.hpp>
#include <cstdio>

#include "spyre/base/json.h"
#include "spyre/codegen/superdsc/save_bundle.h"
#include "spyre/opspec/text.h"
#include "tools/exit_code.h"

namespace {

using namespace spyre;

int run(const std::string& input, const std::string& output, const BundleOptions& options, bool force) {
  const Result<std::string> text = read_text(input);
  if (!text.ok()) return tools::report(text.error(), tools::kBadUsage);
  const Result<Kernel> kernel = parse_kernel(text.value(), input);
  if (!kernel.ok()) return tools::report(kernel.error(), tools::kBadArtifact);
  const Result<Bundle> bundle = write_bundle(kernel.value(), options);
  if (!bundle.ok()) return tools::report(bundle.error(), tools::kBadArtifact);
  const Status saved = save_bundle(bundle.value(), output, force ? Overwrite::kForce : Overwrite::kOurs);
  if (!saved.ok()) return tools::report(saved.error(), tools::kBadUsage);
  for (const auto& [name, content] : bundle.value().files)
    std::printf("%8zu  %s\n", content.size(), name.c_str());
  return tools::kDone;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app(
      "Writes the artifacts of a kernel: bundle.mlir, sdsc_N.json, launch spec and program image. Exit "
      "codes: 0 done, "
      "1 command line or files, 2 the kernel is refused, 4 bug.",
      "spyre-bundle");
  std::string input;
  std::string output;
  bool force = false;
  BundleOptions options;
  app.add_option("kernel", input, "Kernel in OpSpec text form")->required()->check(CLI::ExistingFile);
  app.add_option("-o,--output", output, "Compile directory to write: new, empty, or one written before")
      ->required();
  app.add_flag("--force", force, "Write into any folder; only files of a bundle are replaced or removed");
  app.add_flag("--frontend-pool", options.frontend_pool_allocation,
               "The caller passes the pool as argument 0");
  app.add_flag("!--no-share", options.share_equal_sdscs, "Write one sdsc file per op, even for equal ones");
  CLI11_PARSE(app, argc, argv);
  return tools::guarded_main([&] { return run(input, output, options, force); });
}
