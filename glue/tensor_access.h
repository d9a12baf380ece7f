#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <vector>

#include "glue/storage.h"
#include "spyre/layout/pack.h"
#include "spyre/layout/view_geometry.h"
#include "spyre/runtime/transfer.h"

namespace spyre::glue {

/// On the card; no for an undefined tensor.
inline bool is_spyre(const at::Tensor& tensor) {
  return tensor.defined() && tensor.device().type() == c10::kPrivateUse1;
}

/// A Spyre tensor, resolved to what pack and unpack need.
struct TensorAccess {
  MemoryRef memory;
  DeviceLayout layout;
  ViewGeometry view;
  HostType type;
  c10::DeviceIndex device;

  /// The device bytes of the whole base.
  MemoryView bytes() const;
};

/// Resolves a tensor with at least one element. Raises where there is nothing to resolve to: a storage that was freed,
/// is too small, has no image or one of another dtype.
TensorAccess access(const at::Tensor& tensor);

/// The memory that a kernel may use for a tensor. Raises when there is none, or when the storage ends before the
/// tensor's last element.
const MemoryRef& memory_behind(const at::Tensor& tensor);

/// The layout of the tensor's base: its own if one was set on it, else its storage's.
DeviceLayout layout_of(const at::Tensor& tensor);

/// A CPU tensor as a buffer.
ConstHostBuffer host_source(const at::Tensor& tensor);
HostBuffer host_target(const at::Tensor& tensor);

/// Conversion rules in force (setting SPYRE_NUMBER_FORMAT).
Sen169Policy number_policy();

/// Blocking reads and writes of whole storages on the current stream. *Logical* bytes are the elements in host
/// order and host type, as a CPU storage would hold them; *raw* bytes are the card's own.
std::vector<std::byte> read_logical_elements(const StorageContext& context);
/// Elements [first, first + count) of them.
std::vector<std::byte> read_logical_elements(const StorageContext& context, int64_t first, int64_t count);
void write_logical_elements(const StorageContext& context, std::span<const std::byte> bytes);
std::vector<std::byte> read_raw_bytes(const StorageContext& context, size_t count);
void write_raw_bytes(const StorageContext& context, std::span<const std::byte> bytes);

}  // namespace spyre::glue
