#include "spyre/passes/divide/division/division_hints.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "spyre/base/log.h"
#include "spyre/passes/divide/division/split_rules.h"

namespace spyre {
namespace {

Error refuse(const DivisionProblem& problem, const std::string& axis, int64_t split, std::string_view why) {
  return Error(ErrorKind::kInvalidArgument,
               fmt::format("op '{}': work_div hint {}={} {}", problem.op, axis, split, why));
}

int64_t nearest_legal(const AxisFacts& axis, int64_t split, int64_t floor) {
  int64_t nearest = axis.factors.back();
  for (const int64_t factor : axis.factors) {
    if (factor >= floor && std::abs(factor - split) < std::abs(nearest - split)) nearest = factor;
  }
  return nearest;
}

Status check_hint(const DivisionProblem& problem, const AxisFacts& axis, int64_t split, int64_t floor) {
  const auto nearest = [&] { return fmt::format("{}={}", axis.name, nearest_legal(axis, split, floor)); };
  if (split < 1) return refuse(problem, axis.name, split, "is below 1").try_instead(nearest());
  if (split < floor) {
    return refuse(problem, axis.name, split,
                  fmt::format("is below {}, which keeps every span within the limit", floor))
        .try_instead(nearest());
  }
  if (problem.blocked.contains(axis.name) && split != 1) {
    return refuse(problem, axis.name, split, "splits an axis that must stay whole").try_instead(nearest());
  }
  if (!axis.allows(split)) {
    return refuse(problem, axis.name, split, "is not a legal split")
        .note(describe_factors(problem, axis))
        .try_instead(nearest());
  }
  return {};
}

}  // namespace

Result<Splits> apply_hints(const DivisionProblem& problem, const Splits& floors) {
  SPYRE_ASSIGN_OR_RETURN(const std::vector<AxisFacts> facts, axis_facts(problem));
  SPYRE_ASSIGN_OR_RETURN(Splits splits, mandatory_splits(problem, facts, floors));
  for (const auto& [axis, split] : problem.hints) {
    SPYRE_TRY(check_hint(problem, facts_of(facts, axis), split, split_of(floors, axis)));
    const int64_t cores = cores_used(splits) / split_of(splits, axis) * split;
    if (cores > problem.cores) {
      log(LogLevel::kWarning, "passes",
          fmt::format(
              "op '{}': work_div hint {}={} is skipped: with {} it would take {} cores, {} are available",
              problem.op, axis, split, to_string(splits), cores, problem.cores));
      continue;
    }
    splits[axis] = split;
  }
  SPYRE_TRY(check_one_reduction(problem, facts, splits, "by work_div hints"));
  return splits;
}

}  // namespace spyre
