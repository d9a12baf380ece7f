#include "glue/bindings.h"

PYBIND11_MODULE(_C, module) {
  module.doc() = "The C++ side of torch_spyre.";
  module.attr("__version__") = SPYRE_VERSION;
  module.attr("__revision__") = SPYRE_REVISION;
  module.attr("__torch_version__") = SPYRE_TORCH_VERSION;
  spyre::glue::bind_errors(module);
  spyre::glue::bind_layout(module);
  spyre::glue::bind_tensor(module);
  spyre::glue::bind_device(module);
  spyre::glue::bind_compile(module);
  spyre::glue::bind_launch(module);
  spyre::glue::bind_opspec(module);
  spyre::glue::bind_progress(module);
  spyre::glue::bind_logging(module);
  spyre::glue::bind_memory(module);
  spyre::glue::bind_profile(module);
  spyre::glue::bind_forms(module);
}
