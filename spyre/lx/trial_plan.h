#pragma once

#include <map>
#include <span>
#include <utility>
#include <vector>

#include "spyre/lx/estimate.h"
#include "spyre/lx/plan_cost.h"
#include "spyre/lx/residency.h"

namespace spyre::lx {

/// One way to divide a node, with what planning asks about it.
struct Division {
  std::vector<Loop> loops;
  std::vector<TouchView> operands;  ///< in the order of NormalOp
  PlanCost work;
  int64_t cores = 1;
};

/// The division that an operation has.
Division division_of(const Analysis& analysis, const NormalOp& op,
                     std::span<const DeviceLayout* const> layouts);

/// A division for every node, and what it costs with the buffers in LX that fit there by size (estimate.h).
///
/// Changes are tried on the plan itself and cost what they touch, not what the graph holds:
///
///     plan.change({{4, 2}, {5, 1}});     nodes 4 and 5 take others of their divisions
///     if (plan.cost() >= best) plan.take_back();
///
/// Buffers that a great many nodes read (kMostTouches) are in device memory here; the solver may find them a place.
class TrialPlan {
 public:
  using Change = std::pair<size_t, int>;  ///< a node, and which of its divisions

  /// `divisions` by node, which the caller keeps; they may grow while the plan is in use.
  TrialPlan(const Analysis& analysis, std::vector<const std::vector<Division>*> divisions,
            Objective objective);

  /// Every node takes its division 0. `room`: bytes of one core's LX to count on.
  void start(int64_t room);

  /// At most one change per node.
  void change(const std::vector<Change>& changes);
  /// Undoes the last change, which was not undone yet.
  void take_back();

  double cost() const { return cost_.total(objective_).ns; }
  int chosen(size_t node) const { return chosen_[node]; }
  const Division& division(size_t node) const {
    return (*divisions_[node])[static_cast<size_t>(chosen_[node])];
  }

 private:
  // One buffer under the divisions of the nodes that touch it: in device memory, and in LX if it may be
  // there. The gain is in nanoseconds of the objective.
  struct Case : Claim {
    PlanCost off, on;
    bool wanted() const { return !pieces.empty() && gain > 0; }
  };

  const PlanCost& cost_alone(size_t node);
  const Case& case_of(size_t buffer);
  Case make_case(size_t buffer) const;
  // The case of a buffer as divisions are chosen now; none before `start` is done with it.
  const Case* now(size_t buffer) const { return static_cast<const Case*>(estimate_.claim(buffer)); }
  void put(size_t buffer, const Case& chosen, bool in_lx);
  void place(const std::vector<size_t>& buffers, Window window);

  const Analysis& analysis_;
  const GraphAccess& access_;
  const Objective objective_;
  const std::vector<const std::vector<Division>*> divisions_;  // by node; they may grow
  std::vector<char> off_chip_;                // by buffer: in device memory whatever is chosen
  std::vector<std::vector<PlanCost>> alone_;  // by node and division: its work, and its traffic with those
  std::vector<std::map<std::vector<int>, Case>> cases_;  // by buffer, and divisions of those that touch it

  std::vector<int> chosen_;       // by node
  Estimate estimate_;             // items are buffers
  std::vector<size_t> left_out_;  // wanted, but not in LX
  PlanCost cost_;

  std::vector<int> key_;  // of the case being looked up

  // What the last change did, for take_back.
  PlanCost cost_before_;
  std::vector<size_t> left_out_before_;
  std::vector<Change> chosen_before_;
};

}  // namespace spyre::lx
