#pragma once

#include <map>
#include <vector>

#include "spyre/lx/trial_plan.h"
#include "spyre/passes/divide/division/split_rules.h"

namespace spyre {

/// The divisions of one node that a joint planner may choose from. Entry 0 is the one it came with.
class DivisionMenu {
 public:
  struct Rules {
    int64_t cores = 32;
    bool keep_sums = false;
    bool every_order = false;  ///< every assignment of cores to slices, not only the usual one
  };

  DivisionMenu(const lx::Analysis& analysis, size_t node, const Rules& rules);

  const std::vector<lx::Division>& entries() const { return entries_; }
  /// Entries that were there from the start; the others came by `adopt`.
  size_t listed() const { return listed_; }
  /// An entry under which the operand has this view of the analysis, added if it is legal; -1: there is none.
  int adopt(size_t operand, const lx::CoreView* view);

 private:
  int add(std::vector<Loop> loops);
  void add_orders(const std::vector<Loop>& loops);
  bool legal(const std::vector<Loop>& loops) const;
  bool keeps_sums(const std::vector<Loop>& loops) const;

  const NormalOp& op_;
  const std::vector<const DeviceLayout*>& layouts_;
  const lx::Analysis& analysis_;
  const Rules rules_;
  bool fixed_ = false;  // by the user
  DivisionProblem problem_;
  std::vector<AxisFacts> facts_;
  Splits floors_;
  std::vector<lx::Division> entries_;
  size_t listed_ = 0;
  std::map<std::pair<size_t, const lx::CoreView*>, int> adopted_;
};

}  // namespace spyre
