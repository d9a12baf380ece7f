#include "spyre/lx/plan_entries.h"

#include <gmock/gmock.h>

#include "spyre/lx/planner.h"
#include "spyre/lx/test_graphs.h"

namespace spyre::lx {
namespace {

using test::kTensor;
using ::testing::ElementsAre;

Plan plan_of(std::string_view program, Bytes capacity) {
  DeviceGraph graph = test::laid_out(program);
  return Planner({.capacity = capacity}).plan(graph).value();
}

const Plan::Entry& entry_named(const Plan& plan, std::string_view name) {
  for (const Plan::Entry& entry : plan.entries) {
    if (entry.buffer == name) return entry;
  }
  throw std::out_of_range(std::string(name));
}

TEST(PlanEntries, SayWhereABufferIsAndWhoTouchesIt) {
  const Plan plan = plan_of(test::elementwise("x=64; a = exp x; b = neg a; c = add a b"), kTensor * 2);
  const Plan::Entry& a = entry_named(plan, "a");
  EXPECT_TRUE(a.address.has_value());
  EXPECT_THAT(a.made_by, ElementsAre(0));
  EXPECT_THAT(a.read_by, ElementsAre(1, 2));
  EXPECT_EQ(a.saves, kTensor * 3);
  EXPECT_EQ(entry_named(plan, "x").reason, "graph input, read once");
  EXPECT_EQ(entry_named(plan, "c").reason, "graph output");
}

TEST(PlanEntries, NameTheOperandWhoseSlotWasTakenOver) {
  const Plan plan = plan_of(test::elementwise("x=64; a = exp x; b = neg a; c = abs b"), kTensor);
  EXPECT_EQ(entry_named(plan, "b").in_place_of, "a");
  EXPECT_EQ(entry_named(plan, "b").address, entry_named(plan, "a").address);
}

TEST(PlanEntries, ACopyInAnotherDivisionHasItsOwnReaders) {
  const Plan plan = plan_of(test::kRowsThenColumns, kTensor * 8);
  EXPECT_EQ(entry_named(plan, "a#1").copy_of, "a");
  EXPECT_THAT(entry_named(plan, "a#1").read_by, ElementsAre(1));
  EXPECT_THAT(entry_named(plan, "a").read_by, ElementsAre());
}

TEST(PlanEntries, ASegmentSaysWhenItLeftAndCameBack) {
  const Plan plan =
      plan_of(test::elementwise("A=64; B=64; c1 = exp A; c2 = neg A; c3 = exp B; c4 = neg B; c5 = abs B; "
                                "c6 = sqrt A; c7 = abs A"),
              kTensor);
  EXPECT_EQ(entry_named(plan, "A").evicted_after, 1);
  EXPECT_EQ(entry_named(plan, "A@2").part_of, "A");
  EXPECT_EQ(entry_named(plan, "A@2").reloaded_before, 5);
  EXPECT_EQ(entry_named(plan, "A@2").pays, kTensor);
}

// Two live together, room for one, and no idle gap to share it in.
TEST(PlanEntries, WhatFoundNoRoomSaysSo) {
  const Plan plan = plan_of(
      test::elementwise("x=64; y=64; a = exp x; b = exp y; c = add a b; d = mul a b; e = sub a b; f = neg a"),
      kTensor);
  EXPECT_EQ(entry_named(plan, "b").reason, "no room on scratchpad");
  const Plan none = plan_of(test::elementwise("x=64; a = exp x; b = neg a"), kTensor / 2);
  EXPECT_EQ(entry_named(none, "a").reason, "capacity");
}

}  // namespace
}  // namespace spyre::lx
