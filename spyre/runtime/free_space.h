#pragma once

#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "spyre/device/address.h"

namespace spyre {

/// Where in its windows the next block goes.
enum class Fit {
  kBest,               ///< smallest free block that is large enough, lowest address among equals; O(log n)
  kRoomiestThenFirst,  ///< lowest offset in the window with most free bytes; next window if too fragmented
};

/// Which bytes of some windows of device memory are free. Sees sizes and addresses only: no device, no lock,
/// no names; the allocator adds those.
///
///     window   |#####......###..########............|      # taken   . free
///                    \hole/  \hole/   \-- tail --/
///
/// Blocks never cross a window. Free neighbours are always one block: no two free blocks touch.
/// Callers round sizes first; this class keeps whatever granularity it is given.
class FreeSpace {
 public:
  /// Windows must not overlap. Empty ones are allowed and never used.
  FreeSpace(std::vector<DeviceRange> windows, Fit fit);

  /// Takes `size` > 0 bytes, or nothing when no free block is large enough.
  std::optional<DeviceAddress> take(Bytes size);

  /// Gives back a range that was taken, whole, and merges it with both neighbours.
  void give_back(DeviceRange range);

  Bytes capacity() const { return capacity_; }
  Bytes free_bytes() const { return free_bytes_; }
  Bytes largest_free() const;
  Bytes largest_window() const;

  /// Free blocks with a taken block after them in their window: what fragmentation is made of.
  int64_t holes() const { return holes_; }
  Bytes hole_bytes() const { return hole_bytes_; }

  /// Windows that hold a taken block.
  int64_t windows_in_use() const;

  const std::vector<DeviceRange>& windows() const { return windows_; }
  /// Free blocks of one window, in address order.
  std::vector<DeviceRange> free_blocks(size_t window) const;

 private:
  using ByAddress = std::map<DeviceAddress, Bytes>;

  size_t window_of(DeviceAddress address) const;
  std::optional<std::pair<size_t, ByAddress::iterator>> choose(Bytes size);
  void add(size_t window, DeviceRange block);
  void remove(size_t window, ByAddress::iterator block);
  void count_hole(size_t window, DeviceRange block, int64_t sign);

  std::vector<DeviceRange> windows_;  // sorted by address
  Fit fit_;
  std::vector<ByAddress> free_;                        // per window
  std::vector<Bytes> free_in_window_;                  // per window
  std::set<std::pair<Bytes, DeviceAddress>> by_size_;  // all free blocks
  Bytes capacity_, free_bytes_, hole_bytes_;
  int64_t holes_ = 0;
};

}  // namespace spyre
