#include "spyre/lx/planner.h"

#include <gmock/gmock.h>

#include "spyre/base/json.h"
#include "spyre/lx/test_graphs.h"

namespace spyre::lx {
namespace {

using test::kTensor;

// A fills LX for two readers, then B for three, then A again for two.
DeviceGraph taking_turns() {
  return test::laid_out(test::elementwise(
      "A=64; B=64; c1 = exp A; c2 = neg A; c3 = exp B; c4 = neg B; c5 = abs B; c6 = sqrt A; c7 = abs A"));
}

TEST(UsableLx, IsWhatTheBackEndLeavesBehind) {
  EXPECT_EQ(usable_lx(0).value(), Bytes(2031616));
  EXPECT_EQ(usable_lx(0.2).value(), Bytes(1625344));
  EXPECT_EQ(usable_lx(1).value(), Bytes(0));
  EXPECT_EQ(PlannerOptions().capacity, usable_lx(0.2).value());
}

TEST(UsableLx, RefusesWhatIsNoFraction) {
  EXPECT_EQ(usable_lx(-0.1).error().message, "DXP_LX_FRAC_AVAIL is -0.1, allowed are 0 to 1");
  EXPECT_FALSE(usable_lx(1.1).ok());
  EXPECT_FALSE(usable_lx(std::numeric_limits<double>::quiet_NaN()).ok());
}

TEST(Planner, RemembersWhatItsSolverAnswered) {
  Planner planner({.capacity = kTensor});
  int answers = 0;
  const auto count = [&] { ++answers; };
  DeviceGraph first = taking_turns(), second = first;
  const Plan plan = planner.plan(first, Effort::kFull, count).value();
  EXPECT_EQ(answers, 2);  // whole live ranges, then segments too
  EXPECT_EQ(planner.plan(second, Effort::kFull, count).value().to_json(), plan.to_json());
  EXPECT_EQ(answers, 2);
  EXPECT_EQ(second, first);
}

TEST(Planner, GivesEveryGraphThePlanOfANewPlanner) {
  Planner planner({.capacity = kTensor});
  for (const char* program :
       {"x=64; a = exp x; b = neg a", "x=64; a = exp x; b = abs a", "x=64; a = exp x; b = neg a"}) {
    DeviceGraph graph = test::laid_out(test::elementwise(program)), other = graph;
    EXPECT_EQ(planner.plan(graph).value().to_json(),
              Planner({.capacity = kTensor}).plan(other).value().to_json());
    EXPECT_EQ(graph, other);
  }
}

TEST(Planner, AsksForSegmentsOnlyWhereThatIsWorthTheEffort) {
  DeviceGraph quick = taking_turns(), full = quick;
  EXPECT_EQ(Planner({.capacity = kTensor}).plan(quick, Effort::kWholeLives).value().saved(), kTensor * 3);
  EXPECT_EQ(Planner({.capacity = kTensor}).plan(full).value().saved(), kTensor * 4);
  int answers = 0;
  DeviceGraph roomy = taking_turns();
  Planner({.capacity = kTensor * 2}).plan(roomy, Effort::kFull, [&] { ++answers; }).value();
  EXPECT_EQ(answers, 1);
}

TEST(Planner, RefusesASolverItDoesNotKnow) {
  DeviceGraph graph = taking_turns();
  EXPECT_FALSE(Planner({.solver = "oracle"}).plan(graph).ok());
}

}  // namespace
}  // namespace spyre::lx
