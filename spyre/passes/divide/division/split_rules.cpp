#include "spyre/passes/divide/division/split_rules.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "spyre/passes/divide/division/span.h"

namespace spyre {
namespace {

std::vector<std::string_view> split_reductions(const std::vector<AxisFacts>& facts, const Splits& splits) {
  std::vector<std::string_view> names;
  for (const AxisFacts& axis : facts) {
    if (axis.reduction && split_of(splits, axis.name) > 1) names.push_back(axis.name);
  }
  return names;
}

Result<int64_t> mandatory_split(const DivisionProblem& problem, const AxisFacts& axis, int64_t floor) {
  const auto at_least = std::ranges::lower_bound(axis.factors, floor);
  if (at_least != axis.factors.end() && (floor == 1 || *at_least == floor)) return *at_least;
  return Error(
             ErrorKind::kUnsupported,
             fmt::format("op '{}': axis '{}' must be cut in {} to keep every span within the limit, which is "
                         "not a legal split",
                         problem.op, axis.name, floor))
      .note(describe_factors(problem, axis));
}

/// Which of the mandatory splits come from constraints, for the message when they do not fit.
std::string reasons(const std::vector<AxisFacts>& facts, const Splits& floors, const Splits& mandatory) {
  std::vector<std::string> parts;
  for (const AxisFacts& axis : facts) {
    const int64_t split = split_of(mandatory, axis.name);
    if (split == 1) continue;
    parts.push_back(split_of(floors, axis.name) == split
                        ? fmt::format("{} in {} to keep every span within the limit", axis.name, split)
                        : fmt::format("{} in {}, the least its constraints allow", axis.name, split));
  }
  return fmt::format("{}", fmt::join(parts, "; "));
}

bool reaches_floors(const std::vector<AxisFacts>& facts, const Splits& floors, const Splits& splits) {
  return std::ranges::all_of(facts, [&](const AxisFacts& axis) {
    return split_of(splits, axis.name) >= split_of(floors, axis.name);
  });
}

}  // namespace

Status check_one_reduction(const DivisionProblem& problem, const std::vector<AxisFacts>& facts,
                           const Splits& splits, std::string_view why) {
  const auto names = split_reductions(facts, splits);
  if (names.size() <= 1) return {};
  return Error(ErrorKind::kUnsupported,
               fmt::format(
                   "op '{}': reduction axes {} would all be split {}; the card combines partial results "
                   "of one",
                   problem.op, fmt::join(names, ", "), why))
      .note(fmt::format("splits {}", to_string(splits)))
      .try_instead("reducing one axis after the other, in two operations");
}

Result<Splits> mandatory_splits(const DivisionProblem& problem, const std::vector<AxisFacts>& facts,
                                const Splits& floors) {
  Splits splits;
  for (const AxisFacts& axis : facts) {
    SPYRE_ASSIGN_OR_RETURN(splits[axis.name], mandatory_split(problem, axis, split_of(floors, axis.name)));
  }
  if (cores_used(splits) > problem.cores) {
    return Error(ErrorKind::kUnsupported,
                 fmt::format("op '{}': the splits it needs, {}, take {} cores; {} are available", problem.op,
                             to_string(splits), cores_used(splits), problem.cores))
        .note(reasons(facts, floors, splits))
        .try_instead(cores_used(splits) <= spyre_card().cores
                         ? fmt::format("SENCORES={}", cores_used(splits))
                         : "running it in tiles, so that each has less to divide");
  }
  SPYRE_TRY(check_one_reduction(problem, facts, splits, "by spans and constraints"));
  return splits;
}

bool is_legal(const DivisionProblem& problem, const std::vector<AxisFacts>& facts, const Splits& floors,
              const Splits& splits) {
  const bool even = std::ranges::all_of(
      facts, [&](const AxisFacts& axis) { return axis.allows(split_of(splits, axis.name)); });
  return even && cores_used(splits) <= problem.cores && may_stay(problem, facts, floors, splits) &&
         std::ranges::all_of(problem.tensors, [&](const DivisionTensor& tensor) {
           return span_fits(problem, tensor, facts, splits);
         });
}

bool may_stay(const DivisionProblem& problem, const std::vector<AxisFacts>& facts, const Splits& floors,
              const Splits& splits) {
  const bool constrained = std::ranges::all_of(
      facts, [&](const AxisFacts& axis) { return problem.permits(axis.name, split_of(splits, axis.name)); });
  return constrained && reaches_floors(facts, floors, splits) && split_reductions(facts, splits).size() <= 1;
}

}  // namespace spyre
