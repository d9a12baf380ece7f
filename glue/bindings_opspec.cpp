// OpSpecs for Python: values to look at, build and check; text in and out.

#include <pybind11/stl.h>

#include "glue/bindings.h"
#include "glue/error.h"
#include "spyre/opspec/text.h"
#include "spyre/opspec/validate.h"

namespace spyre::glue {
namespace {

std::vector<std::string> coordinate_texts(const TensorArg& arg) {
  std::vector<std::string> texts;
  for (const Expr& e : arg.device_coordinates) {
    texts.push_back(e.to_string());
  }
  return texts;
}

void set_coordinates(TensorArg& arg, const std::vector<std::string>& texts) {
  arg.device_coordinates.clear();
  for (const std::string& text : texts) {
    arg.device_coordinates.push_back(unwrap(parse_expr(text)));
  }
}

py::dict iteration_space(const OpSpec& op) {
  py::dict space;
  for (const IterationDim& dim : op.iteration_space) {
    space[py::str(dim.symbol)] = py::make_tuple(dim.extent, dim.split);
  }
  return space;
}

py::dict constants(const OpSpec& op) {
  py::dict values;
  for (const auto& [name, value] : op.constants) {
    values[py::str(name)] = value;
  }
  return values;
}

py::list items(const std::vector<KernelItem>& body) {
  py::list list;
  for (const KernelItem& item : body) {
    std::visit([&](const auto& value) { list.append(py::cast(value)); }, item);
  }
  return list;
}

}  // namespace

void bind_opspec(py::module& module) {
  py::class_<TensorArg>(module, "TensorArg",
                        "One operand of an OpSpec: its device layout, coordinates and place.")
      .def(py::init<>())
      .def_readwrite("name", &TensorArg::name)
      .def_readwrite("is_input", &TensorArg::is_input)
      .def_readwrite("device_dtype", &TensorArg::format)
      .def_readwrite("device_size", &TensorArg::device_size)
      .def_property("device_coordinates", &coordinate_texts, &set_coordinates)
      .def_readwrite("element_arrangement", &TensorArg::arrangement)
      .def_property_readonly("arg_index", &TensorArg::arg_index)
      .def_property_readonly("allocation",
                             [](const TensorArg& arg) {
                               return py::make_tuple(std::string(to_string(arg.allocation.place)),
                                                     arg.allocation.value);
                             })
      .def("__eq__", [](const TensorArg& a, const TensorArg& b) { return a == b; });
  py::class_<OpSpec>(module, "OpSpec", "One device operation with everything decided.")
      .def_property_readonly("op", [](const OpSpec& op) { return std::string(to_string(op.op)); })
      .def_readonly("is_reduction", &OpSpec::is_reduction)
      .def_property_readonly("iteration_space", &iteration_space, "symbol -> (extent, split)")
      .def_property_readonly("op_info", &constants)
      .def_readonly("args", &OpSpec::args, "Index tensors, inputs, output.")
      .def_property_readonly("cores", &cores_used)
      .def("__eq__", [](const OpSpec& a, const OpSpec& b) { return a == b; })
      .def("__str__", [](const OpSpec& op) { return to_text(op); });
  py::class_<LoopSpec>(module, "LoopSpec", "A counted loop around operations.")
      .def_readonly("count", &LoopSpec::count)
      .def_property_readonly("body", [](const LoopSpec& loop) { return items(loop.body); });
  py::class_<Kernel>(module, "Kernel", "Operations and loops that are launched together.")
      .def_static(
          "parse", [](const std::string& text) { return unwrap(parse_kernel(text, "opspec")); },
          py::arg("text"))
      .def_readonly("name", &Kernel::name)
      .def_readonly("pool_bytes", &Kernel::pool_bytes)
      .def_property_readonly("body", [](const Kernel& kernel) { return items(kernel.body); })
      .def(
          "validate", [](const Kernel& kernel) { check(validate(kernel)); },
          "Raises when the card cannot run it.")
      .def("__eq__", [](const Kernel& a, const Kernel& b) { return a == b; })
      .def("__str__", [](const Kernel& kernel) { return to_text(kernel); });
}

}  // namespace spyre::glue
