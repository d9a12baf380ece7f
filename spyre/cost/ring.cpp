#include "spyre/cost/ring.h"

#include <algorithm>
#include <cmath>

namespace spyre {

Nanos ring_chain_time(Bytes partial, int k, int hops, const Rates& rates) {
  return Nanos{double(partial.count()) / rates.ring} * double((k - 1) * hops);
}

Nanos relayout_time(Bytes bytes, int cores, Bytes run, int split, const Rates& rates) {
  const double per_core = double(bytes.count()) / cores;
  const double fan = std::clamp(split, 2, 8);
  const double per_piece = rates.relayout_row + rates.relayout_row_log * std::log2(fan);
  return {per_core / double(run.count()) * per_piece + per_core * fan / rates.relayout_bytes};
}

Nanos replicated_load_time(Bytes bytes, int copies, int cores, const Rates& rates) {
  const double size = double(bytes.count());
  if (copies <= 1) return {size / rates.hbm_one_way};
  return {copies * size / cores / rates.replicated_per_core};
}

}  // namespace spyre
