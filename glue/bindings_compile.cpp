// The compiler for Python: graph text in, something that runs out.

#include <algorithm>

#include "glue/bindings.h"
#include "glue/compiled_kernel.h"
#include "glue/error.h"
#include "glue/kernel_facts.h"
#include "glue/precompiled.h"
#include "glue/progress.h"
#include "spyre/base/json.h"
#include "spyre/base/log.h"
#include "spyre/base/settings.h"
#include "spyre/codegen/superdsc/save_bundle.h"
#include "spyre/driver/explain.h"
#include "spyre/driver/pass.h"
#include "spyre/forms/expand.h"
#include "spyre/opspec/text.h"
#include "spyre/report/compare_facts.h"
#include "spyre/report/compare_page.h"
#include "spyre/report/plan_page.h"

namespace spyre::glue {
namespace {

using KernelRef = std::shared_ptr<CompiledKernel>;

template <typename T>
T accepted(Result<T> result) {
  if (!result.ok()) {
    throw CompileRefused(result.error());
  }
  return std::move(result).value();
}

SettingValue setting_of(const py::handle& value) {
  if (py::isinstance<py::bool_>(value)) return value.cast<bool>();
  if (py::isinstance<py::int_>(value)) return value.cast<int64_t>();
  if (py::isinstance<py::float_>(value)) return value.cast<double>();
  return value.cast<std::string>();
}

// By the names of torch_spyre._inductor.config; what is not named is as the environment says.
CompileOptions options_of(const py::kwargs& named) {
  SettingValues settings;
  for (const auto& [key, value] : named) {
    const auto name = key.cast<std::string>();
    const auto row = std::ranges::find(all_settings(), name, &Setting::config);
    if (name.empty() || row == all_settings().end()) {
      throw py::type_error("CompileOptions has no option '" + name + "'");
    }
    check(settings.set(row->name, setting_of(value)));
  }
  return unwrap(CompileOptions::from_settings(settings));
}

KernelRef compile_text(const std::string& text, const std::optional<CompileOptions>& asked) {
  const py::gil_scoped_release release;
  const CompileOptions options = asked ? *asked : unwrap(CompileOptions::from_environment());
  Graph graph = accepted(parse_graph(text, "graph"));
  note_compilation(graph, Compiles::kProgram);
  PassLog passes;
  const ProgressScope scope("compiling " + graph.name);
  if (ProgressLine* const line = progress_line()) {
    passes.on_progress([line](std::string_view pass, int64_t plans) { line->pass(pass, plans); });
  }
  return std::make_shared<CompiledKernel>(accepted(compile(std::move(graph), options, passes)));
}

KernelRef read_kernel(const std::map<std::string, std::string>& files, const std::vector<std::string>& inputs,
                      const std::vector<std::string>& outputs, const ArgumentBounds& bounds) {
  const py::gil_scoped_release release;
  return std::make_shared<CompiledKernel>(unwrap(read_artifact({.files = files}, inputs, outputs, bounds)));
}

ArgumentBounds bounds_of(const CompiledKernel& kernel) {
  ArgumentBounds bounds;
  for (const auto* names : {&kernel.input_names(), &kernel.output_names()}) {
    for (const std::string& name : *names) {
      const KernelArgument& argument = kernel.argument(name);
      for (size_t d = 0; d < argument.open.size(); ++d)
        bounds[name].push_back(argument.open[d] ? argument.most[d] : 0);
    }
  }
  return bounds;
}

void run(CompiledKernel& kernel, const std::vector<at::Tensor>& inputs,
         const std::vector<at::Tensor>& outputs, const std::shared_ptr<CallFacts>& facts) {
  const py::gil_scoped_release release;
  const LaunchFacts known(facts);
  kernel.run_fitted(inputs, outputs);
}

void save(const CompiledKernel& kernel, const std::string& directory, const std::string& graph) {
  const py::gil_scoped_release release;
  Bundle bundle = kernel.bundle();
  bundle.files["graph.ir"] = graph;
  bundle.files["kernel.opspec"] = to_text(kernel.compiled().kernel);
  check(save_bundle(bundle, directory));
}

bool is_package_name(std::string_view name) {
  const bool inside = name.starts_with("kernels/") || name.starts_with("wrappers/");
  return name == "program.pkl" || name == "weights.pt" || name == kManifestFile ||
         (inside && name.find("..") == std::string_view::npos);
}

constexpr FolderKind kPackageFolder = {.format = "spyre-package",
                                       .word = "package",
                                       .hint = "another folder",
                                       .may_hold = is_package_name,
                                       .may_contain = is_package_name};

void publish_package(const std::string& staged, const std::string& directory) {
  const py::gil_scoped_release release;
  check(publish_folder(staged, directory, kPackageFolder));
}

std::vector<std::string_view> form_names() {
  std::vector<std::string_view> names;
  for (const forms::FormRow& row : forms::all_forms()) names.push_back(row.name);
  return names;
}

// Why the calls of a graph cannot be taken apart.
std::optional<std::string> refusal_of_call(const std::string& text) {
  Graph graph = unwrap(parse_graph(text, "call"));
  std::vector<Node> nodes = std::move(graph.nodes);
  graph.nodes.clear();
  for (const Node& node : nodes) {
    if (!node.call) continue;
    const Status expanded = forms::expand_call(
        graph, *node.call, node.name, node.source,
        {.default_float = node.call->default_float, .float32_parts = node.call->float32_parts});
    if (!expanded.ok()) return expanded.error().message;
  }
  return std::nullopt;
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

std::string compare_page(const std::string& text) {
  const py::gil_scoped_release release;
  const Json facts = unwrap(parse_json(text, "the facts of a comparison"));
  check(report::check_comparison(facts, "the facts of a comparison"));
  return report::compare_page(facts);
}

}  // namespace

void bind_compile(py::module& module) {
  py::class_<CompileOptions>(
      module, "CompileOptions",
      "What a compilation is asked for, by the names of torch_spyre._inductor.config; what is not "
      "named is as the environment says.")
      .def(py::init(&options_of))
      .def_readonly("cores", &CompileOptions::cores)
      .def_readonly("lx_planning", &CompileOptions::lx_planning)
      .def_readonly("co_optimize", &CompileOptions::co_optimize)
      .def_readonly("keep_sums", &CompileOptions::keep_sums)
      .def_property_readonly("objective", [](const CompileOptions& o) { return lx::to_string(o.objective); })
      .def_readonly("reorder", &CompileOptions::reorder)
      .def_readonly("bundle_ops", &CompileOptions::bundle_ops)
      .def_property_readonly("solver", [](const CompileOptions& o) { return o.scratchpad.solver; });
  py::class_<CallFacts, std::shared_ptr<CallFacts>>(module, "CallFacts", "What profiles say about a launch.")
      .def(py::init<std::string, std::string, std::string>(), py::arg("text"), py::arg("modules"),
           py::arg("artifact"));
  py::class_<CompiledKernel, KernelRef>(module, "CompiledKernel", "A graph compiled for the card.")
      .def_property_readonly("inputs", [](const CompiledKernel& k) { return k.input_names(); })
      .def_property_readonly("outputs", [](const CompiledKernel& k) { return k.output_names(); })
      .def_property_readonly(
          "written_inputs", [](const CompiledKernel& k) { return k.written_inputs(); },
          "Names of inputs that it also writes.")
      .def_property_readonly(
          "bounds", &bounds_of,
          "Of arguments whose sizes are capacities, by name: the extent along each dimension, "
          "-1 where the size is fixed.")
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
            for (const auto& [name, content] : k.bundle().files) {
              files[py::str(name)] = py::bytes(content);
            }
            return files;
          },
          "The bundle, by file name.")
      .def(
          "output_layout",
          [](const CompiledKernel& k, const std::string& name) { return k.argument(name).layout; },
          py::arg("name"), "The device layout of an argument.")
      .def("run", &run, py::arg("inputs"), py::arg("outputs"), py::arg("facts") = nullptr,
           "Queues one run on the current stream; facts are for profiles.")
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
          "planned",
          [](const CompiledKernel& k) { return !k.was_read() && k.compiled().options.lx_planning; },
          "Whether it was compiled here, with LX planning.")
      .def_property_readonly("was_read", &CompiledKernel::was_read, "Whether it was read back, not compiled.")
      .def(
          "compulsory_bytes",
          [](const CompiledKernel& k) { return unwrap(compulsory_traffic(k.compiled())).count(); },
          "Device memory traffic that no plan avoids.")
      .def("plan_facts", &plan_facts, "The scratchpad plan and what there is to know about it, as JSON text.")
      .def("plan_page", &plan_page, "The same as one HTML page.")
      .def("save", &save, py::arg("directory"), py::arg("graph"),
           "Writes the bundle, the graph it was compiled from and its operations (kernel.opspec) as a "
           "directory.");
  module.def("form_names", &form_names, "The operators that a graph may hold whole, with their overloads.");
  module.def("refusal_of_call", &refusal_of_call, py::arg("text"),
             "Why the form of a call does not take it, the call being a graph in text form; None: it does.");
  module.def("compare_page", &compare_page, py::arg("facts"),
             "What torch_spyre.compare found, as one HTML page; the facts are JSON text.");
  module.def("passes_markdown", &passes_markdown, "The table of passes in spyre/passes/README.md.");
  module.def("compile_graph", &compile_text, py::arg("text"), py::arg("options") = py::none(),
             "Compiles a graph in text form for the card; without options as the environment says.");
  module.def(
      "staging_name", [](const std::string& directory) { return staging_name(directory).string(); },
      py::arg("directory"), "A name beside a folder to write it under first.");
  module.def("publish_package", &publish_package, py::arg("staged"), py::arg("directory"),
             "Puts a package in place that was written whole under another name.");
  module.def("read_kernel", &read_kernel, py::arg("files"), py::arg("inputs"), py::arg("outputs"),
             py::arg("bounds"),
             "A kernel from the files of its bundle, the names of its arguments and their bounds; nothing is "
             "compiled.");
}

}  // namespace spyre::glue
