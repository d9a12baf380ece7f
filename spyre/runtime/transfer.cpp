#include "spyre/runtime/transfer.h"

#include <fmt/format.h>

#include <cstring>
#include <utility>

#include "spyre/cost/copy.h"
#include "spyre/runtime/activity_log.h"
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

/// What a copy is to those who look at times.
struct CopyKind {
  Activity::Kind kind;
  std::string_view name;  ///< of the activity
  std::string_view call;
  std::string_view queued_call;
  Engine engine;
  Nanos (*time)(Bytes, const Rates&);
};

constexpr CopyKind kToDevice = {Activity::Kind::kToDevice, "Memcpy HtoD",     "spyreMemcpy",
                                "spyreMemcpyAsync",        Engine::kToDevice, &link_copy_time};
constexpr CopyKind kToHost = {Activity::Kind::kToHost, "Memcpy DtoH",   "spyreMemcpy",
                              "spyreMemcpyAsync",      Engine::kToHost, &link_copy_time};
constexpr CopyKind kFill = {Activity::Kind::kFill, "Memset",          "spyreMemset",
                            "spyreMemsetAsync",    Engine::kToDevice, &fill_time};
constexpr CopyKind kOnCard = {Activity::Kind::kOnCard, "Memcpy DtoD",     "spyreMemcpy",
                              "spyreMemcpyAsync",      Engine::kToDevice, &card_copy_time};

constexpr CopyKind kPeerIn = {Activity::Kind::kOnCard, "Memcpy PtoP",     "spyreMemcpy",
                              "spyreMemcpyAsync",      Engine::kToDevice, &link_copy_time};
constexpr CopyKind kPeerOut = {Activity::Kind::kOnCard, "Memcpy PtoP",   "spyreMemcpy",
                               "spyreMemcpyAsync",      Engine::kToHost, &link_copy_time};

const CopyKind& kind_of(TransferDirection direction) {
  switch (direction) {
    case TransferDirection::kToDevice:
      return kToDevice;
    case TransferDirection::kToHost:
      return kToHost;
    case TransferDirection::kFill:
      break;
  }
  return kFill;
}

Status give(const StreamRef& stream, Work work, Blocking blocking, const CopyKind& kind, Bytes size) {
  const CallScope call(blocking == Blocking::kYes ? kind.call : kind.queued_call);
  SPYRE_TRY(blocking == Blocking::kYes ? stream->run_now_or_enqueue(std::move(work))
                                       : stream->enqueue(std::move(work)));
  const TimeSpan span = stream->spend(kind.time(size, fitted_rates()), kind.engine);
  if (blocking == Blocking::kYes) {
    thread_saw(span.end);
  }
  if (stream->clock().runs() && ActivityLog::instance().listens()) {
    ActivityLog::instance().add({.kind = kind.kind,
                                 .name = std::string(kind.name),
                                 .card = stream->device_index(),
                                 .stream = stream->id(),
                                 .span = span,
                                 .size = size});
  }
  return {};
}

void count_transfer(TransferDirection direction, Bytes size) {
  const bool in = direction != TransferDirection::kToHost;
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
  const Bytes size = view.size;
  return give(
      stream,
      [view = std::move(view), direction, body = std::move(body)]() -> Status {
        SPYRE_ASSIGN_OR_RETURN(const Memory::Access access, view.memory->open(view.offset, view.size));
        SPYRE_TRY(body(access.bytes()));
        count_transfer(direction, view.size);
        return {};
      },
      blocking, kind_of(direction), size);
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
  // Between two cards it goes over the link, out of the one and into the other at the same time.
  const CopyKind& kind = to.memory->device_index() == from.memory->device_index() ? kOnCard
                         : on_device_of(stream, to)                               ? kPeerIn
                                                                                  : kPeerOut;
  const Bytes size = to.size;
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
      blocking, kind, size);
}

}  // namespace spyre
