#include "spyre/lx/trial_plan.h"

#include <gmock/gmock.h>

#include <random>

#include "spyre/lx/test_graphs.h"

namespace spyre::lx {
namespace {

// A softmax over rows; every node may cut its loops in up to eight parts.
struct Trial {
  test::Analysed softmax{test::laid_out(test::column_softmax(512, 1024, "realdiv"))};
  std::vector<std::vector<Division>> divisions;

  Trial() {
    const GraphAccess& access = softmax.analysis.access();
    for (size_t n = 0; n < access.ops.size(); ++n) {
      divisions.emplace_back();
      for (const int64_t first : {1, 2, 4, 8}) {
        for (const int64_t second : {1, 2, 4, 8}) {
          if (first * second > 8) continue;
          NormalOp op = access.ops[n];
          op.access.loops[0].split = first;
          op.access.loops[1].split = second;
          divisions.back().push_back(division_of(softmax.analysis, op, access.layouts[n]));
        }
      }
    }
  }

  TrialPlan plan() const {
    std::vector<const std::vector<Division>*> by_node;
    for (const std::vector<Division>& node : divisions) by_node.push_back(&node);
    return TrialPlan(softmax.analysis, by_node, Objective::kTraffic);
  }
};

// With room for everything, for some buffers, and for none.
class TrialPlans : public testing::TestWithParam<int64_t> {};
INSTANTIATE_TEST_SUITE_P(Rooms, TrialPlans, testing::Values(1 << 20, 300'000, 0));

TEST_P(TrialPlans, ChangesCostWhatAFreshPlanCosts) {
  const Trial trial;
  TrialPlan plan = trial.plan();
  plan.start(GetParam());
  const double before = plan.cost();
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    std::vector<TrialPlan::Change> changes;
    for (size_t n = 0; n < trial.divisions.size(); ++n) {
      const auto choices = static_cast<unsigned>(trial.divisions[n].size());
      if (random() % 2 == 0) changes.emplace_back(n, static_cast<int>(random() % choices));
    }
    plan.change(changes);
    TrialPlan fresh = trial.plan();
    fresh.start(GetParam());
    fresh.change(changes);
    EXPECT_DOUBLE_EQ(plan.cost(), fresh.cost()) << "round " << round;
    plan.take_back();
    ASSERT_EQ(plan.cost(), before) << "round " << round;
    for (size_t n = 0; n < trial.divisions.size(); ++n) ASSERT_EQ(plan.chosen(n), 0);
  }
}

TEST_P(TrialPlans, ChangesAddUp) {
  const Trial trial;
  TrialPlan plan = trial.plan(), fresh = trial.plan();
  plan.start(GetParam());
  std::mt19937 random(8);
  for (int round = 0; round < 100; ++round) {
    const size_t node = random() % trial.divisions.size();
    const auto choices = static_cast<unsigned>(trial.divisions[node].size());
    plan.change({{node, static_cast<int>(random() % choices)}});
  }
  std::vector<TrialPlan::Change> all;
  for (size_t n = 0; n < trial.divisions.size(); ++n) all.emplace_back(n, plan.chosen(n));
  fresh.start(GetParam());
  fresh.change(all);
  EXPECT_NEAR(plan.cost(), fresh.cost(), 1e-6 * fresh.cost());
}

TEST(TrialPlan, RoomIsWorthSomething) {
  const Trial trial;
  TrialPlan plan = trial.plan();
  plan.start(0);
  const double without = plan.cost();
  plan.start(1 << 20);
  EXPECT_LT(plan.cost(), without);
}

// With room for everything, the estimate of the whole graph is what the planned graph costs.
TEST(TrialPlan, AnEndlessLxCostsWhatThePlanCosts) {
  const Trial trial;
  TrialPlan plan = trial.plan();
  plan.start(int64_t{1} << 40);
  PlanCost cost;
  for (size_t n = 0; n < trial.divisions.size(); ++n) cost += trial.divisions[n][0].work;
  cost += traffic_cost(copy_traffic(test::kTensor * 128, 1), false, 1);  // x, fetched once: 512 x 1024
  cost += traffic_cost(copy_traffic(test::kTensor * 128, 1), true, 1);   // y
  EXPECT_NEAR(plan.cost(), cost.total(Objective::kTraffic).ns, 1e-6 * cost.total(Objective::kTraffic).ns);
}

}  // namespace
}  // namespace spyre::lx
