#pragma once

#include <cstdint>

#include "spyre/solve/problem.h"

namespace spyre::solve {

/// Knobs for random problems. Every field is a range or a share, so that a test can say in one line what kind
/// of problem it wants.
struct GenerateOptions {
  int buffers = 20;
  int64_t steps = 20;        ///< length of the schedule
  int64_t longest_life = 8;  ///< lives are 1 to this many steps
  int64_t most_units = 8;    ///< sizes are 1 to this many units ...
  Bytes unit{128};           ///< ... of this many bytes
  Bytes align{128};
  double odd_sizes = 0;  ///< share of sizes that are not whole units
  double in_place = 0;   ///< chance that a buffer may take over the slot of each one that ends with its start
  double inputs = 0;     ///< share of buffers that exist before the program
  double fixed = 0;      ///< share of buffers that are fixed where a first fit puts them
  double ineligible = 0;        ///< share of buffers that must stay off chip
  double tensors = 0;           ///< chance that a buffer is of the tensor of the one before
  double groups = 0;            ///< chance that a buffer joins the group of one it meets
  double capacity_to_peak = 1;  ///< capacity as a multiple of the peak of live bytes
};

/// A problem that passes check_problem; the same seed gives the same problem.
Problem generate_problem(const GenerateOptions& options, uint64_t seed);

}  // namespace spyre::solve
