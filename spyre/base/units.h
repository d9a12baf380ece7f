#pragma once

#include <compare>
#include <cstdint>
#include <functional>

namespace spyre {

/// A count that cannot be mixed with a count of something else.
///
/// Same-unit sums, differences and comparisons work, scaling by a plain number works, a ratio of two is a
/// plain number. Passing from one unit to another takes a named function, so that every such step can be
/// found.
template <typename Tag>
class Count {
 public:
  constexpr Count() = default;
  constexpr explicit Count(int64_t count) : count_(count) {}

  constexpr int64_t count() const { return count_; }

  friend constexpr auto operator<=>(Count, Count) = default;
  friend constexpr Count operator+(Count a, Count b) { return Count(a.count_ + b.count_); }
  friend constexpr Count operator-(Count a, Count b) { return Count(a.count_ - b.count_); }
  friend constexpr Count operator*(Count a, int64_t n) { return Count(a.count_ * n); }
  friend constexpr Count operator*(int64_t n, Count a) { return Count(a.count_ * n); }
  friend constexpr Count operator/(Count a, int64_t n) { return Count(a.count_ / n); }
  friend constexpr int64_t operator/(Count a, Count b) { return a.count_ / b.count_; }
  friend constexpr Count operator%(Count a, Count b) { return Count(a.count_ % b.count_); }
  constexpr Count& operator+=(Count b) {
    count_ += b.count_;
    return *this;
  }
  constexpr Count& operator-=(Count b) {
    count_ -= b.count_;
    return *this;
  }

 private:
  int64_t count_ = 0;
};

using Bytes = Count<struct BytesTag>;
using Sticks = Count<struct SticksTag>;  ///< 128-byte units of transfer
using Elems = Count<struct ElemsTag>;
using Cycles = Count<struct CyclesTag>;  ///< of the card's core clock

constexpr Bytes kibibytes(int64_t n) {
  return Bytes(n << 10);
}
constexpr Bytes mebibytes(int64_t n) {
  return Bytes(n << 20);
}
constexpr Bytes gibibytes(int64_t n) {
  return Bytes(n << 30);
}

constexpr int64_t ceil_div(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}
/// Towards minus infinity, as `/` is not; `d` is positive.
constexpr int64_t floor_quotient(int64_t a, int64_t d) {
  return a / d - (a % d < 0 ? 1 : 0);
}
constexpr int64_t round_up(int64_t a, int64_t multiple) {
  return ceil_div(a, multiple) * multiple;
}
constexpr Bytes round_up(Bytes a, Bytes multiple) {
  return Bytes(round_up(a.count(), multiple.count()));
}

}  // namespace spyre

template <typename Tag>
struct std::hash<spyre::Count<Tag>> {
  size_t operator()(spyre::Count<Tag> value) const noexcept { return std::hash<int64_t>()(value.count()); }
};
