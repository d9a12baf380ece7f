// `torch_spyre._C._progress`: what a compilation does, for whoever waits. _inductor/progress.py is its one caller.

#include <unistd.h>

#include "glue/bindings.h"
#include "glue/error.h"
#include "glue/progress.h"
#include "spyre/driver/terminal.h"

namespace spyre::glue {

ProgressLine* progress_line() {
  static ProgressLine* const line = []() -> ProgressLine* {
    Result<std::optional<ProgressLine::Screen>> screen = progress_screen(STDERR_FILENO);
    if (!screen.ok() || !screen.value()) return nullptr;
    return new ProgressLine(*std::move(screen).value());  // never destroyed: its thread may outlive `exit`
  }();
  return line;
}

void bind_progress(py::module& module) {
  py::module progress = module.def_submodule("_progress", "What a compilation does, shown on stderr.");
  const auto tell = [](auto what) {
    if (ProgressLine* const line = progress_line()) what(*line);
  };
  progress.def("is_shown", [] { return progress_line() != nullptr; });
  progress.def("begin", [tell] { tell([](ProgressLine& line) { line.begin(); }); });
  progress.def("end", [tell] { tell([](ProgressLine& line) { line.end(); }); });
  progress.def(
      "now",
      [tell](std::string what, std::string step) {
        tell([&](ProgressLine& line) { line.now(std::move(what), std::move(step)); });
      },
      py::arg("what"), py::arg("step") = "");
  progress.def("erase", [tell] { tell([](ProgressLine& line) { line.erase(); }); });
  progress.def(
      "others_wrote", [tell](bool ended) { tell([&](ProgressLine& line) { line.others_wrote(ended); }); },
      py::arg("line_ended"));
}

}  // namespace spyre::glue
