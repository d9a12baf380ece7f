#pragma once

#include <cstddef>
#include <functional>
#include <span>

#include "spyre/base/result.h"
#include "spyre/runtime/memory.h"
#include "spyre/runtime/stream.h"

namespace spyre {

/// Part of an allocation, in device bytes.
struct MemoryView {
  MemoryRef memory;
  Bytes offset;
  Bytes size;

  /// All of it. A null reference is the empty view.
  static MemoryView whole(MemoryRef memory);
};

enum class TransferDirection {
  kToDevice,
  kToHost,
  kFill,  ///< one value, made on the card; counted as to the device
};
enum class Blocking {
  kYes,  ///< done on return; runs on the calling thread when the stream is idle
  kNo,   ///< queued on return; a failure later poisons the stream
};

/// Moves bytes: opens the view to the host and calls `body` with it, in the order of the stream.
///
/// `body` converts or copies; `direction` only says what to count and how long the card takes. Checked before anything is queued: the
/// view lies in its allocation ("copy beyond the end", kOutOfRange), which is still alive (kUseAfterFree) and
/// on the stream's device (kInvalidArgument). A queued transfer keeps its memory alive; keeping alive what
/// `body` refers to on the host is the caller's part. An empty view is done at once, without the stream.
using TransferBody = std::function<Status(std::span<std::byte> device_bytes)>;
Status transfer(const StreamRef& stream, MemoryView view, TransferDirection direction, TransferBody body,
                Blocking blocking);

/// Plain copies. The host side must be exactly as large as the view: kInvalidArgument otherwise.
Status copy_in(const StreamRef& stream, MemoryView to, std::span<const std::byte> from, Blocking blocking);
Status copy_out(const StreamRef& stream, MemoryView from, std::span<std::byte> to, Blocking blocking);

/// Device to device, on one card or between two; views of one allocation may overlap. Equal sizes, else
/// kInvalidArgument. Ordered by `stream`, which is of either card; order against work on the other card is
/// the caller's part (Event::block).
Status copy_between(const StreamRef& stream, MemoryView to, MemoryView from, Blocking blocking);

}  // namespace spyre
