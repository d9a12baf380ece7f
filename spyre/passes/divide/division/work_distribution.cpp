#include "spyre/passes/divide/division/work_distribution.h"

#include <algorithm>

#include "spyre/passes/divide/division/split_rules.h"

namespace spyre {
namespace {

/// The largest legal split that the cores allow when the other axes keep theirs.
int64_t largest_split(const DivisionProblem& problem, const AxisFacts& axis, const Splits& splits) {
  const int64_t current = split_of(splits, axis.name);
  const int64_t others = cores_used(splits) / current;
  int64_t best = current;
  for (const int64_t factor : axis.factors) {
    if (factor >= current && others * factor <= problem.cores) best = factor;
  }
  return best;
}

std::vector<const AxisFacts*> outputs_longest_first(const std::vector<AxisFacts>& facts) {
  std::vector<const AxisFacts*> outputs;
  for (const AxisFacts& axis : facts) {
    if (!axis.reduction) outputs.push_back(&axis);
  }
  std::ranges::stable_sort(outputs, std::greater<>(), &AxisFacts::size);
  return outputs;
}

const AxisFacts* reduction_to_grow(const DivisionProblem& problem, const std::vector<AxisFacts>& facts,
                                   const Splits& splits) {
  const AxisFacts* chosen = nullptr;
  int64_t most = 1;
  for (const AxisFacts& axis : facts) {
    if (!axis.reduction) continue;
    if (split_of(splits, axis.name) > 1) return &axis;
    const int64_t reach = largest_split(problem, axis, splits);
    if (reach > most) {
      most = reach;
      chosen = &axis;
    }
  }
  return chosen;
}

}  // namespace

Result<Splits> distribute_work(const DivisionProblem& problem, const Splits& floors) {
  SPYRE_ASSIGN_OR_RETURN(const std::vector<AxisFacts> facts, axis_facts(problem));
  SPYRE_ASSIGN_OR_RETURN(Splits splits, mandatory_splits(problem, facts, floors));
  for (const AxisFacts* axis : outputs_longest_first(facts)) {
    splits[axis->name] = largest_split(problem, *axis, splits);
  }
  if (const AxisFacts* axis = reduction_to_grow(problem, facts, splits)) {
    splits[axis->name] = largest_split(problem, *axis, splits);
  }
  return splits;
}

}  // namespace spyre
