#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Allocator.h>
#include <c10/core/Storage.h>

#include <optional>

#include "glue/dtype.h"
#include "spyre/layout/device_layout.h"
#include "spyre/runtime/memory.h"

namespace spyre::glue {

/// What the bytes of a storage mean: `numel` logical elements of a host type, laid out by `layout`.
struct BaseImage {
  DeviceLayout layout;
  HostType type;
  int64_t numel;
};

/// What stands behind the data pointer of a Spyre storage.
///
/// The pointer itself is a *token*: unique, never dereferenced, and it faults if anybody tries. The image is
/// the one truth about where elements live; tensors look it up here, so that all views of a storage agree
/// even after it was resized. A storage made as plain bytes (`torch.UntypedStorage(n, device="spyre")`) has
/// no image until a tensor adopts it.
///
/// `resize_(0)` frees the memory and leaves the image: a storage that is given its bytes back (sharded training does
/// both around every layer) is what it was before, and views of it that were made before are good again.
struct StorageContext {
  MemoryRef memory;
  std::optional<BaseImage> image;
};

/// The context of a Spyre storage that has memory; null for one without: zero bytes, or freed. A storage that
/// PyTorch made from a bare token (`at::from_blob`, used to pickle) has the context of the storage that owns
/// the token.
StorageContext* context_of(const c10::StorageImpl& storage);

/// The same, and an error for a storage without memory.
StorageContext& require_memory(const c10::StorageImpl& storage);

/// What the bytes of a storage mean, or meant before it was freed; null for plain bytes.
const BaseImage* image_of(const c10::StorageImpl& storage);

/// How many elements of a type a storage has room for. Not its bytes divided by the element's: an image is
/// padded to whole sticks.
int64_t element_capacity(const c10::StorageImpl& storage, HostType type);

/// Bytes on a card, without an image. The block is described for out-of-memory reports.
c10::DataPtr allocate_bytes(c10::DeviceIndex device, Bytes size, std::string description);

/// A storage that holds the image, zero-initialised nowhere.
c10::Storage allocate_image(c10::DeviceIndex device, BaseImage image, const std::string& description);

/// Gives a storage new bytes and a new image; all tensors that share it see the change.
void replace_image(c10::StorageImpl& storage, BaseImage image);

/// The image for a fresh tensor: the default layout for its sizes and strides, or, when the strides leave
/// gaps or overlap or there are more dimensions than a layout may have, a one-dimensional image of all elements its
/// strides can reach.
BaseImage image_for(c10::IntArrayRef sizes, c10::IntArrayRef strides, HostType type);

/// Bytes PyTorch is told a storage has: the device image, but at least the host's bytes.
Bytes storage_bytes_of(const BaseImage& image);

/// Turns a storage of plain host-order bytes into an image that tensors of `type` can use. `sizes` and
/// `strides` are the first tensor's, a wish for the layout. A storage that already holds another type is
/// refused.
void adopt_storage(c10::StorageImpl& storage, HostType type, c10::IntArrayRef sizes, c10::IntArrayRef strides,
                   int64_t storage_offset);

/// Changes the number of bytes, keeping the logical elements that fit both: `Storage.resize_`. Elements that were not
/// there before are zero; after `resize_(0)` they are as undefined as on any device. Bytes that the image has already,
/// padded or not, change nothing.
void resize_storage(c10::StorageImpl& storage, size_t new_bytes);

}  // namespace spyre::glue
