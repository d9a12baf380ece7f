#include "glue/bindings.h"
#include "glue/dtype.h"
#include "glue/error.h"
#include "spyre/layout/device_layout.h"

namespace spyre::glue {
namespace {

using Sizes = std::vector<int64_t>;

py::tuple get_state(const DeviceLayout& layout) {
  return py::make_tuple(LayoutStateShape::kVersion, layout.device_size, layout.stride_map,
                        layout.device_dtype, layout.element_arrangement);
}

DeviceLayout set_state(const py::tuple& state) {
  if (state.empty()) {
    throw py::value_error("SpyreTensorLayout: empty pickle state");
  }
  const auto shape = layout_state_shape(state[0].cast<int64_t>(), static_cast<int64_t>(state.size()));
  if (!shape.ok()) {
    throw py::value_error(shape.error().to_string());
  }
  const LayoutStateShape at = shape.value();
  return DeviceLayout::raw(state[at.device_size].cast<Sizes>(), state[at.stride_map].cast<Sizes>(),
                           state[at.device_dtype].cast<DataFormat>(),
                           at.element_arrangement == LayoutStateShape::kAbsent
                               ? ElementArrangement::STANDARD
                               : state[at.element_arrangement].cast<ElementArrangement>());
}

}  // namespace

void bind_layout(py::module& module) {
  py::enum_<DataFormat> formats(module, "DataFormats",
                                "How an element is encoded on the host or on the card.");
  for (int i = 0; i < kDataFormatCount; ++i) {
    const auto format = static_cast<DataFormat>(i);
    formats.value(std::string(to_string(format)).c_str(), format);
  }
  formats.def(
      "elems_per_stick", [](DataFormat format) { return elems_per_stick(format); },
      "Elements in one 128-byte stick; 0 where there is no stick geometry.");

  py::enum_<ElementArrangement> arrangements(module, "ElementArrangement",
                                             "Order of elements inside a stick.");
  for (const auto arrangement :
       {ElementArrangement::STANDARD, ElementArrangement::DL16_TO_FP32, ElementArrangement::QFP8CH,
        ElementArrangement::EXX2, ElementArrangement::FP32_TO_DL16, ElementArrangement::QFP8WT}) {
    arrangements.value(std::string(to_string(arrangement)).c_str(), arrangement);
  }

  py::class_<DeviceLayout>(module, "SpyreTensorLayout", "How one tensor lies in device memory.")
      .def(py::init([](const Sizes& host_size, c10::ScalarType dtype) {
             return unwrap(DeviceLayout::standard(host_size, info_of(host_type_of(dtype)).device_format));
           }),
           py::arg("host_size"), py::arg("dtype"), "The default layout of a contiguous tensor.")
      .def(
          py::init([](const Sizes& host_size, const Sizes& host_strides, c10::ScalarType dtype,
                      const Sizes& dim_order, ElementArrangement arrangement) {
            return unwrap(DeviceLayout::ordered(
                host_size, host_strides, info_of(host_type_of(dtype)).device_format, dim_order, arrangement));
          }),
          py::arg("host_size"), py::arg("host_strides"), py::arg("dtype"), py::arg("dim_order"),
          py::arg("element_arrangement") = ElementArrangement::STANDARD,
          "Any strides and order of dims; a trailing -1 asks for one value per stick.")
      .def(py::init(&DeviceLayout::raw), py::arg("device_size"), py::arg("stride_map"),
           py::arg("device_dtype"), py::arg("element_arrangement") = ElementArrangement::STANDARD,
           "The fields as given; nothing is checked.")
      .def_readonly("device_size", &DeviceLayout::device_size)
      .def_readonly("stride_map", &DeviceLayout::stride_map)
      .def_readonly("device_dtype", &DeviceLayout::device_dtype)
      .def_readonly("element_arrangement", &DeviceLayout::element_arrangement)
      .def("elems_per_stick", &DeviceLayout::elems_per_stick)
      .def("with_element_arrangement", &DeviceLayout::with_element_arrangement,
           py::arg("element_arrangement"))
      .def(
          "device_bytes", [](const DeviceLayout& layout) { return unwrap(layout.byte_size()).count(); },
          "Device memory the tensor takes, padding included.")
      .def(
          "__eq__", [](const DeviceLayout& a, const DeviceLayout& b) { return a == b; }, py::is_operator())
      .def("__hash__", [](const DeviceLayout& layout) { return std::hash<DeviceLayout>()(layout); })
      .def("__str__", &DeviceLayout::to_string)
      .def("__repr__", &DeviceLayout::to_string)
      .def(py::pickle(&get_state, &set_state));
}

}  // namespace spyre::glue
