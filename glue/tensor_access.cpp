#include "glue/tensor_access.h"

#include "glue/device_state.h"
#include "glue/error.h"
#include "glue/tensor_impl.h"
#include "spyre/base/settings.h"

namespace spyre::glue {
namespace {

StreamRef stream_for(const StorageContext& context) {
  return stream_of(current_stream(static_cast<c10::DeviceIndex>(context.memory->device_index())));
}

MemoryView image_bytes(const MemoryRef& memory, const DeviceLayout& layout) {
  return {memory, Bytes(0), unwrap(layout.byte_size())};
}

ViewGeometry flat_view(int64_t numel, int64_t base_numel) { return ViewGeometry::of({numel}, {1}, 0, base_numel); }

}  // namespace

MemoryView TensorAccess::bytes() const { return image_bytes(memory, layout); }

DeviceLayout layout_of(const at::Tensor& tensor) {
  const auto* impl = dynamic_cast<const SpyreTensorImpl*>(tensor.unsafeGetTensorImpl());
  if (impl != nullptr && impl->own_layout().has_value()) { return *impl->own_layout(); }
  const StorageContext* context = context_of(*tensor.storage().unsafeGetStorageImpl());
  if (context != nullptr && context->image.has_value()) { return context->image->layout; }
  return image_for(tensor.sizes(), tensor.strides(), host_type_of(tensor.scalar_type())).layout;
}

TensorAccess access(const at::Tensor& tensor) {
  const StorageContext* context = context_of(*tensor.storage().unsafeGetStorageImpl());
  TORCH_CHECK(context != nullptr, "a Spyre tensor of ", tensor.numel(), " elements has no memory behind it");
  TORCH_CHECK(context->image.has_value(), "a Spyre storage of plain bytes cannot be read as a tensor of ",
              tensor.scalar_type());
  const HostType type = host_type_of(tensor.scalar_type());
  TORCH_CHECK(context->image->type == type, "a Spyre storage that holds ",
              std::string(to_string(context->image->type)), " cannot be read as ", std::string(to_string(type)));
  return {.memory = context->memory,
          .layout = layout_of(tensor),
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
  static const Sen169Policy policy =
      unwrap(read_string("SPYRE_NUMBER_FORMAT")) == "vendor" ? Sen169Policy::kVendor : Sen169Policy::kPublished;
  return policy;
}

std::vector<std::byte> read_logical_elements(const StorageContext& context) {
  const BaseImage& image = *context.image;
  std::vector<std::byte> out(static_cast<size_t>(image.numel * info_of(image.type).host_bytes));
  if (out.empty()) { return out; }
  check(transfer(
      stream_for(context), image_bytes(context.memory, image.layout), TransferDirection::kToHost,
      [&](std::span<std::byte> device) {
        // By the published rule, which is exact for subnormal halves: saving and loading must not change a tensor.
        return unpack(device, image.layout, flat_view(image.numel, image.numel),
                      HostBuffer{out.data(), image.type, {image.numel}, {1}}, Sen169Policy::kPublished);
      },
      Blocking::kYes));
  return out;
}

void write_logical_elements(const StorageContext& context, std::span<const std::byte> bytes) {
  const BaseImage& image = *context.image;
  const int64_t numel = std::min<int64_t>(image.numel, static_cast<int64_t>(bytes.size()) / info_of(image.type).host_bytes);
  if (numel == 0) { return; }
  check(transfer(
      stream_for(context), image_bytes(context.memory, image.layout), TransferDirection::kToDevice,
      [&](std::span<std::byte> device) {
        return pack(ConstHostBuffer{bytes.data(), image.type, {numel}, {1}}, image.layout, flat_view(numel, image.numel),
                    device, number_policy());
      },
      Blocking::kYes));
}

std::vector<std::byte> read_raw_bytes(const StorageContext& context, size_t count) {
  std::vector<std::byte> out(count);
  check(copy_out(stream_for(context), {context.memory, Bytes(0), Bytes(static_cast<int64_t>(count))}, out, Blocking::kYes));
  return out;
}

void write_raw_bytes(const StorageContext& context, std::span<const std::byte> bytes) {
  check(copy_in(stream_for(context), {context.memory, Bytes(0), Bytes(static_cast<int64_t>(bytes.size()))}, bytes,
                Blocking::kYes));
}

}  // namespace spyre::glue
