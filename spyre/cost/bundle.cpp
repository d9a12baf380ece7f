#include "spyre/cost/bundle.h"

#include <algorithm>

namespace spyre {

Nanos kernel_time(const BundleWork& work, const Rates& rates) {
  const Nanos again = {rates.reread_share * double(work.reread.count()) / rates.hbm_one_way};
  const Nanos memory = work.memory / std::min(1.0, work.efficiency) / work.spill + again;
  return work.compute + memory - std::min(work.compute, memory) * rates.overlap + work.relayout;
}

}  // namespace spyre
