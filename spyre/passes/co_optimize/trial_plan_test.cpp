#include "spyre/lx/trial_plan.h"

#include <gmock/gmock.h>

#include <deque>
#include <random>

#include "spyre/passes/co_optimize/division_menu.h"
#include "spyre/passes/test_graphs.h"

namespace spyre {
namespace {

using lx::TrialPlan;

struct Trial {
  Graph graph = test::divided(test::column_softmax(512, 1024), 8);
  lx::GraphAccess access = lx::access_of(graph).value();
  lx::ResidencyJudge judge{graph, access, lx::MoveSet::all()};
  std::deque<DivisionMenu> menus;

  Trial() {
    for (size_t n = 0; n < graph.nodes.size(); ++n)
      menus.emplace_back(graph, access, n, judge, DivisionMenu::Rules{.cores = 8});
  }

  TrialPlan plan() const {
    std::vector<const std::vector<lx::Division>*> divisions;
    for (const DivisionMenu& menu : menus) divisions.push_back(&menu.entries());
    return TrialPlan(graph, access, judge, divisions, true);
  }
};

// With room for everything, for some buffers, and for none.
class TrialPlans : public testing::TestWithParam<int64_t> {};
INSTANTIATE_TEST_SUITE_P(Rooms, TrialPlans, testing::Values(1 << 20, 300'000, 0));

TEST_P(TrialPlans, ChangesCostWhatAFreshPlanCosts) {
  Trial trial;
  TrialPlan plan = trial.plan();
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
    TrialPlan fresh = trial.plan();
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
  TrialPlan plan = trial.plan();
  TrialPlan fresh = trial.plan();
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
  TrialPlan plan = trial.plan();
  plan.start(0);
  const double without = plan.time();
  plan.start(1 << 20);
  EXPECT_LT(plan.time(), without);
}

}  // namespace
}  // namespace spyre
