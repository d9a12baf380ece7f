#include "spyre/passes/divide/division/choose_splits.h"

#include "spyre/passes/divide/division/division_hints.h"
#include "spyre/passes/divide/division/matmul_split.h"
#include "spyre/passes/divide/division/span.h"
#include "spyre/passes/divide/division/span_reduction.h"
#include "spyre/passes/divide/division/work_distribution.h"

namespace spyre {
namespace {

Result<Splits> choose(const DivisionProblem& problem, const Splits& floors) {
  if (cores_used(floors) == 1) {
    if (auto planned = plan_matmul(problem)) return *std::move(planned);
  }
  return distribute_work(problem, floors);
}

Result<Splits> decide(const DivisionProblem& problem, const Splits& floors, const SplitCost& cost) {
  if (!problem.hints.empty()) return apply_hints(problem, floors);
  SPYRE_ASSIGN_OR_RETURN(Splits seed, choose(problem, floors));
  if (!cost) return seed;
  return cheapest_split(problem, floors, seed, cost);
}

}  // namespace

Result<Splits> choose_splits(const DivisionProblem& problem, const SplitCost& cost) {
  SPYRE_ASSIGN_OR_RETURN(const std::vector<AxisFacts> facts, axis_facts(problem));
  SPYRE_ASSIGN_OR_RETURN(const Splits floors, span_floors(problem));
  SPYRE_ASSIGN_OR_RETURN(const Splits splits, decide(problem, floors, cost));
  SPYRE_TRY(check_spans(problem, facts, splits));
  return splits;
}

}  // namespace spyre
