#include "spyre/layout/view_geometry.h"

#include <gtest/gtest.h>

namespace spyre {
namespace {

TEST(ViewGeometry, IsTheWholeBaseInAnyOrderOfItsAxes) {
  EXPECT_TRUE(ViewGeometry::of({4, 6}, {6, 1}, 0, 24).whole_base);
  EXPECT_TRUE(ViewGeometry::of({6, 4}, {1, 6}, 0, 24).whole_base);
  EXPECT_TRUE(ViewGeometry::of({2, 1, 12}, {12, 99, 1}, 0, 24).whole_base);
  EXPECT_TRUE(ViewGeometry::of({}, {}, 0, 1).whole_base);
}

TEST(ViewGeometry, IsAPartWhenItSkipsRepeatsOrStartsLater) {
  EXPECT_FALSE(ViewGeometry::of({3, 6}, {6, 1}, 0, 24).whole_base);  // fewer rows
  EXPECT_FALSE(ViewGeometry::of({4, 3}, {6, 2}, 0, 24).whole_base);  // every other column
  EXPECT_FALSE(ViewGeometry::of({4, 6}, {0, 1}, 0, 24).whole_base);  // one row, four times
  EXPECT_FALSE(ViewGeometry::of({3, 6}, {6, 1}, 6, 18).whole_base);  // starts at row 1
}

}  // namespace
}  // namespace spyre
