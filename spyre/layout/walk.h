#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "spyre/layout/convert.h"

namespace spyre {

/// One loop of a walk; strides in bytes.
struct WalkLoop {
  int64_t count;
  int64_t src_stride;
  int64_t dst_stride;
};

/// A loop nest ready to run: where each element is read and where it is written, in bytes. Direction no
/// longer matters here; packing and unpacking are the same work seen from two sides.
///
/// The last loop runs along the stick. When `pad_bytes` is not 0 it writes a dense run, and each run is
/// followed by that many bytes of padding, to be zeroed.
struct Walk {
  std::vector<WalkLoop> loops;
  int64_t src_offset = 0;
  int64_t dst_offset = 0;
  int64_t pad_bytes = 0;
};

/// Runs a walk on all threads. The order of the loops is free, so it is chosen for speed:
///
///  - *run*: one loop is dense on both sides (elements along the stick). Each run is one conversion. Work is
///    cut into a few tiles times many rows, so that both sides advance through few pages at a time:
///
///        host   row i     | stick 0 | stick 1 | stick 2 | ...
///               row i + 1 | stick 0 | stick 1 | stick 2 | ...
///        card   tile 0    | row i | row i + 1 | ...
///               tile 1    | row i | row i + 1 | ...
///
///  - *turn*: the dense loops of the two sides differ (the stick lies across the host's rows). Square blocks
///    are converted along the source, then transposed into the destination from cache.
///
///  - *step*: no dense loop on one of the sides. Element by element.
///
/// Returns false when some element has no image in the destination; which one is for the caller to find.
[[nodiscard]] bool run_walk(const Walk& walk, const Convert& convert, const std::byte* src, std::byte* dst);

}  // namespace spyre
