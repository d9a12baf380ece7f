#include "spyre/runtime/host_axis.h"

#include <gtest/gtest.h>

namespace spyre {
namespace {

Activity activity(int stream, double begin, double end, int64_t asked) {
  Activity made;
  made.stream = stream;
  made.span = {{begin}, {end}};
  made.asked = asked;
  return made;
}

TEST(HostAxis, NothingBeginsBeforeItWasAsked) {
  // a runs 0..10, asked at 1000; b runs 10..20, asked at 1005: it follows a. c runs 20..25, asked at 2000.
  const std::vector<Activity> activities = {activity(0, 0, 10, 1000), activity(0, 10, 20, 1005),
                                            activity(0, 20, 25, 2000)};
  const std::vector<HostSpan> shown = on_host_axis(activities);
  EXPECT_EQ(shown[0].begin, 1000);
  EXPECT_EQ(shown[1].begin, 1010);
  EXPECT_EQ(shown[2].begin, 2000);
  EXPECT_EQ(shown[2].end, 2005);
}

TEST(HostAxis, KeepsLengthsAndDoesNotMakeOverlap) {
  // Given in another order than they run: the late call of the first one moves those after it.
  const std::vector<Activity> activities = {activity(1, 30, 40, 100), activity(2, 0, 30, 500)};
  const std::vector<HostSpan> shown = on_host_axis(activities);
  EXPECT_EQ(shown[1].begin, 500);
  EXPECT_EQ(shown[1].end, 530);
  EXPECT_EQ(shown[0].begin, 530);
  EXPECT_EQ(shown[0].end, 540);
}

TEST(HostAxis, NeighboursMeetAtFractionsOfANanosecond) {
  const std::vector<Activity> activities = {activity(0, 0, 1.4, 7), activity(0, 1.4, 2.6, 7)};
  const std::vector<HostSpan> shown = on_host_axis(activities);
  EXPECT_EQ(shown[0].end, shown[1].begin);
  EXPECT_EQ(shown[1].end, 10);
}

}  // namespace
}  // namespace spyre
