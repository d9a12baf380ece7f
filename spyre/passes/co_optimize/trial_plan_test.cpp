#include "spyre/passes/co_optimize/trial_plan.h"

#include <gmock/gmock.h>

#include <random>

#include "spyre/passes/scratchpad/test_graphs.h"

namespace spyre {
namespace {

struct Trial {
  Graph graph = test::divided(test::column_softmax(512, 1024), 8);
  GraphAccess access = access_of(graph).value();
  ResidencyJudge judge{graph, access, {}};
  std::deque<DivisionMenu> menus;

  Trial() {
    for (size_t n = 0; n < graph.nodes.size(); ++n)
      menus.emplace_back(graph, access, n, judge, DivisionMenu::Rules{.cores = 8});
  }
};

// With room for everything, for some buffers, and for none.
class TrialPlans : public testing::TestWithParam<int64_t> {};
INSTANTIATE_TEST_SUITE_P(Rooms, TrialPlans, testing::Values(1 << 20, 300'000, 0));

TEST_P(TrialPlans, ChangesCostWhatAFreshPlanCosts) {
  Trial trial;
  TrialPlan plan(trial.graph, trial.access, trial.judge, trial.menus, true);
  plan.start(GetParam());
  const double before = plan.time();
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    std::vector<TrialPlan::Change> changes;
    for (size_t n = 0; n < trial.menus.size(); ++n) {
      const auto entries = static_cast<unsigned>(trial.menus[n].entries().size());
      if (random() % 2 == 0) changes.emplace_back(n, static_cast<int>(random() % entries));
    }
    plan.change(changes);
    TrialPlan fresh(trial.graph, trial.access, trial.judge, trial.menus, true);
    fresh.start(GetParam());
    fresh.change(changes);
    EXPECT_DOUBLE_EQ(plan.time(), fresh.time()) << "round " << round;
    plan.take_back();
    ASSERT_EQ(plan.time(), before) << "round " << round;
    for (size_t n = 0; n < trial.menus.size(); ++n) ASSERT_EQ(plan.chosen(n), 0);
  }
}

TEST_P(TrialPlans, MovesAddUp) {
  Trial trial;
  TrialPlan plan(trial.graph, trial.access, trial.judge, trial.menus, true);
  TrialPlan fresh(trial.graph, trial.access, trial.judge, trial.menus, true);
  plan.start(GetParam());
  std::mt19937 random(8);
  for (int round = 0; round < 100; ++round) {
    const size_t node = random() % trial.menus.size();
    const auto entries = static_cast<unsigned>(trial.menus[node].entries().size());
    plan.change({{node, static_cast<int>(random() % entries)}});
  }
  std::vector<TrialPlan::Change> all;
  for (size_t n = 0; n < trial.menus.size(); ++n) all.emplace_back(n, plan.chosen(n));
  fresh.start(GetParam());
  fresh.change(all);
  EXPECT_NEAR(plan.time(), fresh.time(), 1e-6 * fresh.time());
}

TEST(TrialPlan, RoomIsWorthSomething) {
  Trial trial;
  TrialPlan plan(trial.graph, trial.access, trial.judge, trial.menus, true);
  plan.start(0);
  const double without = plan.time();
  plan.start(1 << 20);
  EXPECT_LT(plan.time(), without);
}

}  // namespace
}  // namespace spyre
