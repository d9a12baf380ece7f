#include "spyre/cost/copy.h"

namespace spyre {

Nanos link_copy_time(Bytes size, const Rates& rates) {
  return {rates.link_start + static_cast<double>(size.count()) / rates.link};
}

Nanos fill_time(Bytes size, const Rates& rates) {
  return {static_cast<double>(size.count()) / rates.hbm_one_way};
}

Nanos card_copy_time(Bytes size, const Rates& rates) {
  const auto bytes = static_cast<double>(size.count());
  return {2 * bytes / rates.hbm_one_way + bytes * rates.turnaround};
}

}  // namespace spyre
