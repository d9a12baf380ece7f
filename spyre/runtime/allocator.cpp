#include "spyre/runtime/allocator.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "spyre/base/text.h"
#include "spyre/runtime/fork.h"
#include "spyre/runtime/metrics.h"

namespace spyre {
namespace {

/// Freed blocks from this size on give their pages back to the host: one huge page. Smaller ones are likely
/// to be wanted again soon, and the system call would cost more than the copy that follows.
constexpr Bytes kDiscardFrom = mebibytes(2);

Bytes window_bytes(const Machine& machine, CardMode mode) {
  return mode == CardMode::kVf ? machine.segment_bytes * 3 / 4 : machine.segment_bytes;
}

std::vector<DeviceRange> tensor_windows(const Machine& machine, const AllocatorOptions& options) {
  const Bytes window = window_bytes(machine, options.mode);
  Bytes left = options.tensor_memory.value_or(machine.address_space());
  std::vector<DeviceRange> out;
  for (int segment = 0; segment < machine.segments; ++segment) {
    if (segment != machine.program_segment) {
      const Bytes size = std::min(window, left / kAllocationGranularity * kAllocationGranularity);
      out.push_back({DeviceAddress(0) + machine.segment_bytes * segment, size});
      left -= size;
    }
  }
  return out;
}

std::vector<DeviceRange> program_windows(const Machine& machine, const AllocatorOptions& options) {
  return {{DeviceAddress(0) + machine.program_base(), window_bytes(machine, options.mode)}};
}

Fit fit_of(CardMode mode) {
  return mode == CardMode::kVf ? Fit::kRoomiestThenFirst : Fit::kBest;
}

int64_t now_us() {
  using namespace std::chrono;
  return duration_cast<microseconds>(system_clock::now().time_since_epoch()).count();
}

}  // namespace

Bytes tensor_memory(const Machine& machine, const AllocatorOptions& options) {
  Bytes total(0);
  for (const DeviceRange& window : tensor_windows(machine, options)) {
    total += window.size;
  }
  return total;
}

Allocator::Allocator(int device_index, std::shared_ptr<Device> device, AllocatorOptions options,
                     CardStatus& status)
    : device_index_(device_index),
      device_(std::move(device)),
      mode_(options.mode),
      status_(status),
      tensors_(tensor_windows(device_->machine(), options), fit_of(options.mode)),
      programs_(program_windows(device_->machine(), options), fit_of(options.mode)) {
  status_.total.store(spyre::tensor_memory(device_->machine(), options).count(), std::memory_order_relaxed);
}

Result<MemoryRef> Allocator::allocate(Bytes size, AllocationInfo info) {
  SPYRE_TRY(check_process());
  if (size < Bytes(0)) {
    return Error(ErrorKind::kInvalidArgument,
                 fmt::format("cannot allocate {} bytes: the size is negative", size.count()));
  }
  if (size == Bytes(0)) {
    return MemoryRef();
  }
  // Beyond the address space rounding could overflow, and the answer is known anyway.
  const Bytes rounded =
      size > device_->machine().address_space() ? size : round_up(size, kAllocationGranularity);
  if (MemoryRef memory = try_allocate(size, rounded, info)) {
    return memory;
  }
  std::shared_ptr<const MemoryPressureCallback> pressure;
  {
    const std::lock_guard lock(mutex_);
    pressure = pressure_;
  }
  // A request made by the callback itself is not worth another round.
  static thread_local bool under_pressure = false;
  if (pressure != nullptr && !under_pressure) {
    under_pressure = true;
    (*pressure)(rounded);
    under_pressure = false;
    count(Metric::kAllocationRetries);
    {
      const std::lock_guard lock(mutex_);
      ++stats_.num_alloc_retries;
    }
    if (MemoryRef memory = try_allocate(size, rounded, info)) {
      return memory;
    }
  }
  return out_of_memory(size, rounded, info);
}

MemoryRef Allocator::try_allocate(Bytes size, Bytes rounded, const AllocationInfo& info) {
  std::shared_ptr<Allocator> self = shared_from_this();
  const std::lock_guard lock(mutex_);
  const std::optional<DeviceAddress> address = space(info.kind).take(rounded);
  if (!address) {
    return nullptr;
  }
  auto memory = std::make_shared<Memory>(Memory::FromAllocator{.allocator = std::move(self),
                                                               .kind = info.kind,
                                                               .requested = size,
                                                               .rounded = rounded,
                                                               .address = *address,
                                                               .token = device_->token(*address),
                                                               .device_index = device_index_});
  live_.emplace(*address, Live{rounded, size, info.kind, info, memory});
  if (info.kind == MemoryKind::kTensor) {
    for (Stat* stat : {&stats_.allocation, &stats_.active}) {
      stat->add(1);
    }
    for (Stat* stat : {&stats_.allocated_bytes, &stats_.reserved_bytes, &stats_.active_bytes}) {
      stat->add(rounded.count());
    }
    stats_.requested_bytes.add(size.count());
    update_levels_locked();
  }
  remember_locked(HistoryEntry::Action::kAlloc, *address, rounded, info.frames);
  count(Metric::kAllocations);
  return memory;
}

void Allocator::give_back(const Memory& memory) {
  const DeviceRange range{memory.address(), memory.rounded()};
  if (range.size >= kDiscardFrom) {
    device_->discard(range);  // before the block can have a new owner
  }
  std::map<DeviceAddress, Live>::node_type gone;  // destroyed outside the lock: it holds a caller's object
  const std::lock_guard lock(mutex_);
  gone = live_.extract(range.begin);
  SPYRE_CHECK(!gone.empty(), "a block is given back once");
  space(memory.kind()).give_back(range);
  if (memory.kind() == MemoryKind::kTensor) {
    for (Stat* stat : {&stats_.allocation, &stats_.active}) {
      stat->remove(1);
    }
    for (Stat* stat : {&stats_.allocated_bytes, &stats_.reserved_bytes, &stats_.active_bytes}) {
      stat->remove(range.size.count());
    }
    stats_.requested_bytes.remove(memory.requested().count());
    update_levels_locked();
  }
  remember_locked(HistoryEntry::Action::kFree, range.begin, range.size, gone.mapped().info.frames);
  count(Metric::kFrees);
}

void Allocator::update_levels_locked() {
  stats_.segment.set(tensors_.windows_in_use());
  stats_.inactive_split.set(tensors_.holes());
  stats_.inactive_split_bytes.set(tensors_.hole_bytes().count());
  status_.allocated.store(stats_.allocated_bytes.current, std::memory_order_relaxed);
  status_.peak.store(stats_.allocated_bytes.peak, std::memory_order_relaxed);
}

void Allocator::remember_locked(HistoryEntry::Action action, DeviceAddress address, Bytes size,
                                const std::shared_ptr<void>& frames) {
  if (history_limit_ == 0) {
    return;
  }
  if (history_.size() == history_limit_) {
    history_.pop_front();
  }
  history_.push_back({action, address, size, now_us(), frames});
}

Result<MemoryRef> Allocator::find(const void* token) const {
  SPYRE_TRY(check_process());
  const std::optional<DeviceAddress> address = device_->address_of(token);
  if (!address) {
    return Error(ErrorKind::kNotFound,
                 fmt::format("pointer {} is not memory of device {}", token, device_index_));
  }
  {
    const std::lock_guard lock(mutex_);
    const auto after = live_.upper_bound(*address);
    if (after != live_.begin()) {
      const auto& [begin, block] = *std::prev(after);
      if (DeviceRange{begin, block.size}.contains(*address)) {
        // A weak reference that has just expired is a block on its way back: as good as freed.
        if (MemoryRef memory = block.memory.lock()) {
          return memory;
        }
      }
    }
  }
  return Error(ErrorKind::kUseAfterFree,
               fmt::format("no live allocation at {:#x} of device {}", address->value(), device_index_))
      .note("the memory was freed, or never allocated");
}

void Allocator::set_pressure_callback(MemoryPressureCallback callback) {
  auto shared = callback ? std::make_shared<const MemoryPressureCallback>(std::move(callback)) : nullptr;
  const std::lock_guard lock(mutex_);
  pressure_.swap(shared);
}

void Allocator::describe(const Memory& memory, std::string text) {
  const std::lock_guard lock(mutex_);
  const auto block = live_.find(memory.address());
  if (block != live_.end() && !memory.released()) {
    block->second.info.description.swap(text);
  }
}

std::string Allocator::description(const Memory& memory) const {
  const std::lock_guard lock(mutex_);
  const auto block = live_.find(memory.address());
  return block == live_.end() || memory.released() ? std::string() : block->second.info.description;
}

MemoryStats Allocator::stats() const {
  if (forked_after_start()) {
    return {};
  }
  const std::lock_guard lock(mutex_);
  return stats_;
}

MemoryInfo Allocator::info() const {
  if (forked_after_start()) {
    return {};
  }
  const std::lock_guard lock(mutex_);
  return info_locked();
}

MemoryInfo Allocator::info_locked() const {
  MemoryInfo out{.total = tensors_.capacity(),
                 .free = tensors_.free_bytes(),
                 .largest_free = tensors_.largest_free(),
                 .programs = programs_.capacity() - programs_.free_bytes()};
  const Bytes best_possible = std::min(out.free, tensors_.largest_window());
  if (best_possible > Bytes(0)) {
    out.fragmentation =
        1.0 - static_cast<double>(out.largest_free.count()) / static_cast<double>(best_possible.count());
  }
  return out;
}

void Allocator::reset_peak_stats() {
  const std::lock_guard lock(mutex_);
  stats_.reset_peak();
}

void Allocator::reset_accumulated_stats() {
  const std::lock_guard lock(mutex_);
  stats_.reset_accumulated();
}

std::vector<SegmentSnapshot> Allocator::snapshot() const {
  if (forked_after_start()) {
    return {};
  }
  std::vector<SegmentSnapshot> out;
  const std::lock_guard lock(mutex_);
  for (const FreeSpace* space : {&tensors_, &programs_}) {
    for (size_t w = 0; w < space->windows().size(); ++w) {
      const DeviceRange window = space->windows()[w];
      SegmentSnapshot segment{window, space == &tensors_ ? MemoryKind::kTensor : MemoryKind::kProgram};
      for (auto it = live_.lower_bound(window.begin); it != live_.end() && it->first < window.end(); ++it) {
        const Live& live = it->second;
        segment.allocated += live.size;
        segment.requested += live.requested;
        segment.blocks.push_back(
            {{it->first, live.size}, true, live.requested, live.info.description, live.info.frames});
      }
      if (segment.blocks.empty()) {
        continue;
      }
      for (const DeviceRange& free : space->free_blocks(w)) {
        segment.blocks.push_back({free, false});
      }
      std::sort(segment.blocks.begin(), segment.blocks.end(),
                [](const BlockSnapshot& a, const BlockSnapshot& b) { return a.range.begin < b.range.begin; });
      out.push_back(std::move(segment));
    }
  }
  return out;
}

void Allocator::record_history(size_t max_entries) {
  std::deque<HistoryEntry> forgotten;  // destroyed outside the lock
  const std::lock_guard lock(mutex_);
  history_limit_ = max_entries;
  while (history_.size() > max_entries) {
    forgotten.push_back(std::move(history_.front()));
    history_.pop_front();
  }
}

std::vector<HistoryEntry> Allocator::history() const {
  if (forked_after_start()) {
    return {};
  }
  const std::lock_guard lock(mutex_);
  return {history_.begin(), history_.end()};
}

Error Allocator::out_of_memory(Bytes size, Bytes rounded, const AllocationInfo& info) {
  constexpr size_t kTop = 5;
  count(Metric::kOutOfMemory);
  const std::lock_guard lock(mutex_);
  ++stats_.num_ooms;
  remember_locked(HistoryEntry::Action::kOutOfMemory, DeviceAddress(0), rounded, info.frames);

  const FreeSpace& from = space(info.kind);
  const bool program = info.kind == MemoryKind::kProgram;
  auto error =
      Error(ErrorKind::kOutOfMemory,
            fmt::format("out of memory on device {}: {}{} requested, {} free of {}{}, largest free block {}",
                        device_index_, human_bytes(size), program ? " for a program" : "",
                        human_bytes(from.free_bytes()), human_bytes(from.capacity()),
                        program ? " for programs" : "", human_bytes(from.largest_free())));
  if (rounded > from.largest_window()) {
    error.notes.push_back(
        fmt::format("one allocation lies in one segment: at most {}", human_bytes(from.largest_window())));
  }
  if (!info.description.empty()) {
    error.notes.push_back("the request is for " + info.description);
  }
  const MemoryInfo figures = info_locked();
  error.notes.push_back(fmt::format("{} allocated in {} tensors, {} in programs, fragmentation {:.2f}",
                                    human_bytes(figures.total - figures.free), stats_.allocation.current,
                                    human_bytes(figures.programs), figures.fragmentation));

  std::vector<const Live*> largest;
  for (const auto& [address, block] : live_) {
    if (block.kind == info.kind) {
      largest.push_back(&block);
    }
  }
  const auto top = largest.begin() + static_cast<ptrdiff_t>(std::min(kTop, largest.size()));
  std::partial_sort(largest.begin(), top, largest.end(),
                    [](const Live* a, const Live* b) { return a->size > b->size; });
  for (auto it = largest.begin(); it != top; ++it) {
    const std::string& name = (*it)->info.description;
    error.notes.push_back(
        fmt::format("live: {}  {}", human_bytes((*it)->size), name.empty() ? "(no description)" : name));
  }
  return std::move(error).try_instead(
      program ? "freeing compiled programs that are no longer used (torch._dynamo.reset())"
              : "smaller batches, freeing the tensors above, or a larger SPYRE_CARD_MEMORY_GIB");
}

}  // namespace spyre
