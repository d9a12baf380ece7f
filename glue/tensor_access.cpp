#include "glue/tensor_access.h"

#include <ATen/EmptyTensor.h>

#include "glue/device_state.h"
#include "glue/error.h"
#include "glue/tensor_impl.h"
#include "spyre/layout/number_policy.h"

namespace spyre::glue {
namespace {

StreamRef stream_for(const StorageContext& context) {
  return stream_of(current_stream(static_cast<c10::DeviceIndex>(context.memory->device_index())));
}

MemoryView image_bytes(const MemoryRef& memory, const DeviceLayout& layout) {
  return {memory, Bytes(0), unwrap(layout.byte_size())};
}

ViewGeometry flat_view(int64_t numel, int64_t base_numel) {
  return ViewGeometry::of({numel}, {1}, 0, base_numel);
}

}  // namespace

MemoryView TensorAccess::bytes() const {
  return image_bytes(memory, layout);
}

DeviceLayout layout_of(const at::Tensor& tensor) {
  const auto* impl = dynamic_cast<const SpyreTensorImpl*>(tensor.unsafeGetTensorImpl());
  if (impl != nullptr && impl->own_layout().has_value()) {
    return *impl->own_layout();
  }
  if (const BaseImage* image = image_of(*tensor.storage().unsafeGetStorageImpl())) {
    return image->layout;
  }
  return image_for(tensor.sizes(), tensor.strides(), host_type_of(tensor.scalar_type())).layout;
}

const MemoryRef& memory_behind(const at::Tensor& tensor) {
  const StorageContext& context = require_memory(*tensor.storage().unsafeGetStorageImpl());
  const auto* impl = dynamic_cast<const SpyreTensorImpl*>(tensor.unsafeGetTensorImpl());
  const bool plain = impl == nullptr || impl->own_layout().has_value() || impl->is_storage_bytes();
  if (!plain && context.image.has_value()) {
    const auto needed = static_cast<int64_t>(
        at::detail::computeStorageNbytes(tensor.sizes(), tensor.strides(), 1, tensor.storage_offset()));
    TORCH_CHECK(needed <= context.image->numel, "a Spyre tensor of sizes ", tensor.sizes(), ", strides ",
                tensor.strides(), " and storage offset ", tensor.storage_offset(), " needs a storage of ",
                needed, " elements, its storage has ", context.image->numel,
                "\n  try  storage.resize_(nbytes) before it is used");
  }
  return context.memory;
}

TensorAccess access(const at::Tensor& tensor) {
  (void)memory_behind(tensor);
  const StorageContext* context = context_of(*tensor.storage().unsafeGetStorageImpl());
  TORCH_CHECK(context->image.has_value(), "a Spyre storage of plain bytes cannot be read as a tensor of ",
              tensor.scalar_type());
  const HostType type = host_type_of(tensor.scalar_type());
  TORCH_CHECK(context->image->type == type, "a Spyre storage that holds ",
              std::string(to_string(context->image->type)), " cannot be read as ",
              std::string(to_string(type)));
  DeviceLayout layout = layout_of(tensor);
  // A transfer of no bytes is done at once, and would leave the host's side as it is.
  TORCH_CHECK(unwrap(layout.byte_size()) > Bytes(0), "a Spyre tensor of ", tensor.numel(),
              " elements is laid out in no bytes: ", layout.to_string());
  return {.memory = context->memory,
          .layout = std::move(layout),
          .view = ViewGeometry::of(tensor.sizes().vec(), tensor.strides().vec(), tensor.storage_offset(),
                                   context->image->numel),
          .type = type,
          .device = tensor.device().index()};
}

ConstHostBuffer host_source(const at::Tensor& tensor) {
  return {static_cast<const std::byte*>(tensor.const_data_ptr()), host_type_of(tensor.scalar_type()),
          tensor.sizes().vec(), tensor.strides().vec()};
}

HostBuffer host_target(const at::Tensor& tensor) {
  return {static_cast<std::byte*>(tensor.mutable_data_ptr()), host_type_of(tensor.scalar_type()),
          tensor.sizes().vec(), tensor.strides().vec()};
}

Sen169Policy number_policy() {
  static const Sen169Policy policy = unwrap(number_policy_setting());
  return policy;
}

std::vector<std::byte> read_logical_elements(const StorageContext& context) {
  return read_logical_elements(context, 0, context.image->numel);
}

std::vector<std::byte> read_logical_elements(const StorageContext& context, int64_t first, int64_t count) {
  const BaseImage& image = *context.image;
  std::vector<std::byte> out(static_cast<size_t>(count * info_of(image.type).host_bytes));
  if (out.empty()) {
    return out;
  }
  check(transfer(
      stream_for(context), image_bytes(context.memory, image.layout), TransferDirection::kToHost,
      [&](std::span<std::byte> device) {
        // By the published rule, which is exact for subnormal fp16 values: saving and loading must not change a tensor.
        return unpack(device, image.layout, ViewGeometry::of({count}, {1}, first, image.numel),
                      HostBuffer{out.data(), image.type, {count}, {1}}, Sen169Policy::kPublished);
      },
      Blocking::kYes));
  return out;
}

void write_logical_elements(const StorageContext& context, std::span<const std::byte> bytes) {
  const BaseImage& image = *context.image;
  const int64_t numel =
      std::min<int64_t>(image.numel, static_cast<int64_t>(bytes.size()) / info_of(image.type).host_bytes);
  if (numel == 0) {
    return;
  }
  check(transfer(
      stream_for(context), image_bytes(context.memory, image.layout), TransferDirection::kToDevice,
      [&](std::span<std::byte> device) {
        return pack(ConstHostBuffer{bytes.data(), image.type, {numel}, {1}}, image.layout,
                    flat_view(numel, image.numel), device, number_policy());
      },
      Blocking::kYes));
}

std::vector<std::byte> read_raw_bytes(const StorageContext& context, size_t count) {
  std::vector<std::byte> out(count);
  check(copy_out(stream_for(context), {context.memory, Bytes(0), Bytes(static_cast<int64_t>(count))}, out,
                 Blocking::kYes));
  return out;
}

void write_raw_bytes(const StorageContext& context, std::span<const std::byte> bytes) {
  check(copy_in(stream_for(context), {context.memory, Bytes(0), Bytes(static_cast<int64_t>(bytes.size()))},
                bytes, Blocking::kYes));
}

}  // namespace spyre::glue
