#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace spyre::timing {

/// Bytes on each link of the ring: one each way between neighbours. A message goes the shorter way round,
/// upwards where both are equally long.
///
///     core 0 --link 0--> core 1 --link 1--> ... core n-1 --link n-1--> core 0       and the same downwards
class RingLinks {
 public:
  explicit RingLinks(int cores) : up_(static_cast<size_t>(cores)), down_(up_) {}

  void send(int from, int to, int64_t bytes) {
    const int n = static_cast<int>(up_.size());
    const int ahead = (to - from + n) % n;
    const bool upwards = ahead <= n - ahead;
    for (int hop = 0; hop < (upwards ? ahead : n - ahead); ++hop) {
      if (upwards) {
        up_[static_cast<size_t>((from + hop) % n)] += bytes;
      } else {
        down_[static_cast<size_t>((from - hop - 1 + n) % n)] += bytes;
      }
    }
  }

  /// Of the link with the most to carry: what goes at the same time waits for it.
  int64_t busiest() const {
    return std::max(*std::max_element(up_.begin(), up_.end()), *std::max_element(down_.begin(), down_.end()));
  }

 private:
  std::vector<int64_t> up_, down_;
};

}  // namespace spyre::timing
