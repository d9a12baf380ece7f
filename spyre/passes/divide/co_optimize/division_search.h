#pragma once

#include <deque>
#include <utility>
#include <vector>

#include "spyre/lx/trial_plan.h"
#include "spyre/passes/divide/co_optimize/division_menu.h"
#include "spyre/passes/divide/co_optimize/options.h"

namespace spyre {

/// Looks for divisions of all nodes that are cheapest together, under the estimate of lx/trial_plan.h with costs by `sum`.
///
/// A graph with few plans is searched whole. Else one node after the other takes another division, those that move most
/// first; its neighbours follow along the buffers they share, not at all, through vector operations, or through matmuls
/// too, and the change that gains most is kept.
class DivisionSearch {
 public:
  DivisionSearch(const lx::Analysis& analysis, lx::Objective sum, const CoOptimizeOptions& options);

  /// Searches with this many bytes of LX to count on.
  void run(int64_t room);

  /// What the found plan should cost, if what fits by size also finds a place.
  Nanos expected() const { return {least_}; }
  /// How the found plan divides a node; none: as it is.
  const std::vector<Loop>* loops(size_t node) const {
    return plan_.chosen(node) == 0 ? nullptr : &plan_.division(node).loops;
  }
  /// Plans looked at in all runs.
  int64_t evaluated() const { return evaluated_; }
  /// Whether there are few enough plans to look at all of them.
  bool exact() const { return exact_; }

 private:
  using Changes = std::vector<lx::TrialPlan::Change>;
  /// How far a node's new division is carried along the buffers it shares with others.
  enum class Reach { kAlone, kVector, kAll };

  std::deque<DivisionMenu> choose_menus();
  std::deque<DivisionMenu> build_menus(bool every_order) const;
  bool few_plans(const std::deque<DivisionMenu>& menus) const;
  void look_at(const Changes& changes);
  void try_everything();
  void climb(int64_t left);
  std::vector<size_t> heaviest_first() const;
  Changes best_change(size_t node, int64_t& left);
  Changes carry(size_t from, int taken, Reach reach);
  const lx::Division& division(size_t node) const;
  std::vector<size_t> neighbours(size_t node) const;

  const lx::Analysis& analysis_;
  const DeviceGraph& graph_;
  const lx::GraphAccess& access_;
  const CoOptimizeOptions& options_;
  bool exact_ = false;
  std::deque<DivisionMenu> menus_;
  lx::TrialPlan plan_;
  std::vector<int> picked_;  // by node, while a change is put together: its division; -1: as planned
  double least_ = 0;
  int64_t evaluated_ = 0;
};

}  // namespace spyre
