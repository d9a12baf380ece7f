#pragma once

#include <string_view>

#include "spyre/passes/divide/division/axis_facts.h"

/// What every division must obey, whoever proposes it.
namespace spyre {

/// Fails when more than one reduction axis is split: each split leaves partial results on its cores, and the
/// card combines them along one axis only. `why` ends the message.
Status check_one_reduction(const DivisionProblem& problem, const std::vector<AxisFacts>& facts,
                           const Splits& splits, std::string_view why);

/// The least that any division must split: the floors, raised to the smallest legal split of every axis whose
/// constraints exclude 1. Fails when a floor is not a legal split, when this takes more cores than there are,
/// or when it splits two reduction axes.
Result<Splits> mandatory_splits(const DivisionProblem& problem, const std::vector<AxisFacts>& facts,
                                const Splits& floors);

/// True for a division that may be proposed: every split legal for its axis and not below its floor, enough
/// cores, one reduction axis at most, every span within the limit.
bool is_legal(const DivisionProblem& problem, const std::vector<AxisFacts>& facts, const Splits& floors,
              const Splits& splits);

/// True for a division that was decided before, perhaps for other sizes or another core count, and may stay:
/// constraints, floors and the one reduction axis are checked, the rest is taken on trust.
bool may_stay(const DivisionProblem& problem, const std::vector<AxisFacts>& facts, const Splits& floors,
              const Splits& splits);

}  // namespace spyre
