#include "spyre/device/exec/shadow_memory.h"

namespace spyre::exec {

void ShadowMemory::fill(int64_t first, int64_t count, uint32_t number) {
  const int64_t end = first + count;
  for (int64_t at = first; at < end;) {
    const int64_t index = at / kPage, page_begin = index * kPage;
    const int64_t stop = std::min(page_begin + kPage, end);
    if (at == page_begin && stop == page_begin + kPage) {
      if (number == 0) {
        pages_.erase(index);
      } else {
        pages_[index] = Page{.whole = number};
      }
    } else {
      Page& page = pages_[index];
      if (page.sticks.empty() && page.whole != number) {
        page.sticks.assign(kPage, page.whole);
      }
      if (!page.sticks.empty()) {
        std::fill(page.sticks.begin() + (at - page_begin), page.sticks.begin() + (stop - page_begin), number);
      }
    }
    at = stop;
  }
}

}  // namespace spyre::exec
