#include "glue/eager_cache.h"

#include "glue/error.h"
#include "spyre/base/settings.h"
#include "spyre/runtime/metrics.h"

namespace spyre::glue {

EagerCache& EagerCache::shared() {
  static auto* const cache = new EagerCache;  // never destroyed: kernels outlive the interpreter's end
  return *cache;
}

std::shared_ptr<const EagerPlan> EagerCache::find(const EagerKey& key) {
  const std::lock_guard lock(mutex_);
  const auto found = by_key_.find(key);
  if (found == by_key_.end()) {
    count(Metric::kEagerCacheMisses);
    return nullptr;
  }
  count(Metric::kEagerCacheHits);
  entries_.splice(entries_.begin(), entries_, found->second);
  return found->second->second;
}

void EagerCache::insert(EagerKey key, std::shared_ptr<const EagerPlan> plan) {
  static const auto bound = static_cast<size_t>(unwrap(read_int("SPYRE_EAGER_CACHE_SIZE")));
  const std::lock_guard lock(mutex_);
  if (by_key_.contains(key)) {
    return;
  }  // another thread was faster
  entries_.emplace_front(std::move(key), std::move(plan));
  by_key_.emplace(entries_.front().first, entries_.begin());
  if (entries_.size() > bound) {
    by_key_.erase(entries_.back().first);
    entries_.pop_back();
  }
}

void EagerCache::clear() {
  const std::lock_guard lock(mutex_);
  by_key_.clear();
  entries_.clear();
}

size_t EagerCache::size() const {
  const std::lock_guard lock(mutex_);
  return entries_.size();
}

}  // namespace spyre::glue
