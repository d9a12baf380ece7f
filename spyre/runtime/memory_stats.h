#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>

#include "spyre/base/units.h"

namespace spyre {

/// One quantity over time, as PyTorch reports it.
struct Stat {
  int64_t current = 0;    ///< now
  int64_t peak = 0;       ///< largest `current` since the last reset_peak
  int64_t allocated = 0;  ///< sum of all increases since the last reset_accumulated
  int64_t freed = 0;      ///< sum of all decreases since the last reset_accumulated

  void add(int64_t amount) {
    current += amount;
    allocated += amount;
    peak = std::max(peak, current);
  }
  void remove(int64_t amount) {
    current -= amount;
    freed += amount;
  }
  /// Moves `current` to a level computed elsewhere.
  void set(int64_t level) { level >= current ? add(level - current) : remove(current - level); }

  friend bool operator==(const Stat&, const Stat&) = default;
};

/// Statistics of the tensor memory of one card. Programs are not in them (see MemoryInfo).
///
/// The card's allocator caches nothing, which settles what the words of PyTorch's caching allocator mean
/// here: reserved = allocated, active = allocated, a *segment* is a window of device memory that holds at
/// least one block, an *inactive split* is a free block with a live block after it in its window (a hole).
struct MemoryStats {
  Stat allocation, segment, active, inactive_split;  ///< counts
  Stat allocated_bytes, reserved_bytes, active_bytes, inactive_split_bytes;
  Stat requested_bytes;  ///< before rounding to 128
  int64_t num_alloc_retries = 0;
  int64_t num_ooms = 0;

  /// Peaks start again from now.
  void reset_peak();
  /// Sums, retries and failures start again from zero.
  void reset_accumulated();

  /// `allocated_bytes.all.current` and so on: PyTorch's names, sorted.
  std::map<std::string, int64_t> by_name() const;
};

/// How much a tensor may still take, and how it is cut up.
struct MemoryInfo {
  Bytes total;         ///< memory tensors can use
  Bytes free;          ///< of that, not taken
  Bytes largest_free;  ///< largest single block that would succeed now
  Bytes programs;      ///< taken in the program segment; not part of the above

  /// 0: the free memory is as whole as the windows allow. Towards 1: it is in crumbs.
  /// 1 - largest_free / min(free, window); 0 when nothing is free.
  double fragmentation = 0;
};

}  // namespace spyre
