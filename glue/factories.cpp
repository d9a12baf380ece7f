#include <ATen/EmptyTensor.h>
#include <ATen/TensorUtils.h>
#include <ATen/native/Resize.h>
#include <c10/core/TensorOptions.h>

#include "glue/device_state.h"
#include "glue/error.h"
#include "glue/kernels.h"
#include "glue/tensor_access.h"
#include "glue/tensor_impl.h"
#include "spyre/base/text.h"

namespace spyre::glue {
namespace {

SpyreTensorImpl* impl_of(const at::Tensor& tensor) {
  auto* impl = dynamic_cast<SpyreTensorImpl*>(tensor.unsafeGetTensorImpl());
  TORCH_CHECK(impl != nullptr, "expected a Spyre tensor, found one on ", tensor.device());
  return impl;
}

void check_options(std::optional<c10::Layout> layout, std::optional<bool> pin_memory) {
  TORCH_CHECK(layout.value_or(c10::kStrided) == c10::kStrided, "Non strided layout not supported");
  TORCH_CHECK(!pin_memory.value_or(false), "Pin memory can only be on CPU");
}

at::Tensor make_tensor(c10::DeviceIndex device, c10::IntArrayRef size, c10::IntArrayRef stride,
                       c10::ScalarType dtype, BaseImage image) {
  const std::string description = std::string(to_string(image.type)) + list_text(size);
  const DeviceLayout layout = image.layout;
  if (image.type == HostType::kInt64) {
    warn_downcast_once();
  }
  auto tensor = at::detail::make_tensor<SpyreTensorImpl>(
      allocate_image(device, std::move(image), description),
      c10::DispatchKeySet(c10::DispatchKey::PrivateUse1), c10::scalarTypeToTypeMeta(dtype));
  impl_of(tensor)->set_sizes_and_strides(size, stride);
  if (tensor.numel() == 0) {
    impl_of(tensor)->set_own_layout(layout);
  }
  return tensor;
}

void refresh_sizes(const at::Tensor& self, c10::IntArrayRef size, c10::IntArrayRef stride, int64_t offset) {
  impl_of(self)->set_storage_offset(offset);
  impl_of(self)->set_sizes_and_strides(size, stride);
}

}  // namespace

at::Tensor empty_strided(c10::IntArrayRef size, c10::IntArrayRef stride, std::optional<c10::ScalarType> dtype,
                         std::optional<c10::Layout> layout, std::optional<c10::Device> device,
                         std::optional<bool> pin_memory) {
  check_options(layout, pin_memory);
  at::detail::check_size_nonnegative(size);
  TORCH_CHECK(size.size() == stride.size(), "dimensionality of sizes (", size.size(),
              ") must match dimensionality of strides (", stride.size(), ")");
  for (const int64_t step : stride) {
    TORCH_CHECK(step >= 0, "Trying to create tensor with negative stride: ", step);
  }
  const c10::ScalarType type = c10::dtype_or_default(dtype);
  const c10::DeviceIndex index = resolve_index(c10::device_or_default(device).index());
  return make_tensor(index, size, stride, type, image_for(size, stride, host_type_of(type)));
}

at::Tensor empty(c10::IntArrayRef size, std::optional<c10::ScalarType> dtype,
                 std::optional<c10::Layout> layout, std::optional<c10::Device> device,
                 std::optional<bool> pin_memory, std::optional<c10::MemoryFormat> memory_format) {
  const auto format = memory_format.value_or(c10::MemoryFormat::Contiguous);
  std::vector<int64_t> stride;
  switch (format) {
    case c10::MemoryFormat::Contiguous:
    case c10::MemoryFormat::Preserve:
      stride = spyre::contiguous_strides(size);
      break;
    case c10::MemoryFormat::ChannelsLast: {
      TORCH_CHECK(size.size() == 4, "required rank 4 tensor to use channels_last format");
      stride = c10::get_channels_last_strides_2d(size);
      break;
    }
    case c10::MemoryFormat::ChannelsLast3d: {
      TORCH_CHECK(size.size() == 5, "required rank 5 tensor to use channels_last_3d format");
      stride = c10::get_channels_last_strides_3d(size);
      break;
    }
    default:
      SPYRE_CHECK(false, "PyTorch has four memory formats");
  }
  return empty_strided(size, stride, dtype, layout, device, pin_memory);
}

at::Tensor empty_with_layout(c10::IntArrayRef size, c10::IntArrayRef stride, c10::ScalarType dtype,
                             const DeviceLayout& layout, c10::Device device) {
  at::detail::check_size_nonnegative(size);
  check(layout.check_well_formed());
  const auto reach = static_cast<int64_t>(at::detail::computeStorageNbytes(size, stride, 1));
  return make_tensor(resolve_index(device.index()), size, stride, dtype,
                     {layout, host_type_of(dtype), reach});
}

namespace {

enum class Content : uint8_t { kKept, kNobodys };

void change_size(const at::Tensor& self, c10::IntArrayRef size, Content content) {
  if (self.sizes() == size) {
    return;
  }
  at::detail::check_size_nonnegative(size);
  const int64_t needed = self.storage_offset() + c10::multiply_integers(size);
  const StorageContext* context = context_of(*self.storage().unsafeGetStorageImpl());
  const int64_t held = context != nullptr && context->image.has_value() ? context->image->numel : 0;
  const std::vector<int64_t> stride = spyre::contiguous_strides(size);
  if (needed > held && needed > self.storage_offset()) {
    // The elements stay where a CPU tensor would keep them: at the same logical offsets.
    const HostType type = host_type_of(self.scalar_type());
    // What will be written covers all that was there, unless it begins behind the start of the storage.
    const bool keeps = content == Content::kKept || self.storage_offset() > 0;
    const std::vector<std::byte> kept =
        keeps && held > 0 ? read_logical_elements(*context) : std::vector<std::byte>();
    BaseImage image =
        self.storage_offset() == 0 ? image_for(size, stride, type) : image_for({needed}, {1}, type);
    replace_image(*self.storage().unsafeGetStorageImpl(), std::move(image));
    if (keeps) {
      write_logical_elements(*context_of(*self.storage().unsafeGetStorageImpl()), kept);
    }
    impl_of(self)->set_own_layout(std::nullopt);
  }
  refresh_sizes(self, size, stride, self.storage_offset());
}

}  // namespace

const at::Tensor& resize_(const at::Tensor& self, c10::IntArrayRef size,
                          std::optional<c10::MemoryFormat> memory_format) {
  TORCH_CHECK(memory_format.value_or(c10::MemoryFormat::Contiguous) == c10::MemoryFormat::Contiguous,
              "resize_ on Spyre supports the contiguous memory format only, got: ", *memory_format);
  change_size(self, size, Content::kKept);
  return self;
}

void resize_to_write(const at::Tensor& self, c10::IntArrayRef size) {
  change_size(self, size, Content::kNobodys);
}

at::Tensor& set_storage_offset(at::Tensor& self, at::Storage source, int64_t storage_offset,
                               c10::IntArrayRef size, c10::IntArrayRef stride) {
  TORCH_CHECK(source.device().type() == c10::kPrivateUse1,
              "set_ of a Spyre tensor takes a Spyre storage, found one on ", source.device());
  TORCH_CHECK(storage_offset >= 0, "Tensor: invalid storage offset ", storage_offset);
  std::vector<int64_t> strides = stride.vec();
  if (strides.empty() && !size.empty()) {
    strides = spyre::contiguous_strides(size);
  }
  TORCH_CHECK(size.size() == strides.size(), "mismatch in length of strides and shape");
  adopt_storage(*source.unsafeGetStorageImpl(), host_type_of(self.scalar_type()), size, strides,
                storage_offset);
  if (c10::multiply_integers(size) > 0) {
    const size_t item = self.dtype().itemsize();
    const size_t needed = at::detail::computeStorageNbytes(size, strides, item, storage_offset);
    const int64_t held = element_capacity(*source.unsafeGetStorageImpl(), host_type_of(self.scalar_type()));
    if (static_cast<int64_t>(needed / item) > held) {
      resize_storage(*source.unsafeGetStorageImpl(), needed);
    }
    adopt_storage(*source.unsafeGetStorageImpl(), host_type_of(self.scalar_type()), size, strides,
                  storage_offset);
  }
  impl_of(self)->set_storage_keep_dtype(std::move(source));
  impl_of(self)->set_own_layout(std::nullopt);
  impl_of(self)->set_storage_bytes(false);
  refresh_sizes(self, size, strides, storage_offset);
  return self;
}

at::Tensor& set_storage(at::Tensor& self, at::Storage source) {
  const auto count = static_cast<int64_t>(source.nbytes() / self.dtype().itemsize());
  if (self.scalar_type() != c10::kByte) {
    return set_storage_offset(self, std::move(source), 0, {count}, {1});
  }
  impl_of(self)->set_storage_keep_dtype(std::move(source));
  impl_of(self)->set_own_layout(std::nullopt);
  impl_of(self)->set_storage_bytes(true);
  refresh_sizes(self, {count}, {1}, 0);
  return self;
}

at::Tensor& set_tensor(at::Tensor& self, const at::Tensor& source) {
  if (self.unsafeGetTensorImpl() == source.unsafeGetTensorImpl()) {
    return self;
  }
  TORCH_CHECK(self.scalar_type() == source.scalar_type(), "set_ of a ", self.scalar_type(),
              " Spyre tensor takes a tensor of the same dtype, found ", source.scalar_type());
  impl_of(self)->set_storage_keep_dtype(source.storage());
  impl_of(self)->set_own_layout(impl_of(source)->own_layout());
  refresh_sizes(self, source.sizes(), source.strides(), source.storage_offset());
  return self;
}

at::Tensor& set_empty(at::Tensor& self) {
  const at::Tensor fresh =
      empty({0}, self.scalar_type(), std::nullopt, self.device(), std::nullopt, std::nullopt);
  return set_tensor(self, fresh);
}

bool is_set_to(const at::Tensor& self, const at::Tensor& other) {
  return self.storage().unsafeGetStorageImpl() == other.storage().unsafeGetStorageImpl() &&
         self.storage_offset() == other.storage_offset() && self.sizes() == other.sizes() &&
         self.strides() == other.strides();
}

}  // namespace spyre::glue
