#include "spyre/runtime/transfer.h"

#include <fmt/format.h>

#include <cstring>
#include <utility>

#include "spyre/runtime/fork.h"
#include "spyre/runtime/metrics.h"

namespace spyre {
namespace {

Status check_view(const MemoryView& view) {
  if (view.memory == nullptr) {
    if (view.size == Bytes(0) && view.offset == Bytes(0)) {
      return {};
    }
    return Error(ErrorKind::kOutOfRange,
                 fmt::format("copy beyond the end: {} bytes at offset {} of an empty allocation",
                             view.size.count(), view.offset.count()));
  }
  return view.memory->check_range(view.offset, view.size);
}

bool on_device_of(const StreamRef& stream, const MemoryView& view) {
  return stream->device_index() == view.memory->device_index();
}

Error wrong_device(const StreamRef& stream, const MemoryView& view) {
  return Error(ErrorKind::kInvalidArgument,
               fmt::format("memory of device {} cannot be copied on stream {} of device {}",
                           view.memory->device_index(), stream->id(), stream->device_index()))
      .try_instead("a stream of the memory's device");
}

Status check_same_size(Bytes device, Bytes other) {
  if (device == other) {
    return {};
  }
  return Error(ErrorKind::kInvalidArgument,
               fmt::format("copy of unequal sizes: the device side has {} bytes, the other {}",
                           device.count(), other.count()));
}

Status give(const StreamRef& stream, Work work, Blocking blocking) {
  return blocking == Blocking::kYes ? stream->run_now_or_enqueue(std::move(work))
                                    : stream->enqueue(std::move(work));
}

void count_transfer(TransferDirection direction, Bytes size) {
  const bool in = direction == TransferDirection::kToDevice;
  count(in ? Metric::kTransfersToDevice : Metric::kTransfersToHost);
  count(in ? Metric::kBytesToDevice : Metric::kBytesToHost, size.count());
}

}  // namespace

MemoryView MemoryView::whole(MemoryRef memory) {
  const Bytes size = memory == nullptr ? Bytes(0) : memory->requested();
  return {std::move(memory), Bytes(0), size};
}

Status transfer(const StreamRef& stream, MemoryView view, TransferDirection direction, TransferBody body,
                Blocking blocking) {
  SPYRE_TRY(check_process());
  SPYRE_TRY(check_view(view));
  if (view.size == Bytes(0)) {
    return {};
  }
  if (!on_device_of(stream, view)) {
    return wrong_device(stream, view);
  }
  return give(
      stream,
      [view = std::move(view), direction, body = std::move(body)]() -> Status {
        SPYRE_ASSIGN_OR_RETURN(const Memory::Access access, view.memory->open(view.offset, view.size));
        SPYRE_TRY(body(access.bytes()));
        count_transfer(direction, view.size);
        return {};
      },
      blocking);
}

Status copy_in(const StreamRef& stream, MemoryView to, std::span<const std::byte> from, Blocking blocking) {
  SPYRE_TRY(check_same_size(to.size, Bytes(static_cast<int64_t>(from.size()))));
  return transfer(
      stream, std::move(to), TransferDirection::kToDevice,
      [from](std::span<std::byte> device) -> Status {
        std::memcpy(device.data(), from.data(), from.size());
        return {};
      },
      blocking);
}

Status copy_out(const StreamRef& stream, MemoryView from, std::span<std::byte> to, Blocking blocking) {
  SPYRE_TRY(check_same_size(from.size, Bytes(static_cast<int64_t>(to.size()))));
  return transfer(
      stream, std::move(from), TransferDirection::kToHost,
      [to](std::span<std::byte> device) -> Status {
        std::memcpy(to.data(), device.data(), to.size());
        return {};
      },
      blocking);
}

Status copy_between(const StreamRef& stream, MemoryView to, MemoryView from, Blocking blocking) {
  SPYRE_TRY(check_process());
  SPYRE_TRY(check_view(to));
  SPYRE_TRY(check_view(from));
  SPYRE_TRY(check_same_size(to.size, from.size));
  if (to.size == Bytes(0)) {
    return {};
  }
  if (!on_device_of(stream, to) && !on_device_of(stream, from)) {
    return wrong_device(stream, to);
  }
  return give(
      stream,
      [to = std::move(to), from = std::move(from)]() -> Status {
        SPYRE_ASSIGN_OR_RETURN(const Memory::Access source, from.memory->open(from.offset, from.size));
        SPYRE_ASSIGN_OR_RETURN(const Memory::Access target, to.memory->open(to.offset, to.size));
        std::memmove(target.bytes().data(), source.bytes().data(), source.bytes().size());
        count(Metric::kTransfersBetween);
        count(Metric::kBytesBetween, to.size.count());
        return {};
      },
      blocking);
}

}  // namespace spyre
