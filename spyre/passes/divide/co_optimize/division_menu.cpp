#include "spyre/passes/divide/co_optimize/division_menu.h"

#include <algorithm>

#include "spyre/graph/core_map.h"
#include "spyre/passes/divide/divide_work.h"
#include "spyre/passes/divide/division/legal_splits.h"
#include "spyre/passes/divide/division/span_reduction.h"

namespace spyre {
namespace {

constexpr size_t kMostSplits = 512;

bool same_division(const std::vector<Loop>& a, const std::vector<Loop>& b) {
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i].split != b[i].split || (a[i].split > 1 && a[i].step != b[i].step)) return false;
  }
  return true;
}

}  // namespace

DivisionMenu::DivisionMenu(const lx::Analysis& analysis, size_t node, const Rules& rules)
    : op_(analysis.access().ops[node]),
      layouts_(analysis.access().layouts[node]),
      analysis_(analysis),
      rules_(rules),
      fixed_(!analysis.graph().nodes[node].hints.empty()),
      problem_(division_problem(analysis.graph(), analysis.graph().nodes[node], op_, rules.cores)) {
  const Result<std::vector<AxisFacts>> facts = axis_facts(problem_);
  const Result<Splits> floors = span_floors(problem_);
  fixed_ = fixed_ || op_.access.loops.empty() || !facts.ok() || !floors.ok();
  add(op_.access.loops);
  if (!fixed_) {
    facts_ = facts.value();
    floors_ = floors.value();
    const Result<std::vector<Splits>> legal_ones = legal_splits(problem_, floors_, kMostSplits);
    for (const Splits& splits : legal_ones.ok() ? legal_ones.value() : std::vector<Splits>()) {
      std::vector<Loop> loops = op_.access.loops;
      for (Loop& loop : loops) loop.split = split_of(splits, loop.name), loop.step = 0;
      if (!keeps_sums(loops)) continue;
      add(loops);
      if (rules_.every_order) add_orders(loops);
    }
  }
  listed_ = entries_.size();
}

int DivisionMenu::add(std::vector<Loop> loops) {
  NormalOp op = op_;
  op.access.loops = std::move(loops);
  // Explicit steps make equal divisions equal values.
  const std::vector<int64_t> steps = core_steps(op);
  for (size_t i = 0; i < steps.size(); ++i)
    op.access.loops[i].step = op.access.loops[i].split > 1 ? steps[i] : 0;
  for (size_t i = 0; i < entries_.size(); ++i) {
    if (same_division(entries_[i].loops, op.access.loops)) return static_cast<int>(i);
  }
  entries_.push_back(lx::division_of(analysis_, op, layouts_));
  return static_cast<int>(entries_.size()) - 1;
}

// Every order in which the digits of a core's number may stand for the split loops.
void DivisionMenu::add_orders(const std::vector<Loop>& loops) {
  std::vector<size_t> split;
  for (size_t i = 0; i < loops.size(); ++i) {
    if (loops[i].split > 1) split.push_back(i);
  }
  do {
    std::vector<Loop> ordered = loops;
    int64_t step = 1;
    for (const size_t i : split) {
      ordered[i].step = step;
      step *= ordered[i].split;
    }
    add(std::move(ordered));
  } while (std::next_permutation(split.begin(), split.end()));
}

bool DivisionMenu::keeps_sums(const std::vector<Loop>& loops) const {
  if (!rules_.keep_sums) return true;
  for (size_t i = 0; i < loops.size(); ++i) {
    if (loops[i].reduced && loops[i].split != op_.access.loops[i].split) return false;
  }
  return true;
}

bool DivisionMenu::legal(const std::vector<Loop>& loops) const {
  Splits splits;
  for (const Loop& loop : loops) splits[loop.name] = loop.split;
  return keeps_sums(loops) && is_legal(problem_, facts_, floors_, splits);
}

int DivisionMenu::adopt(size_t operand, const lx::CoreView* view) {
  const auto key = std::pair(operand, view);
  if (const auto known = adopted_.find(key); known != adopted_.end()) return known->second;
  int found = -1;
  const auto adopted = fixed_ ? std::nullopt : lx::loops_for_view(op_, operand, *view, layouts_);
  if (adopted && adopted->spare == 1) {
    if (legal(adopted->loops)) found = add(adopted->loops);
  } else if (adopted) {
    // Cores that hold the same part differ in a loop this operand does not have.
    int64_t longest = 0;
    for (size_t i = 0; i < adopted->loops.size(); ++i) {
      if (op_.access.operands[operand].uses(static_cast<int>(i))) continue;
      std::vector<Loop> loops = adopted->loops;
      loops[i].split = adopted->spare;
      loops[i].step = adopted->spare_step;
      if (loops[i].extent <= longest || !legal(loops)) continue;
      longest = loops[i].extent;
      found = add(loops);
    }
  }
  return adopted_[key] = found;
}

}  // namespace spyre
