#include "spyre/lx/plan_cost.h"

#include <gmock/gmock.h>

#include <numeric>

#include "spyre/cost/memory.h"
#include "spyre/lx/compulsory.h"
#include "spyre/lx/planner.h"
#include "spyre/lx/test_graphs.h"

namespace spyre::lx {
namespace {

using test::kTensor;

TEST(PlanCost, CountsEveryOperandThatIsNotInLx) {
  DeviceGraph graph = test::laid_out(test::elementwise("x=64; a = exp x; b = add a x"));
  EXPECT_EQ(cost_of(graph).value().read, kTensor * 3);
  EXPECT_EQ(cost_of(graph).value().written, kTensor * 2);
  graph.buffers[static_cast<size_t>(graph.find("a").value())].place = {BufferPlace::Kind::kLx, 0};
  EXPECT_EQ(cost_of(graph).value().read, kTensor * 2);
  EXPECT_EQ(cost_of(graph).value().written, kTensor);
}

// One row of 64 for all 64, which four cores need.
constexpr std::string_view kSharedRow = R"(graph g {
    input x : float16[64, 64] stride=[64, 1]
    input v : float16[64] stride=[1]
    buffer a : float16[64, 64] stride=[64, 1]
    node a (p0: 64/4, p1: 64) {
      v0 = load x[64*p0 + p1]
      v1 = load v[p1]
      v2 = add v0 v1
      store a[64*p0 + p1] v2
    }
    return a
  })";

TEST(PlanCost, WhatCoresShareIsCountedForEachAndPassesOnce) {
  const PlanCost cost = cost_of(test::laid_out(kSharedRow)).value();
  EXPECT_EQ(cost.read, kTensor + kStickBytes * 4);
  EXPECT_EQ(cost.passed, kTensor + kStickBytes);
}

TEST(PlanCost, FewCoresHoldUpWhatEachHasToItself) {
  const Rates& rates = fitted_rates();
  for (const int cores : {1, 2, 8, 32}) {
    const PlanCost cost = cost_of(test::laid_out(test::elementwise("x=64; a = exp x", cores))).value();
    const double moved = 2.0 * static_cast<double>(kTensor.count());  // x and a
    const double all = std::min(core_rate(cores, rates) * cores, rates.hbm_one_way);
    EXPECT_NEAR(cost.held.ns, moved / all - moved / rates.hbm_one_way, 1e-6) << cores;
  }
}

TEST(PlanCost, TrafficByBufferAddsUpToIt) {
  DeviceGraph graph = test::laid_out(test::elementwise("x=64; a = exp x; b = add a x; c = mul a b"));
  Planner({.capacity = kTensor}).plan(graph).value();
  const std::vector<Bytes> traffic = traffic_by_buffer(graph).value();
  const PlanCost cost = cost_of(graph).value();
  EXPECT_EQ(std::accumulate(traffic.begin(), traffic.end(), Bytes(0)), cost.read + cost.written);
}

TEST(PlanCost, SumsAndDifferencesGoByParts) {
  PlanCost a{.read = Bytes(3), .written = Bytes(5), .compute = {7}, .ring = {1}};
  const PlanCost b{.read = Bytes(1), .written = Bytes(2), .compute = {4}, .ring = {1}};
  a += b;
  EXPECT_EQ(a.read, Bytes(4));
  EXPECT_EQ(a.compute.ns, 11);
  a -= b;
  EXPECT_EQ(a.written, Bytes(5));
  EXPECT_EQ(a.ring.ns, 1);
}

TEST(PlanCost, AShuffleTakesLongerTheMoreItMoves) {
  const test::Analysed disagree(test::laid_out(test::kRowsThenColumns));
  const std::vector<TouchView>& views = disagree.analysis.views(disagree.id("a"));
  CoreView twice = *views[0].view;
  twice.runs.front().count *= 2;
  EXPECT_GT(shuffle_time(*views[0].view, *views[1].view).ns, 0);
  EXPECT_GT(shuffle_time(twice, *views[1].view).ns, shuffle_time(*views[0].view, *views[1].view).ns);
}

TEST(Compulsory, IsEveryInputAndEveryResultOnce) {
  const DeviceGraph graph = test::laid_out(test::elementwise("x=64; a = exp x; b = add a x; c = mul x x"));
  EXPECT_EQ(compulsory_bytes(graph).value(), kTensor * 3);  // x, b and c
}

TEST(Compulsory, OfAnInputOnlyWhatIsRead) {
  const DeviceGraph graph = test::laid_out(test::kLeftHalf);
  EXPECT_EQ(compulsory_bytes(graph).value(), kTensor * 2);
}

}  // namespace
}  // namespace spyre::lx
