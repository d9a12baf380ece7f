#include "spyre/device/timing/least_bytes.h"

#include <algorithm>
#include <iterator>

namespace spyre::timing {

int64_t LeastBytes::Addresses::add(AddressRange range) {
  const AddressRange added = range;
  int64_t fresh = range.end - range.begin;
  auto next = ranges_.upper_bound(range.begin);
  if (next != ranges_.begin() && std::prev(next)->second >= range.begin) --next;
  while (next != ranges_.end() && next->first <= range.end) {
    fresh -= std::max<int64_t>(0, std::min(added.end, next->second) - std::max(added.begin, next->first));
    range.begin = std::min(range.begin, next->first);
    range.end = std::max(range.end, next->second);
    next = ranges_.erase(next);
  }
  ranges_[range.begin] = range.end;
  return fresh;
}

}  // namespace spyre::timing
