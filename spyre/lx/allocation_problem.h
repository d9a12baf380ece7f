#pragma once

#include <vector>

#include "spyre/lx/residency.h"
#include "spyre/solve/problem.h"

/// The problem that a solver is given, and what its solution means.
///
/// Every way to hold a buffer is a *holding*; every holding becomes one buffer of the placement problem, and
/// one more for each copy of it in another division (an all-or-nothing group). Holdings of one buffer
/// are alternatives where they meet in time.
///
///     x, read by 1, 2 and, after an idle gap, by 7, 8        B: bytes of x, moved by each reader
///
///       x      nodes 1..8   saves 3 B     the plain problem: keep it, or leave it off chip
///       x@1    nodes 1..2   saves 1 B     the full problem offers segments too: x may be given up while
///       x@2    nodes 7..8   saves 1 B     it is idle, and fetched again
///
/// Also in the full problem: holdings that serve fewer readers over the ring, so that there is room for the
/// copies of others.
namespace spyre::lx {

/// One buffer of the placement problem.
struct Candidate {
  size_t holding = 0;
  int relayout = -1;  ///< index into Residency::relayouts; -1: what is held itself
};

struct AllocationProblem {
  solve::Problem problem;
  std::vector<Holding> holdings;
  std::vector<Candidate> candidates;  ///< by buffer of the problem; copies follow their source
};

struct AllocationOptions {
  Bytes capacity;
  bool full = false;  ///< more than one holding for a buffer
};

/// Buffers in the order of first touches, the holding of the whole live range first.
AllocationProblem allocation_problem(const Analysis& analysis, const AllocationOptions& options);

}  // namespace spyre::lx
