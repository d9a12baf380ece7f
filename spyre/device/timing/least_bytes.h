#pragma once

#include <cstdint>
#include <map>

#include "spyre/device/timing/execute_work.h"

namespace spyre::timing {

/// The least that a launch must move: what it reads of its arguments before writing there, once, and what it writes of
/// them, once. Everything beyond is traffic that a larger LX could avoid: operands that are read again, and
/// intermediate results on their way out and back in.
///
/// An estimate from below: of a tensor whose slices are interleaved with another's, the bytes between count as seen.
class LeastBytes {
 public:
  /// The next execute of the launch. `pool` says whether an address lies in the memory for intermediate results.
  template <typename InPool>
  void add(const ExecuteWork& work, const InPool& pool) {
    int64_t loaded = 0, stored = 0;
    for (const Stream& load : work.loads) loaded += load.bytes;
    for (const Stream& store : work.stores) stored += store.bytes;
    int64_t fresh = 0, final = 0;
    for (const AddressRange& range : work.reads) fresh += seen_.add(range);
    for (const AddressRange& range : work.writes) {
      final += pool(range.begin) ? 0 : written_.add(range);
      (void)seen_.add(range);
    }
    total_ += std::min(fresh, loaded) + std::min(final, stored);
  }

  int64_t total() const { return total_; }

 private:
  /// A set of addresses.
  class Addresses {
   public:
    /// How many were not there before.
    int64_t add(AddressRange range);

   private:
    std::map<int64_t, int64_t> ranges_;  // begin to end; none touches another
  };

  Addresses seen_, written_;
  int64_t total_ = 0;
};

}  // namespace spyre::timing
