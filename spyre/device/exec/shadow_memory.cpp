#include "spyre/device/exec/shadow_memory.h"

namespace spyre::exec {

void ShadowMemory::fill(int64_t first, int64_t count, uint32_t number) {
  const int64_t end = first + count;
  const int64_t whole_begin = (first + kPage - 1) / kPage, whole_end = end / kPage;  // pages wholly inside
  if (whole_begin >= whole_end) {
    for (int64_t at = first; at < end; at = std::min((at / kPage + 1) * kPage, end)) {
      fill_part(at, std::min((at / kPage + 1) * kPage, end), number);
    }
    return;
  }
  fill_part(first, whole_begin * kPage, number);
  pages_.erase(pages_.lower_bound(whole_begin), pages_.lower_bound(whole_end));
  for (int64_t page = whole_begin; page < whole_end && number != 0; ++page) {
    pages_.emplace(page, Page{.whole = number});
  }
  fill_part(whole_end * kPage, end, number);
}

void ShadowMemory::fill_part(int64_t first, int64_t end, uint32_t number) {
  if (first == end || (number == 0 && find(first / kPage) == nullptr)) {
    return;
  }
  Page& page = pages_[first / kPage];
  if (page.sticks.empty() && page.whole == number) {
    return;
  }
  if (page.sticks.empty()) {
    page.sticks.assign(kPage, page.whole);
  }
  const int64_t page_begin = first / kPage * kPage;
  std::fill(page.sticks.begin() + (first - page_begin), page.sticks.begin() + (end - page_begin), number);
}

}  // namespace spyre::exec
