// The compiler for Python: graph text in, something that runs out.

#include <unistd.h>

#include <cstdio>

#include "glue/bindings.h"
#include "glue/compiled_kernel.h"
#include "glue/error.h"
#include "spyre/base/json.h"
#include "spyre/base/log.h"
#include "spyre/codegen/superdsc/save_bundle.h"
#include "spyre/driver/explain.h"
#include "spyre/driver/progress_line.h"
#include "spyre/opspec/text.h"
#include "spyre/report/plan_page.h"

namespace spyre::glue {
namespace {

using KernelRef = std::shared_ptr<CompiledKernel>;

// To whoever sits at a terminal, else to the log.
void show_progress(const std::string& line) {
  if (isatty(STDERR_FILENO) != 0) {
    std::fprintf(stderr, "spyre: %s\n", line.c_str());
  } else {
    log(LogLevel::kInfo, "driver", line);
  }
}

KernelRef compile_text(const std::string& text) {
  const py::gil_scoped_release release;
  Graph graph = unwrap(parse_graph(text, "graph"));
  const CompileOptions options = unwrap(CompileOptions::from_environment());
  PassLog passes;
  passes.on_progress(ProgressLine(graph.name, show_progress));
  return std::make_shared<CompiledKernel>(unwrap(compile(std::move(graph), options, passes)));
}

void run(CompiledKernel& kernel, const std::vector<at::Tensor>& inputs,
         const std::vector<at::Tensor>& outputs) {
  const py::gil_scoped_release release;
  kernel.run(inputs, outputs);
}

void save(const CompiledKernel& kernel, const std::string& directory, const std::string& graph) {
  const py::gil_scoped_release release;
  Bundle bundle = kernel.compiled().bundle;
  bundle.files["graph.ir"] = graph;
  bundle.files["kernel.opspec"] = to_text(kernel.compiled().kernel);
  check(save_bundle(bundle, directory));
}

// The facts of the scratchpad plan as JSON text.
std::string plan_facts(const CompiledKernel& kernel) {
  const py::gil_scoped_release release;
  return unwrap(explain(kernel.compiled())).dump();
}

std::string plan_page(const CompiledKernel& kernel) {
  const py::gil_scoped_release release;
  return report::plan_page(unwrap(explain(kernel.compiled())));
}

}  // namespace

void bind_compile(py::module& module) {
  py::class_<CompiledKernel, KernelRef>(module, "CompiledKernel", "A graph compiled for the card.")
      .def_property_readonly("inputs", [](const CompiledKernel& k) { return k.input_names(); })
      .def_property_readonly("outputs", [](const CompiledKernel& k) { return k.output_names(); })
      .def_property_readonly(
          "text", [](const CompiledKernel& k) { return to_text(k.compiled().graph); },
          "The graph after all passes.")
      .def_property_readonly(
          "opspec", [](const CompiledKernel& k) { return k.compiled().kernel; },
          "Its operations with everything decided, a Kernel; as text: str(...).")
      .def_property_readonly(
          "files",
          [](const CompiledKernel& k) {
            py::dict files;
            for (const auto& [name, content] : k.compiled().bundle.files) {
              files[py::str(name)] = py::bytes(content);
            }
            return files;
          },
          "The bundle, by file name.")
      .def(
          "output_layout",
          [](const CompiledKernel& k, const std::string& name) { return k.argument(name).layout; },
          py::arg("name"), "The device layout of an argument.")
      .def("run", &run, py::arg("inputs"), py::arg("outputs"), "Queues one run on the current stream.")
      .def(
          "plan", [](CompiledKernel& k, c10::DeviceIndex device) { return k.plan(device); },
          py::arg("device") = 0, py::call_guard<py::gil_scoped_release>())
      .def_property_readonly(
          "refused_hints",
          [](const CompiledKernel& k) {
            std::vector<std::string> reasons;
            for (const RefusedHint& hint : k.compiled().refused_hints) {
              reasons.push_back(hint.reason);
            }
            return reasons;
          },
          "Why wished splits were not followed.")
      .def_property_readonly(
          "planned", [](const CompiledKernel& k) { return k.compiled().options.lx_planning; },
          "Whether it was compiled with LX planning.")
      .def(
          "compulsory_bytes",
          [](const CompiledKernel& k) { return unwrap(compulsory_traffic(k.compiled())).count(); },
          "Device memory traffic that no plan avoids.")
      .def("plan_facts", &plan_facts, "The scratchpad plan and what there is to know about it, as JSON text.")
      .def("plan_page", &plan_page, "The same as one HTML page.")
      .def("save", &save, py::arg("directory"), py::arg("graph"),
           "Writes the bundle, the graph it was compiled from and its operations (kernel.opspec) as a "
           "directory.");
  module.def("compile_graph", &compile_text, py::arg("text"), "Compiles a graph in text form for the card.");
}

}  // namespace spyre::glue
