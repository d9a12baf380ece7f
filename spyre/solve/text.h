#pragma once

#include <string>
#include <string_view>

#include "spyre/base/result.h"
#include "spyre/solve/problem.h"

namespace spyre::solve {

/// The text form of a problem, one buffer a line. Prints, parses back, compares equal.
///
///     # A comment stands on a line of its own.
///     capacity 1625344
///     buffer scores  live 0..3  size 808960  uses 3  saves 2426880
///     buffer probs   live 2..5  size 808960  uses 2  saves 1617920  in_place scores
///     buffer table   live 0..9  size 4096  align 1  uses 4  saves 12288  input  at 1024
///     buffer index   live 0..2  size 128  uses 2  saves 256  ineligible index tensor
///     buffer early   live 0..3  size 256  uses 2  saves 256  tensor 0
///     buffer late    live 5..9  size 256  uses 3  saves 512  input  tensor 0  group 0
///
/// Left out: `align 128`, `uses 1`, and `saves` equal to uses times size. `in_place` lists parents, best
/// first, with commas, and may name buffers of later lines. `ineligible` takes the rest of its line.
Result<Problem> parse_problem(std::string_view text, std::string_view origin);
std::string print_problem(const Problem& problem);

/// The comma-separated form of public static-allocation benchmarks: a header line `id,lower,upper,size`, then one
/// buffer a line, live on [lower, upper). Each buffer counts one use and saves its size; the file has no
/// capacity.
Result<Problem> parse_allocation_csv(std::string_view text, std::string_view origin, Bytes capacity,
                                     Bytes align);

/// A placement, one line per buffer in the problem's order: `scores at 0` or `index off chip: <reason>`.
std::string print_placement(const Problem& problem, const Placement& placement);

}  // namespace spyre::solve
