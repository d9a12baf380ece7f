#include "glue/bindings.h"
#include "glue/device_state.h"
#include "glue/dtype.h"
#include "glue/error.h"
#include "glue/kernels.h"
#include "glue/tensor_access.h"
#include "glue/tensor_impl.h"
#include "spyre/layout/convert.h"
#include "spyre/layout/element_map.h"

#include <ATen/EmptyTensor.h>
#include <ATen/ops/scalar_tensor.h>

namespace spyre::glue {
namespace {

using Sizes = std::vector<int64_t>;

bool has_layout(const at::Tensor& tensor) {
  return dynamic_cast<const SpyreTensorImpl*>(tensor.unsafeGetTensorImpl()) != nullptr;
}

void require_spyre(const at::Tensor& tensor, const char* what) {
  TORCH_CHECK(has_layout(tensor), what, ": expected a Spyre tensor, found one on ", tensor.device());
}

std::optional<DeviceLayout> get_layout(const at::Tensor& tensor) {
  return has_layout(tensor) ? std::optional(layout_of(tensor)) : std::nullopt;
}

int64_t storage_elements(const at::Tensor& tensor) {
  require_spyre(tensor, "storage_elements");
  const StorageContext* context = context_of(*tensor.storage().unsafeGetStorageImpl());
  return context != nullptr && context->image ? context->image->numel : 0;
}

void set_layout(const at::Tensor& tensor, const DeviceLayout& layout) {
  require_spyre(tensor, "set_spyre_tensor_layout");
  check(layout.check_well_formed());
  static_cast<SpyreTensorImpl*>(tensor.unsafeGetTensorImpl())->set_own_layout(layout);
}

/// The layout must have a place for each element. Of an order that only kernels know it has the right number of places.
void check_layout(const DeviceLayout& layout, int64_t elements) {
  const bool known =
      ElementMap::of(layout).ok() || layout.element_arrangement == ElementArrangement::STANDARD;
  check(
      check_holds(known ? layout : layout.with_element_arrangement(ElementArrangement::STANDARD), elements));
}

at::Tensor make_with_layout(const Sizes& size, const Sizes& stride, c10::ScalarType dtype,
                            const DeviceLayout& layout, std::optional<c10::Device> device) {
  TORCH_CHECK(size.size() == stride.size(), "mismatch in length of strides and shape");
  at::detail::check_size_nonnegative(size);
  const int64_t elements = c10::multiply_integers(size);
  // Strides that leave gaps need no place for what lies in them.
  const bool dense = ViewGeometry::of(size, stride, 0, elements).whole_base;
  check_layout(layout, dense ? elements : std::min<int64_t>(elements, 1));
  return empty_with_layout(size, stride, dtype, layout, device.value_or(spyre_device(current_device())));
}

/// The transfer itself, with no cast on the host: pairs the card's library does not convert are refused.
void copy_tensor(const at::Tensor& source, const at::Tensor& target, bool non_blocking) {
  const bool to_card = has_layout(target) && source.device().is_cpu();
  const bool to_host = has_layout(source) && target.device().is_cpu();
  TORCH_CHECK(to_card || to_host, "Unsupported copy types: src on ", source.device(), " dst on ",
              target.device());
  const at::Tensor& host = to_card ? source : target;
  (void)unwrap(
      find_conversion(host_type_of(host.scalar_type()), layout_of(to_card ? target : source).device_dtype,
                      to_card ? Direction::kHostToDevice : Direction::kDeviceToHost, number_policy()));
  copy_from(source, target, non_blocking);
}

void fill_whole(at::Tensor tensor, double value) {
  require_spyre(tensor, "fill_tensor");
  TORCH_CHECK(tensor.numel() > 0, "cannot fill empty tensor");
  fill_scalar(tensor, value);
}

uint64_t encode_constant(double value, DataFormat format) {
  for (const HostType type : {HostType::kFloat32, HostType::kInt64, HostType::kInt8, HostType::kUInt8}) {
    const auto convert = find_conversion(type, format, Direction::kHostToDevice, Sen169Policy::kPublished);
    if (!convert.ok()) {
      continue;
    }
    const at::Tensor host = at::scalar_tensor(value, at::dtype(dtype_of(type)));
    const auto* source = static_cast<const std::byte*>(host.const_data_ptr());
    uint64_t bits = 0;
    if (convert.value().run(source, reinterpret_cast<std::byte*>(&bits), 1) != 1) {
      raise(convert.value().misfit(source));
    }
    return bits;
  }
  TORCH_CHECK(false, "encode_constant: no way to encode a number as ", std::string(to_string(format)));
}

}  // namespace

void bind_tensor(py::module& module) {
  module.def("get_spyre_tensor_layout", &get_layout, py::arg("tensor"),
             "The layout of a Spyre tensor's base; None for other tensors.");
  module.def("storage_elements", &storage_elements, py::arg("tensor"),
             "Logical elements of a Spyre tensor's storage.");
  module.def("set_spyre_tensor_layout", &set_layout, py::arg("tensor"), py::arg("layout"),
             "Replaces the layout; no data moves.");
  for (const char* name : {"spyre_empty_with_layout", "empty_with_layout"}) {
    module.def(name, &make_with_layout, py::arg("size"), py::arg("stride"), py::arg("dtype"),
               py::arg("device_layout"), py::arg("device") = py::none());
  }
  module.def(
      "_empty_with_compiled_layout",
      [](const Sizes& size, const Sizes& stride, c10::ScalarType dtype, const DeviceLayout& layout,
         c10::Device device) { return empty_with_layout(size, stride, dtype, layout, device); },
      "A tensor that only kernels fill, in the layout their compiler chose: nothing to check.");
  module.def(
      "as_strided_with_layout",
      [](const at::Tensor& tensor, const Sizes& size, const Sizes& stride, int64_t offset,
         const DeviceLayout& layout) {
        require_spyre(tensor, "as_strided_with_layout");
        return as_strided_with_layout(tensor, size, stride, offset, layout);
      },
      py::arg("tensor"), py::arg("size"), py::arg("stride"), py::arg("storage_offset"), py::arg("layout"));
  module.def(
      "reinterpret_tensor",
      [](const at::Tensor& tensor, const Sizes& size, const Sizes& stride, int64_t increment) {
        require_spyre(tensor, "reinterpret_tensor");
        return as_strided_with_layout(tensor, size, stride, tensor.storage_offset() + increment,
                                      std::nullopt);
      },
      py::arg("tensor"), py::arg("size"), py::arg("stride"), py::arg("offset_increment") = 0);
  module.def(
      "reinterpret_tensor_with_layout",
      [](const at::Tensor& tensor, const Sizes& size, const Sizes& stride, int64_t increment,
         const DeviceLayout& layout) {
        require_spyre(tensor, "reinterpret_tensor_with_layout");
        return as_strided_with_layout(tensor, size, stride, tensor.storage_offset() + increment, layout);
      },
      py::arg("tensor"), py::arg("size"), py::arg("stride"), py::arg("offset_increment"), py::arg("layout"));
  module.def("copy_tensor", &copy_tensor, py::arg("src"), py::arg("dst"), py::arg("non_blocking") = false,
             py::call_guard<py::gil_scoped_release>());
  module.def("fill_tensor", &fill_whole, py::arg("tensor"), py::arg("value"),
             py::call_guard<py::gil_scoped_release>());
  module.def("encode_constant", &encode_constant, py::arg("value"), py::arg("format"),
             "The bits of a number in a device format.");
  module.def(
      "get_elem_in_stick",
      [](c10::ScalarType dtype) { return elems_per_stick(info_of(host_type_of(dtype)).device_format); },
      py::arg("dtype"));
  module.def(
      "get_device_dtype",
      [](c10::ScalarType dtype) {
        const auto type = try_host_type(dtype);
        return type.has_value() ? info_of(*type).device_format : DataFormat::INVALID;
      },
      py::arg("dtype"));
  module.def(
      "logical_storage_bytes",
      [](const at::Tensor& tensor) {
        require_spyre(tensor, "logical_storage_bytes");
        const StorageContext* context = context_of(*tensor.storage().unsafeGetStorageImpl());
        const bool has_image = context != nullptr && context->image.has_value();
        return has_image ? context->image->numel * info_of(context->image->type).host_bytes : 0;
      },
      py::arg("tensor"), "Bytes the storage's elements would take on the host, without padding.");
  module.def("is_supported_dtype", &is_supported_dtype, py::arg("dtype"));
}

}  // namespace spyre::glue
