#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "glue/compiled_kernel.h"
#include "glue/eager_call.h"
#include "glue/eager_key.h"

namespace spyre::glue {

/// How calls with one key run. One of three: a kernel; nothing to run (the results have no elements); a
/// refusal.
struct EagerPlan {
  /// What every result is: given by the caller and to be written, or made here.
  struct Target {
    ResultSpec spec;
    int written = -1;     ///< position among the call's tensors; -1: a fresh tensor
    bool direct = false;  ///< the kernel writes into it; otherwise the kernel's output is copied there
    DeviceLayout layout;  ///< of what the kernel writes, when it is fresh memory
  };

  std::shared_ptr<CompiledKernel> kernel;
  std::vector<int> inputs;  ///< the kernel's, as positions among the call's tensors
  std::vector<Target> targets;
  std::string refusal;           ///< why the CPU runs it; empty: the card does
  bool wrong_arguments = false;  ///< so it seems: the refusal is PyTorch's
};

/// Plans by key, the most recently used kept. Any thread.
///
/// Hits and misses are counted (`eager_cache_hits`, `eager_cache_misses` in the metrics); the setting
/// SPYRE_EAGER_CACHE_SIZE bounds how many kernels stay on the card.
class EagerCache {
 public:
  static EagerCache& shared();

  std::shared_ptr<const EagerPlan> find(const EagerKey& key);
  void insert(EagerKey key, std::shared_ptr<const EagerPlan> plan);
  void clear();
  size_t size() const;

 private:
  using Entry = std::pair<EagerKey, std::shared_ptr<const EagerPlan>>;

  mutable std::mutex mutex_;
  std::list<Entry> entries_;  // the latest first
  std::unordered_map<EagerKey, std::list<Entry>::iterator, EagerKeyHash> by_key_;
};

}  // namespace spyre::glue
