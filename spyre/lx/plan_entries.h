#pragma once

#include "spyre/lx/allocation_problem.h"
#include "spyre/lx/plan.h"

namespace spyre::lx {

/// A solver's answer in the words of the graph: what became of every buffer, in the order of first touches. Of one that
/// was placed, every holding that was; of one that was not, its whole life and why.
std::vector<Plan::Entry> plan_entries(const Analysis& analysis, const AllocationProblem& allocation,
                                      const solve::Placement& placement);

}  // namespace spyre::lx
