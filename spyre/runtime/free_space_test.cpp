#include "spyre/runtime/free_space.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "spyre/base/error.h"

namespace spyre {
namespace {

/// Obviously right and slow: knows only what is taken, and looks at every gap every time.
class NaiveSpace {
 public:
  NaiveSpace(std::vector<DeviceRange> windows, Fit fit) : windows_(std::move(windows)), fit_(fit) {}

  std::vector<DeviceRange> gaps(const DeviceRange& window) const {
    std::vector<DeviceRange> inside;
    for (const DeviceRange& range : taken) {
      if (window.contains(range.begin)) {
        inside.push_back(range);
      }
    }
    std::sort(inside.begin(), inside.end(), [](auto& a, auto& b) { return a.begin < b.begin; });
    std::vector<DeviceRange> out;
    DeviceAddress at = window.begin;
    for (const DeviceRange& range : inside) {
      if (at < range.begin) {
        out.push_back({at, range.begin - at});
      }
      at = range.end();
    }
    if (at < window.end()) {
      out.push_back({at, window.end() - at});
    }
    return out;
  }

  Bytes free_in(const DeviceRange& window) const {
    Bytes sum;
    for (const DeviceRange& gap : gaps(window)) {
      sum += gap.size;
    }
    return sum;
  }

  std::optional<DeviceAddress> take(Bytes size) {
    std::optional<DeviceRange> best;
    std::vector<DeviceRange> order = windows_;
    if (fit_ == Fit::kRoomiestThenFirst) {
      std::stable_sort(order.begin(), order.end(), [&](auto& a, auto& b) { return free_in(a) > free_in(b); });
    }
    for (const DeviceRange& window : order) {
      for (const DeviceRange& gap : gaps(window)) {
        const bool better =
            !best || (fit_ == Fit::kBest &&
                      (gap.size < best->size || (gap.size == best->size && gap.begin < best->begin)));
        if (gap.size >= size && better) {
          best = gap;
        }
      }
    }
    if (!best) {
      return std::nullopt;
    }
    taken.push_back({best->begin, size});
    return best->begin;
  }

  std::vector<DeviceRange> taken;

 private:
  std::vector<DeviceRange> windows_;
  Fit fit_;
};

std::vector<DeviceRange> three_windows() {
  return {{DeviceAddress(0), Bytes(64)}, {DeviceAddress(64), Bytes(64)}, {DeviceAddress(200), Bytes(40)}};
}

void expect_same_figures(const FreeSpace& space, const NaiveSpace& naive) {
  Bytes free, largest, hole_bytes;
  int64_t holes = 0, used = 0;
  for (size_t w = 0; w < space.windows().size(); ++w) {
    const DeviceRange& window = space.windows()[w];
    const auto gaps = naive.gaps(window);
    EXPECT_EQ(space.free_blocks(w), gaps);
    for (const DeviceRange& gap : gaps) {
      free += gap.size;
      largest = std::max(largest, gap.size);
      if (gap.end() != window.end()) {
        ++holes;
        hole_bytes += gap.size;
      }
    }
    used += naive.free_in(window) < window.size ? 1 : 0;
  }
  EXPECT_EQ(space.free_bytes(), free);
  EXPECT_EQ(space.largest_free(), largest);
  EXPECT_EQ(space.holes(), holes);
  EXPECT_EQ(space.hole_bytes(), hole_bytes);
  EXPECT_EQ(space.windows_in_use(), used);
}

class FreeSpaceProperty : public testing::TestWithParam<Fit> {};

TEST_P(FreeSpaceProperty, AgreesWithTheNaiveModelOverRandomTraffic) {
  constexpr unsigned kSeed = 20251107;
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  std::mt19937 random(kSeed);
  FreeSpace space(three_windows(), GetParam());
  NaiveSpace naive(three_windows(), GetParam());
  int refused = 0;
  for (int step = 0; step < 5000 && !testing::Test::HasFailure(); ++step) {
    SCOPED_TRACE(testing::Message() << "step " << step);
    if (naive.taken.empty() || random() % 5 < 3) {
      const Bytes size(1 + static_cast<int64_t>(random() % 20));
      const auto expected = naive.take(size);
      EXPECT_EQ(space.take(size), expected);
      refused += expected ? 0 : 1;
    } else {
      const size_t victim = random() % naive.taken.size();
      space.give_back(naive.taken[victim]);
      naive.taken.erase(naive.taken.begin() + static_cast<ptrdiff_t>(victim));
    }
    expect_same_figures(space, naive);
  }
  EXPECT_GT(refused, 100) << "the traffic never filled the space";
}

INSTANTIATE_TEST_SUITE_P(Each, FreeSpaceProperty, testing::Values(Fit::kBest, Fit::kRoomiestThenFirst),
                         [](const auto& fit) { return fit.param == Fit::kBest ? "best" : "roomiest_first"; });

TEST(FreeSpace, BestFitTakesTheSmallestHoleThatIsLargeEnough) {
  FreeSpace space({{DeviceAddress(0), Bytes(100)}}, Fit::kBest);
  // |aaaaaaaaaa|b|cccc|d|............|  then a and c are given back
  const auto a = *space.take(Bytes(10));
  (void)space.take(Bytes(1));
  const auto c = *space.take(Bytes(4));
  (void)space.take(Bytes(1));
  space.give_back({a, Bytes(10)});
  space.give_back({c, Bytes(4)});
  EXPECT_EQ(space.take(Bytes(3)), c);
  EXPECT_EQ(space.take(Bytes(10)), a);
}

TEST(FreeSpace, ABlockGivenBackMergesWithBothNeighbours) {
  FreeSpace space({{DeviceAddress(0), Bytes(30)}}, Fit::kBest);
  const auto a = *space.take(Bytes(10)), b = *space.take(Bytes(10)), c = *space.take(Bytes(10));
  space.give_back({a, Bytes(10)});
  space.give_back({c, Bytes(10)});
  EXPECT_EQ(space.largest_free(), Bytes(10));
  space.give_back({b, Bytes(10)});
  EXPECT_EQ(space.largest_free(), Bytes(30));
}

TEST(FreeSpace, BlocksNeverCrossAWindowAlthoughTheyTouch) {
  FreeSpace space({{DeviceAddress(0), Bytes(64)}, {DeviceAddress(64), Bytes(64)}}, Fit::kBest);
  EXPECT_EQ(space.take(Bytes(65)), std::nullopt);
  EXPECT_EQ(space.take(Bytes(64)), DeviceAddress(0));
  EXPECT_EQ(space.take(Bytes(64)), DeviceAddress(64));
}

TEST(FreeSpace, GivingBackTwiceIsABug) {
  FreeSpace space({{DeviceAddress(0), Bytes(64)}}, Fit::kBest);
  const auto a = *space.take(Bytes(8));
  space.give_back({a, Bytes(8)});
  EXPECT_THROW(space.give_back({a, Bytes(8)}), InternalError);
}

}  // namespace
}  // namespace spyre
