#include "spyre/lx/kernel_time.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "spyre/cost/memory.h"
#include "spyre/cost/test_sweep.h"
#include "spyre/lx/plan_cost.h"
#include "spyre/lx/test_graphs.h"

namespace spyre::lx {
namespace {

// One core, so that nothing overlaps but what the schedule lets overlap. Tensors are 64 sticks.
struct OneCore {
  double bytes = static_cast<double>(test::kTensor.count());
  double load = bytes / core_rate(1, fitted_rates());
  double store =
      load + bytes * fitted_rates().turnaround;  // as many bytes as are read: stores turn the bus around
  double compute = bytes / fitted_rates().lx;
};

double time_of(std::string_view program, std::initializer_list<std::string_view> in_lx = {}) {
  DeviceGraph graph = test::laid_out(test::elementwise(program));
  int64_t address = 0;
  for (const std::string_view name : in_lx) {
    graph.buffers[static_cast<size_t>(graph.find(name).value())].place = {BufferPlace::Kind::kLx, address};
    address += test::kTensor.count();
  }
  return kernel_time(graph).value().ns;
}

TEST(KernelTime, OfOneOperationIsALoadAndAStore) {
  // load x | store a
  const OneCore one;
  EXPECT_NEAR(time_of("x=64; a = exp x"), one.load + one.store, 1e-6);
}

TEST(KernelTime, WhoReadsWhatWasStoredWaitsForIt) {
  // load x | store a | load a | store b
  const OneCore one;
  EXPECT_NEAR(time_of("x=64; a = exp x; b = neg a"), 2 * (one.load + one.store), 1e-6);
}

TEST(KernelTime, OperationsInLxComputeWhileTheMemoryStores) {
  // load x | store b        what computes from LX meanwhile is shorter
  //        | b
  const OneCore one;
  ASSERT_LT(one.compute, one.store);
  EXPECT_NEAR(time_of("x=64; a = exp x; b = neg a", {"a"}), one.load + one.store, 1e-6);
}

TEST(KernelTime, LoadsOfTheNextOperationGoFirst) {
  // load x | load y | store a | store b      a and b need nothing of each other
  const OneCore one;
  EXPECT_NEAR(time_of("x=64; y=64; a = exp x; b = neg y"), 2 * (one.load + one.store), 1e-6);
}

TEST(KernelTime, OfNothingIsNothing) {
  DeviceGraph graph;
  EXPECT_EQ(kernel_time(graph).value().ns, 0);
}

DeviceGraph product(const Measured& row) {
  const auto& [batch, m, n, k, shared, in, out] = row.shape;
  return test::laid_out(fmt::format(R"(graph g {{
  input x : float16[{0}, {2}] stride=[{2}, 1]
  input w : float16[{2}, {1}] stride=[{1}, 1]
  buffer y : float16[{0}, {1}] stride=[{1}, 1]
  node y (p0: {0}/{3}, p1: {1}/{4}; r0: {2}/{5}) {{
    v0 = load x[{2}*p0 + r0]
    v1 = load w[{1}*r0 + p1]
    v2 = reduce.batchmatmul v0 v1
    store y[{1}*p0 + p1] v2
  }}
  return y
}})",
                                    m, n, k, row.split.m, row.split.n, row.split.k));
}

// By how much the split that a measure likes best is slower, as measured, than the best: on average over projections and
// numbers of rows.
double mean_regret(Nanos (*measure)(const DeviceGraph&)) {
  double regret = 0;
  int groups = 0;
  for (const auto& [name, all] : read_sweep()) {
    std::map<int64_t, std::vector<Measured>> by_rows;
    for (const Measured& row : all) by_rows[row.shape.m].push_back(row);
    for (const auto& [rows, group] : by_rows) {
      const auto cost = [&](const Measured& row) { return measure(product(row)).ns; };
      const auto faster = [](const Measured& a, const Measured& b) { return a.us < b.us; };
      const auto cheaper = [&](const Measured& a, const Measured& b) { return cost(a) < cost(b); };
      const double chosen = std::ranges::min_element(group, cheaper)->us;
      regret += chosen / std::ranges::min_element(group, faster)->us - 1;
      ++groups;
    }
  }
  return regret / groups;
}

TEST(KernelTime, PicksSplitsOfDecodeMatmulsThatWereMeasuredFast) {
  const double by_time = mean_regret([](const DeviceGraph& graph) { return kernel_time(graph).value(); });
  const double by_traffic =
      mean_regret([](const DeviceGraph& graph) { return cost_of(graph).value().total(Objective::kTraffic); });
  RecordProperty("by_time", std::to_string(by_time));
  RecordProperty("by_traffic", std::to_string(by_traffic));
  EXPECT_LT(by_time, 0.06);
  EXPECT_GT(by_traffic, 0.08);
}

}  // namespace
}  // namespace spyre::lx
