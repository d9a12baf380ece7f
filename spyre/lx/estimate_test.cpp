#include "spyre/lx/estimate.h"

#include <gmock/gmock.h>

#include <random>

namespace spyre::lx {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const CoreView kOneView, kOtherView{.runs = {{1, 2}}, .first = {0}};

Claim claim(int64_t begin, int64_t end, int64_t size, double gain, const CoreView* view = &kOneView) {
  return {.pieces = {{begin, end, size}}, .view = view, .gain = gain};
}

//   step   0 1 2 3 4 5
//   A 4    a a a a          worth 2 a byte
//   B 4        b b b b      worth 1 a byte
TEST(Estimate, WhatGainsLeastForItsSizeLeaves) {
  const std::vector<Claim> claims = {claim(0, 4, 4, 8), claim(2, 6, 4, 4)};
  Estimate estimate(10, {{}, {}});
  estimate.start(6, claims);
  EXPECT_EQ(estimate.overload(), 2 + 2);  // two bytes too many in steps 2 and 3
  EXPECT_THAT(estimate.make_room(estimate.all()), ElementsAre(1));
  EXPECT_TRUE(estimate.in_lx(0));
  EXPECT_EQ(estimate.overload(), 0);
  estimate.start(8, claims);
  EXPECT_THAT(estimate.make_room(estimate.all()), IsEmpty());
}

TEST(Estimate, ASlotThatIsTakenOverIsCountedOnce) {
  //   A  a a a a        C begins in the step in which A ends
  //   C        c c c
  const std::vector<Claim> claims = {claim(0, 4, 4, 8), claim(3, 6, 4, 4)};
  Estimate on_top(10, {{}, {0}}), apart(10, {{}, {}});
  on_top.start(4, claims);
  EXPECT_EQ(on_top.overload(), 0);
  apart.start(4, claims);
  EXPECT_EQ(apart.overload(), 4);
}

TEST(Estimate, ASlotIsTakenOverOnlyWithTheSameViewAndWhenTheOtherDies) {
  for (const Claim& child : {claim(3, 6, 4, 4, &kOtherView), claim(2, 6, 4, 4)}) {
    const std::vector<Claim> claims = {claim(0, 4, 4, 8), child};
    Estimate estimate(10, {{}, {0}});
    estimate.start(4, claims);
    EXPECT_GT(estimate.overload(), 0);
  }
}

TEST(Estimate, WhoLosesItsParentNeedsRoomOfItsOwn) {
  //   A  a a a a            worth nothing: it leaves for D, and C then begins at step 3 by itself
  //   C        c c c
  //   D  d
  const std::vector<Claim> claims = {claim(0, 4, 4, 0), claim(3, 6, 4, 4), claim(0, 1, 4, 9)};
  Estimate estimate(10, {{}, {0}, {}});
  estimate.start(4, claims);
  EXPECT_THAT(estimate.make_room(estimate.all()), ElementsAre(0));
  EXPECT_EQ(estimate.overload(), 0);
  estimate.set(0, &claims[0], true);
  estimate.settle(0);
  EXPECT_EQ(estimate.overload(), 4);  // D at step 0; A and C share step 3 again
}

TEST(Estimate, ACopyCountsBesideItsSource) {
  std::vector<Claim> both = {claim(0, 6, 4, 8)};
  both[0].pieces.push_back({4, 8, 4});
  Estimate estimate(10, {{}});
  estimate.start(7, both);
  EXPECT_EQ(estimate.overload(), 1 + 1);
  EXPECT_THAT(estimate.make_room(estimate.all()), ElementsAre(0));
}

// Random claims: one sweep, item after item, and item after item with changes that are undone, agree.
TEST(Estimate, SweepAndSingleStepsAgreeAndUndoLeavesNothingBehind) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&](int64_t n) { return static_cast<int64_t>(random() % static_cast<unsigned>(n)); };
    std::vector<Claim> claims;
    std::vector<std::vector<size_t>> parents;
    for (size_t i = 0; i < 8; ++i) {
      const int64_t begin = below(20), end = begin + 1 + below(9);
      claims.push_back(claim(begin, end, 1 + below(8), static_cast<double>(below(50)),
                             below(4) ? &kOneView : &kOtherView));
      if (below(3) == 0) claims.back().pieces.push_back({end - 1, end + below(4), 1 + below(8)});
      parents.emplace_back();
      for (size_t p = 0; p < i; ++p) {
        if (claims[p].pieces[0].end == begin + 1 && claims[p].pieces[0].size == claims[i].pieces[0].size)
          parents[i].push_back(p);
      }
    }
    Estimate sweep(40, parents), single(40, parents);
    sweep.start(12, claims);
    single.start(12);
    for (size_t i = 0; i < claims.size(); ++i) single.set(i, &claims[i], true);
    for (size_t i = 0; i < claims.size(); ++i) single.settle(i);
    ASSERT_EQ(single.overload(), sweep.overload()) << "seed " << seed;
    single.mark();
    single.set(static_cast<size_t>(below(8)), &claims[0], false);
    single.make_room(single.all());
    single.undo();
    ASSERT_EQ(single.overload(), sweep.overload()) << "seed " << seed;
    ASSERT_EQ(single.make_room(single.all()), sweep.make_room(sweep.all())) << "seed " << seed;
    ASSERT_EQ(sweep.overload(), 0) << "seed " << seed;
  }
}

TEST(Window, GrowsWithWhatItIncludes) {
  Window window{5, 6};
  EXPECT_FALSE(window.meets(claim(0, 5, 1, 1)));
  window.include(claim(2, 4, 1, 1));
  EXPECT_EQ(window.begin, 2);
  EXPECT_EQ(window.end, 6);
  EXPECT_TRUE(window.meets(claim(0, 5, 1, 1)));
}

}  // namespace
}  // namespace spyre::lx
