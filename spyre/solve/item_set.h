#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

namespace spyre::solve {

/// A set of item indices, one bit each. All sets that meet in an operation hold the same number of bits.
class ItemSet {
 public:
  explicit ItemSet(int items = 0) : words_((items + 63) / 64) {}

  void insert(int i) { words_[i / 64] |= uint64_t{1} << (i % 64); }
  void erase(int i) { words_[i / 64] &= ~(uint64_t{1} << (i % 64)); }
  bool contains(int i) const { return words_[i / 64] >> (i % 64) & 1; }
  void clear() { std::fill(words_.begin(), words_.end(), 0); }

  ItemSet& operator|=(const ItemSet& other) {
    for (size_t w = 0; w < words_.size(); ++w) words_[w] |= other.words_[w];
    return *this;
  }
  /// Inserts what both others hold.
  void insert_common(const ItemSet& a, const ItemSet& b) {
    for (size_t w = 0; w < words_.size(); ++w) words_[w] |= a.words_[w] & b.words_[w];
  }
  /// Calls visit(item) for each item that both sets hold, in ascending order. `visit` may erase it from
  /// either.
  template <typename Visit>
  void each_common(const ItemSet& other, Visit visit) const {
    for (size_t w = 0; w < words_.size(); ++w) {
      for (uint64_t both = words_[w] & other.words_[w]; both != 0; both &= both - 1) {
        visit(int(w * 64) + std::countr_zero(both));
      }
    }
  }

 private:
  std::vector<uint64_t> words_;
};

}  // namespace spyre::solve
