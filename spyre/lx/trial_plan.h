#pragma once

#include <map>
#include <utility>
#include <vector>

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

/// A division for every node, and what it costs with the buffers in LX that fit there by size.
///
/// Changes are tried on the plan itself and cost what they touch, not what the graph holds:
///
///     plan.change({{4, 2}, {5, 1}});     nodes 4 and 5 take others of their divisions
///     if (plan.time() >= best) plan.take_back();
///
/// Which buffers may live in LX is the ResidencyJudge's word. Where they do not all fit at some step, the one
/// that is least useful for its size goes to device memory. Fragments are left to the solver, and so are
/// buffers that a great many nodes read (kMostTouches): here they are in device memory.
class TrialPlan {
 public:
  using Change = std::pair<size_t, int>;  ///< a node, and which of its divisions

  /// `divisions` by node, which the caller keeps; they may grow while the plan is in use.
  TrialPlan(const Graph& graph, const GraphAccess& access, const ResidencyJudge& judge,
            std::vector<const std::vector<Division>*> divisions, bool in_place);

  /// Every node takes its division 0. `room`: bytes of one core's LX to count on.
  void start(int64_t room);

  /// At most one change per node.
  void change(const std::vector<Change>& changes);
  /// Undoes the last change, which was not undone yet.
  void take_back();

  double time() const { return cost_.total().ns; }
  int chosen(size_t node) const { return chosen_[node]; }
  const Division& division(size_t node) const {
    return (*divisions_[node])[static_cast<size_t>(chosen_[node])];
  }

 private:
  // One buffer under the divisions of the nodes that touch it: in device memory, and in LX if it may be
  // there.
  struct Case {
    PlanCost off, on;
    double gain = 0;  // ns, of being in LX
    struct Piece {
      int64_t begin, end, size;
    };
    std::vector<Piece> pieces;  // of LX: the buffer itself first, then its copies; none: it must not be there
    const CoreView* view = nullptr;
    bool wanted() const { return !pieces.empty() && gain > 0; }
  };
  struct Stay {
    const Case* kind = nullptr;  // none: in device memory whatever is chosen
    bool in_lx = false;
    int64_t begin = 0;  // of the first piece: a step later where it takes over the slot of an operand
  };
  struct Window {
    int64_t begin, end;
    void include(const Stay& stay);
    bool overlaps(const Case& kind) const;
  };

  const PlanCost& cost_alone(size_t node);
  const Case& case_of(size_t buffer);
  Case make_case(size_t buffer) const;
  bool takes_over(size_t child) const;
  void occupy(size_t buffer, int sign);
  void set(size_t buffer, const Case* kind, bool in_lx);
  void settle(size_t buffer);
  void place(const std::vector<size_t>& buffers, Window window);
  void make_room(Window window);

  const Graph& graph_;
  const GraphAccess& access_;
  const ResidencyJudge& judge_;
  const std::vector<const std::vector<Division>*> divisions_;  // by node; they may grow
  std::vector<std::vector<size_t>> parents_, children_;        // by buffer: slots that may be taken over
  std::vector<char> off_chip_;                // by buffer: in device memory whatever is chosen
  std::vector<std::vector<PlanCost>> alone_;  // by node and division: its work, and its traffic with those
  std::vector<std::map<std::vector<int>, Case>> cases_;  // by buffer

  int64_t room_ = 0;
  std::vector<int> chosen_;       // by node
  std::vector<Stay> stays_;       // by buffer
  std::vector<int64_t> live_;     // by step: bytes of LX in use
  std::vector<size_t> left_out_;  // wanted, but not in LX
  PlanCost cost_;

  std::vector<int> key_;  // of the case being looked up

  // What the last change did, for take_back.
  PlanCost cost_before_;
  std::vector<size_t> left_out_before_;
  std::vector<Change> chosen_before_;
  std::vector<std::pair<size_t, Stay>> stays_before_;
};

}  // namespace spyre::lx
