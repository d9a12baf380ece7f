#include "spyre/runtime/program_cache.h"

#include "spyre/program/image.h"
#include "spyre/runtime/metrics.h"

namespace spyre {

Result<LoadedProgramRef> ProgramCache::get(std::span<const std::byte> memory) {
  SPYRE_ASSIGN_OR_RETURN(const int64_t size, program::image_bytes(memory));
  const std::string image(reinterpret_cast<const char*>(memory.data()), static_cast<size_t>(size));
  const std::shared_ptr<Slot> slot = find_or_add(image);
  const std::lock_guard decoding(slot->mutex);
  if (slot->program == nullptr) {
    auto loaded = LoadedProgram::load(memory, machine_);
    if (!loaded.ok()) {
      forget(image, slot.get());
      return loaded.error();
    }
    slot->program = std::move(loaded).value();
  }
  return slot->program;
}

std::shared_ptr<ProgramCache::Slot> ProgramCache::find_or_add(std::string image) {
  const std::lock_guard lock(mutex_);
  if (const auto found = entries_.find(image); found != entries_.end()) {
    ++stats_.hits;
    count(Metric::kProgramCacheHits);
    oldest_first_.splice(oldest_first_.end(), oldest_first_, found->second.age);
    return found->second.slot;
  }
  ++stats_.misses;
  count(Metric::kProgramCacheMisses);
  auto slot = std::make_shared<Slot>();
  image_bytes_ += static_cast<int64_t>(image.size());
  const auto added = entries_.emplace(std::move(image), Entry{slot, {}}).first;
  added->second.age = oldest_first_.insert(oldest_first_.end(), &added->first);
  shrink_locked();
  return slot;
}

void ProgramCache::forget(const std::string& image, const Slot* slot) {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(image);
  if (found != entries_.end() && found->second.slot.get() == slot) {
    image_bytes_ -= static_cast<int64_t>(image.size());
    oldest_first_.erase(found->second.age);
    entries_.erase(found);
  }
}

void ProgramCache::shrink_locked() {
  while (entries_.size() > 1 &&
         (entries_.size() > limits_.programs || image_bytes_ > limits_.image_bytes.count())) {
    const auto oldest = entries_.find(*oldest_first_.front());
    image_bytes_ -= static_cast<int64_t>(oldest->first.size());
    oldest_first_.pop_front();
    entries_.erase(oldest);
  }
}

ProgramCache::Stats ProgramCache::stats() const {
  const std::lock_guard lock(mutex_);
  Stats stats = stats_;
  stats.programs = entries_.size();
  return stats;
}

}  // namespace spyre
