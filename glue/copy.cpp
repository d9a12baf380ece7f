// Copies between the host and a card, within a card and between cards. `copy_`, `.to`, `.cpu` all end here.

#include <ATen/EmptyTensor.h>
#include <ATen/ExpandUtils.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/ops/_copy_from.h>
#include <ATen/ops/_to_copy_native.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/from_blob.h>

#include "glue/device_state.h"
#include "glue/eager_copies.h"
#include "glue/error.h"
#include "glue/fallback.h"
#include "glue/kernels.h"
#include "glue/pinned_memory.h"
#include "glue/tensor_access.h"
#include "glue/tensor_impl.h"
#include "spyre/layout/convert.h"

namespace spyre::glue {
namespace {

bool is_storage_bytes(const at::Tensor& tensor) {
  if (!is_spyre(tensor)) {
    return false;
  }
  const auto* impl = dynamic_cast<const SpyreTensorImpl*>(tensor.unsafeGetTensorImpl());
  // PyTorch pickles a storage through a tensor it makes itself from the bare pointer.
  return impl != nullptr ? impl->is_storage_bytes() : tensor.scalar_type() == c10::kByte;
}

StreamRef stream_for(const at::Tensor& tensor) {
  return stream_of(current_stream(tensor.device().index()));
}

bool converts(HostType host, DataFormat device, Direction direction) {
  return find_conversion(host, device, direction, number_policy()).ok();
}

/// The host's side of a copy without lazy conjugation or negation.
at::Tensor resolved(const at::Tensor& host) {
  return host.resolve_conj().resolve_neg();
}

void host_to_card(const at::Tensor& host, const at::Tensor& device, bool non_blocking) {
  const TensorAccess to = access(device);
  at::Tensor source = resolved(host);
  const auto type = try_host_type(source.scalar_type());
  // What the transfer cannot convert is cast on the host first, as PyTorch would.
  if (!type.has_value() || !converts(*type, to.layout.device_dtype, Direction::kHostToDevice)) {
    source = source.to(device.scalar_type());
  }
  // The caller may reuse its tensor at once, so queued work reads a copy.
  if (non_blocking) {
    source = source.clone();
  }
  check(transfer(
      stream_for(device), to.bytes(), TransferDirection::kToDevice,
      [source, to](std::span<std::byte> bytes) {
        return pack(host_source(source), to.layout, to.view, bytes, number_policy());
      },
      non_blocking ? Blocking::kNo : Blocking::kYes));
}

void card_to_host(const at::Tensor& device, const at::Tensor& host, bool non_blocking) {
  const TensorAccess from = access(device);
  const auto type = try_host_type(host.scalar_type());
  const bool direct = type.has_value() && !host.is_conj() && !host.is_neg() &&
                      converts(*type, from.layout.device_dtype, Direction::kDeviceToHost);
  const at::Tensor target = direct ? host : at::empty(host.sizes(), device.options().device(c10::kCPU));
  // Only pinned memory is written behind the caller's back; other memory is ready on return, as with CUDA.
  const bool queue = non_blocking && direct && is_pinned(host.const_data_ptr());
  check(transfer(
      stream_for(device), from.bytes(), TransferDirection::kToHost,
      [target, from](std::span<std::byte> bytes) {
        return unpack(bytes, from.layout, from.view, host_target(target), number_policy());
      },
      queue ? Blocking::kNo : Blocking::kYes));
  if (!direct) {
    host.copy_(target);
  }
}

/// The same element width as plain integers: copies on the card move bits, not values.
HostType bits_type(DataFormat format) {
  switch (bits_of(format)) {
    case 8:
      return HostType::kInt8;
    case 16:
      return HostType::kInt16;
    default:
      return HostType::kInt32;
  }
}

TensorAccess as_bits(TensorAccess tensor) {
  tensor.type = bits_type(tensor.layout.device_dtype);
  tensor.layout.device_dtype = info_of(tensor.type).device_format;
  return tensor;
}

/// Between two cards the host is the way; on one card it is a fallback.
void report_if_on_one_card(const at::Tensor& from, const at::Tensor& to, const std::string& refusal) {
  if (from.device() == to.device()) {
    host_copy_fallback(from, to, refusal);
  }
}

/// Same dtype and same format: the device's bits, through a host buffer when the layouts or views differ.
void copy_bits(const at::Tensor& from_tensor, const at::Tensor& to_tensor, const std::string& refusal) {
  const TensorAccess from = as_bits(access(from_tensor));
  const TensorAccess to = as_bits(access(to_tensor));
  if (from_tensor.device() != to_tensor.device()) {
    check(stream_for(from_tensor)->synchronize());
  }
  if (from.layout == to.layout && from.view == to.view && from.view.whole_base) {
    check(copy_between(stream_for(to_tensor), to.bytes(), from.bytes(), Blocking::kYes));
    return;
  }
  report_if_on_one_card(from_tensor, to_tensor, refusal);
  const at::Tensor staging = at::empty(from_tensor.sizes(), at::dtype(dtype_of(from.type)));
  check(transfer(
      stream_for(from_tensor), from.bytes(), TransferDirection::kToHost,
      [&](std::span<std::byte> bytes) { return unpack(bytes, from.layout, from.view, host_target(staging)); },
      Blocking::kYes));
  check(transfer(
      stream_for(to_tensor), to.bytes(), TransferDirection::kToDevice,
      [&](std::span<std::byte> bytes) { return pack(host_source(staging), to.layout, to.view, bytes); },
      Blocking::kYes));
}

void card_to_card(const at::Tensor& from, const at::Tensor& to) {
  const bool one_card = from.device() == to.device();
  const std::string refusal = one_card ? copy_on_card(from, to) : "";
  if (one_card && refusal.empty()) {
    return;
  }
  const bool same_format = layout_of(from).device_dtype == layout_of(to).device_dtype;
  if (from.scalar_type() == to.scalar_type() && same_format) {
    copy_bits(from, to, refusal);
    return;
  }
  report_if_on_one_card(from, to, refusal);
  host_to_card(from.cpu().to(to.scalar_type()), to, /*non_blocking=*/false);
}

/// Bytes [first, first + count) of a storage as the host would hold them; padding is zero.
std::vector<std::byte> host_bytes(const StorageContext& context, int64_t first, int64_t count) {
  if (!context.image.has_value()) {
    std::vector<std::byte> raw = read_raw_bytes(context, static_cast<size_t>(first + count));
    return {raw.begin() + first, raw.end()};
  }
  const int64_t item = info_of(context.image->type).host_bytes;
  const int64_t begin = std::min(first / item, context.image->numel);
  const int64_t end = std::min(ceil_div(first + count, item), context.image->numel);
  std::vector<std::byte> bytes = read_logical_elements(context, begin, end - begin);
  bytes.erase(bytes.begin(),
              bytes.begin() + std::min<int64_t>(first - begin * item, static_cast<int64_t>(bytes.size())));
  bytes.resize(static_cast<size_t>(count));
  return bytes;
}

/// `Storage[i]` and `Storage.tolist`: some bytes of a storage, wherever the view shows them.
void read_storage_bytes(const at::Tensor& from, const at::Tensor& to) {
  const StorageContext& read = require_memory(*from.storage().unsafeGetStorageImpl());
  const int64_t first = from.storage_offset();
  const auto end =
      static_cast<int64_t>(at::detail::computeStorageNbytes(from.sizes(), from.strides(), 1, first));
  std::vector<std::byte> bytes = host_bytes(read, first, end - first);
  const at::Tensor host = at::from_blob(bytes.data(), from.sizes(), from.strides(), at::dtype(c10::kByte));
  to.copy_(host);
}

/// `Storage.copy_` and torch.save: whole storages, as logical bytes in host order.
void copy_storage_bytes(const at::Tensor& from, const at::Tensor& to) {
  if (!is_spyre(to)) {
    read_storage_bytes(from, to);
    return;
  }
  const StorageContext& written = require_memory(*to.storage().unsafeGetStorageImpl());
  TORCH_CHECK(
      to.storage_offset() == 0 && to.is_contiguous(),
      "single bytes of a Spyre storage cannot be written: on the card elements have the card's own format");
  if (is_spyre(from)) {
    const StorageContext& read = require_memory(*from.storage().unsafeGetStorageImpl());
    TORCH_CHECK(from.storage_offset() == 0 && from.is_contiguous(),
                "a part of a Spyre storage cannot be copied to another");
    TORCH_CHECK(
        !written.image.has_value() || !read.image.has_value() || written.image->type == read.image->type,
        "a storage of another dtype cannot be overwritten");
    const Bytes size = read.image.has_value() ? storage_bytes_of(*read.image) : Bytes(from.numel());
    if (written.memory->requested() < size) {
      replace_image(*to.storage().unsafeGetStorageImpl(), *read.image);
      to.storage().unsafeGetStorageImpl()->set_nbytes(static_cast<size_t>(to.numel()));
    }
    StorageContext& target = require_memory(*to.storage().unsafeGetStorageImpl());
    write_raw_bytes(target, read_raw_bytes(read, static_cast<size_t>(size.count())));
    target.image = read.image;
    return;
  }
  const at::Tensor contiguous = from.contiguous();
  const std::span bytes(static_cast<const std::byte*>(contiguous.const_data_ptr()),
                        static_cast<size_t>(from.numel()));
  if (written.image.has_value()) {
    write_logical_elements(written, bytes);
  } else {
    write_raw_bytes(written, bytes);
  }
}

}  // namespace

at::Tensor copy_from(const at::Tensor& self, const at::Tensor& dst, bool non_blocking) {
  TORCH_CHECK(at::is_expandable_to(self.sizes(), dst.sizes()),
              "Invalid device sizes for host sizes. Expected: ", dst.sizes(), ", got: ", self.sizes());
  if (dst.numel() == 0) {
    return dst;
  }
  const c10::InferenceMode no_autograd;
  if (self.sizes() != dst.sizes()) {
    return copy_from(self.expand(dst.sizes()), dst, non_blocking);
  }
  at::assert_no_internal_overlap(dst);
  if (self.is_alias_of(dst) && self.storage_offset() == dst.storage_offset() &&
      self.strides() == dst.strides() && self.scalar_type() == dst.scalar_type()) {
    return dst;  // x[1:] += 1 ends with a copy of x[1:] onto itself
  }
  at::assert_no_partial_overlap(dst, self);
  if (is_storage_bytes(self) || is_storage_bytes(dst)) {
    copy_storage_bytes(self, dst);
  } else if (is_spyre(self) && is_spyre(dst)) {
    card_to_card(self, dst);
  } else if (is_spyre(dst)) {
    TORCH_CHECK(self.device().is_cpu(), "Unsupported copy types: src on ", self.device(), " dst on ",
                dst.device());
    host_to_card(self, dst, non_blocking);
  } else {
    TORCH_CHECK(dst.device().is_cpu(), "Unsupported copy types: src on ", self.device(), " dst on ",
                dst.device());
    card_to_host(self, dst, non_blocking);
  }
  return dst;
}

at::Tensor to_copy(const at::Tensor& self, std::optional<c10::ScalarType> dtype,
                   std::optional<c10::Layout> layout, std::optional<c10::Device> device,
                   std::optional<bool> pin_memory, bool non_blocking,
                   std::optional<c10::MemoryFormat> memory_format) {
  const bool stays = !device.has_value() || *device == self.device();
  const bool keeps_format =
      memory_format.value_or(c10::MemoryFormat::Preserve) == c10::MemoryFormat::Preserve;
  if (stays && keeps_format && dtype.has_value() && *dtype != self.scalar_type() && self.numel() > 0 &&
      try_host_type(*dtype).has_value()) {
    if (std::optional<at::Tensor> cast = cast_on_card(self, *dtype)) {
      return *cast;
    }
  }
  return at::native::_to_copy(self, dtype, layout, device, pin_memory, non_blocking, memory_format);
}

at::Tensor copy_from_and_resize(const at::Tensor& self, const at::Tensor& dst) {
  if (self.sizes() != dst.sizes()) {
    resize_to_write(dst, self.sizes());
  }
  return copy_from(self, dst, /*non_blocking=*/false);
}

}  // namespace spyre::glue
