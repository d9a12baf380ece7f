// spyre-bundle: reads a kernel in OpSpec text form and writes its compile directory.

#include <CLI/CLI.hpp>
#include <cstdio>

#include "spyre/base/json.h"
#include "spyre/codegen/superdsc/save_bundle.h"
#include "spyre/opspec/text.h"

namespace {

spyre::Status run(const std::string& input, const std::string& output, const spyre::BundleOptions& options,
                  bool force) {
  SPYRE_ASSIGN_OR_RETURN(const std::string text, spyre::read_text(input));
  SPYRE_ASSIGN_OR_RETURN(const spyre::Kernel kernel, spyre::parse_kernel(text, input));
  SPYRE_ASSIGN_OR_RETURN(const spyre::Bundle bundle, spyre::write_bundle(kernel, options));
  SPYRE_TRY(spyre::save_bundle(bundle, output, force ? spyre::Overwrite::kForce : spyre::Overwrite::kOurs));
  for (const auto& [name, content] : bundle.files) std::printf("%8zu  %s\n", content.size(), name.c_str());
  return spyre::Status();
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Writes the artifacts of a kernel: bundle.mlir, sdsc_N.json, launch spec and program image.",
               "spyre-bundle");
  std::string input;
  std::string output;
  bool force = false;
  spyre::BundleOptions options;
  app.add_option("kernel", input, "Kernel in OpSpec text form")->required()->check(CLI::ExistingFile);
  app.add_option("-o,--output", output, "Compile directory to write: new, empty, or one written before")
      ->required();
  app.add_flag("--force", force, "Write into any folder; only files of a bundle are replaced or removed");
  app.add_flag("--frontend-pool", options.frontend_pool_allocation,
               "The caller passes the pool as argument 0");
  app.add_flag("!--no-share", options.share_equal_sdscs, "Write one sdsc file per op, even for equal ones");
  CLI11_PARSE(app, argc, argv);
  const spyre::Status status = run(input, output, options, force);
  if (status.ok()) return 0;
  std::fprintf(stderr, "error: %s\n", status.error().to_string().c_str());
  return 1;
}
