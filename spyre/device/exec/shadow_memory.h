#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

namespace spyre::exec {

/// One number per stick of a memory: who wrote it last. 0 means nobody.
///
/// Kept in pages that are made when first written. A page of one number is stored as that number alone, so
/// that gigabytes the host wrote cost a few bytes per half megabyte; a mixed page costs 4 bytes per stick.
///
///     stick    0 ......... 4096 ......... 8192 ..
///     page    | 7 (whole) | 7 7 7 9 9 0 0 | none |
class ShadowMemory {
 public:
  /// Calls `visit(number, first, count)` for the longest runs of equal numbers in [first, first + count).
  template <typename Visit>
  void for_each_run(int64_t first, int64_t count, Visit&& visit) const {
    uint32_t current = 0;
    int64_t begin = first;
    const auto add = [&](uint32_t number, int64_t at) {
      if (number != current && at > begin) {
        visit(current, begin, at - begin);
        begin = at;
      }
      current = number;
    };
    const int64_t end = first + count;
    for (int64_t at = first; at < end;) {
      const int64_t page_end = std::min((at / kPage + 1) * kPage, end);
      const Page* page = find(at / kPage);
      if (page == nullptr || page->sticks.empty()) {
        add(page == nullptr ? 0 : page->whole, at);
      } else {
        const uint32_t* numbers = page->sticks.data() - at / kPage * kPage;
        for (int64_t i = at; i < page_end; ++i) {
          if (numbers[i] != current) {
            add(numbers[i], i);
          }
        }
      }
      at = page_end;
    }
    if (end > begin) {
      visit(current, begin, end - begin);
    }
  }

  /// Sets [first, first + count) to `number`. Forgetting (0) costs only what there is to forget.
  void fill(int64_t first, int64_t count, uint32_t number);

  void clear() { pages_.clear(); }

 private:
  static constexpr int64_t kPage = 4096;
  struct Page {
    uint32_t whole = 0;
    std::vector<uint32_t> sticks;  // empty: all of them `whole`
  };

  void fill_part(int64_t first, int64_t end, uint32_t number);  // within one page
  const Page* find(int64_t page) const {
    const auto found = pages_.find(page);
    return found == pages_.end() ? nullptr : &found->second;
  }

  std::map<int64_t, Page> pages_;
};

}  // namespace spyre::exec
