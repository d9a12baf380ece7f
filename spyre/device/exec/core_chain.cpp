#include "spyre/device/exec/core_chain.h"

#include <algorithm>
#include <set>

#include "spyre/base/thread_pool.h"

namespace spyre::exec {
namespace {

/// Whether cores, each on one thread, keep all threads busy.
bool occupies_threads(int64_t cores) {
  const int threads = parallel_threads();
  return cores % threads == 0 || cores >= 4 * threads;
}

}  // namespace

bool CoreChain::admits(const PreparedOp& op, const Places& places) const {
  for (const HbmRange& range : op.hbm_ranges(places)) {
    for (const HbmRange& earlier : touched_) {
      if (range.conflicts(earlier)) {
        return false;
      }
    }
  }
  return true;
}

void CoreChain::add(const PreparedOp& op, const Places& places) {
  for (const HbmRange& range : op.hbm_ranges(places)) {
    touched_.push_back(range);
  }
  links_.push_back({&op, places});
}

void CoreChain::run() {
  if (links_.size() == 1) {
    links_[0].op->run(links_[0].places);
  } else if (!links_.empty()) {
    run_core_by_core();
  }
  links_.clear();
  touched_.clear();
}

void CoreChain::run_core_by_core() const {
  std::set<int> used;
  int64_t bytes = 1;
  for (const Link& link : links_) {
    bytes += link.op->bytes_per_core();
    for (const CoreWork& core : link.op->bound().op->cores) {
      used.insert(core.core);
    }
  }
  const std::vector<int> cores(used.begin(), used.end());
  if (!occupies_threads(std::ssize(cores))) {
    for (const Link& link : links_) {
      Places places = link.places;
      link.op->run(places);
    }
    return;
  }
  parallel_for(std::ssize(cores), std::max<int64_t>(kParallelBytes / bytes, 1),
               [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end; ++i) {
                   for (const Link& link : links_) {
                     link.op->run_core(link.places, cores[i]);
                   }
                 }
               });
}

}  // namespace spyre::exec
