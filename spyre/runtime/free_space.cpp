#include "spyre/runtime/free_space.h"

#include <algorithm>
#include <numeric>

#include "spyre/base/error.h"

namespace spyre {

FreeSpace::FreeSpace(std::vector<DeviceRange> windows, Fit fit)
    : windows_(std::move(windows)), fit_(fit), free_(windows_.size()), free_in_window_(windows_.size()) {
  std::sort(windows_.begin(), windows_.end(),
            [](const DeviceRange& a, const DeviceRange& b) { return a.begin < b.begin; });
  for (size_t w = 0; w < windows_.size(); ++w) {
    SPYRE_CHECK(w == 0 || windows_[w - 1].end() <= windows_[w].begin, "windows do not overlap");
    if (windows_[w].size > Bytes(0)) {
      add(w, windows_[w]);
    }
  }
  capacity_ = free_bytes_;
}

std::optional<DeviceAddress> FreeSpace::take(Bytes size) {
  SPYRE_CHECK(size > Bytes(0), "empty blocks are not taken");
  const auto chosen = choose(size);
  if (!chosen) {
    return std::nullopt;
  }
  const auto [window, block] = *chosen;
  const DeviceRange whole{block->first, block->second};
  remove(window, block);
  if (whole.size > size) {
    add(window, {whole.begin + size, whole.size - size});
  }
  return whole.begin;
}

void FreeSpace::give_back(DeviceRange range) {
  const size_t window = window_of(range.begin);
  ByAddress& blocks = free_[window];
  const auto after = blocks.lower_bound(range.begin);
  SPYRE_CHECK(after == blocks.end() || range.end() <= after->first, "a block is given back once");
  if (after != blocks.begin()) {
    const auto before = std::prev(after);
    const DeviceAddress before_end = before->first + before->second;
    SPYRE_CHECK(before_end <= range.begin, "a block is given back once");
    if (before_end == range.begin) {
      range = {before->first, before->second + range.size};
      remove(window, before);
    }
  }
  if (after != blocks.end() && after->first == range.end()) {
    range.size += after->second;
    remove(window, after);
  }
  add(window, range);
}

Bytes FreeSpace::largest_free() const {
  return by_size_.empty() ? Bytes(0) : by_size_.rbegin()->first;
}

Bytes FreeSpace::largest_window() const {
  Bytes largest;
  for (const DeviceRange& window : windows_) {
    largest = std::max(largest, window.size);
  }
  return largest;
}

int64_t FreeSpace::windows_in_use() const {
  int64_t used = 0;
  for (size_t w = 0; w < windows_.size(); ++w) {
    used += free_in_window_[w] < windows_[w].size ? 1 : 0;
  }
  return used;
}

std::vector<DeviceRange> FreeSpace::free_blocks(size_t window) const {
  std::vector<DeviceRange> out;
  for (const auto& [begin, size] : free_[window]) {
    out.push_back({begin, size});
  }
  return out;
}

size_t FreeSpace::window_of(DeviceAddress address) const {
  const auto after = std::upper_bound(windows_.begin(), windows_.end(), address,
                                      [](DeviceAddress a, const DeviceRange& w) { return a < w.begin; });
  SPYRE_CHECK(after != windows_.begin() && std::prev(after)->contains(address), "the address has a window");
  return static_cast<size_t>(std::prev(after) - windows_.begin());
}

std::optional<std::pair<size_t, FreeSpace::ByAddress::iterator>> FreeSpace::choose(Bytes size) {
  if (fit_ == Fit::kBest) {
    const auto best = by_size_.lower_bound({size, DeviceAddress(0)});
    if (best == by_size_.end()) {
      return std::nullopt;
    }
    const size_t window = window_of(best->second);
    return std::pair(window, free_[window].find(best->second));
  }
  std::vector<size_t> order(windows_.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return free_in_window_[a] > free_in_window_[b]; });
  for (const size_t window : order) {
    const auto first = std::find_if(free_[window].begin(), free_[window].end(),
                                    [&](const auto& block) { return block.second >= size; });
    if (first != free_[window].end()) {
      return std::pair(window, first);
    }
  }
  return std::nullopt;
}

void FreeSpace::add(size_t window, DeviceRange block) {
  free_[window].emplace(block.begin, block.size);
  by_size_.emplace(block.size, block.begin);
  free_in_window_[window] += block.size;
  free_bytes_ += block.size;
  count_hole(window, block, +1);
}

void FreeSpace::remove(size_t window, ByAddress::iterator block) {
  const DeviceRange range{block->first, block->second};
  by_size_.erase({range.size, range.begin});
  free_[window].erase(block);
  free_in_window_[window] -= range.size;
  free_bytes_ -= range.size;
  count_hole(window, range, -1);
}

void FreeSpace::count_hole(size_t window, DeviceRange block, int64_t sign) {
  if (block.end() != windows_[window].end()) {
    holes_ += sign;
    hole_bytes_ += block.size * sign;
  }
}

}  // namespace spyre
