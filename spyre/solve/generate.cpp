#include "spyre/solve/generate.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>

#include "spyre/solve/bounds.h"
#include "spyre/solve/solvers.h"

namespace spyre::solve {
namespace {

/// Plain draws from a Mersenne twister: the standard's distributions differ between libraries.
class Dice {
 public:
  explicit Dice(uint64_t seed) : engine_(seed) {}
  int64_t from_one_to(int64_t most) { return 1 + int64_t(engine_() % uint64_t(most)); }
  bool chance(double share) { return double(engine_() >> 11) * 0x1p-53 < share; }

 private:
  std::mt19937_64 engine_;
};

Buffer draw_buffer(const GenerateOptions& options, int index, Dice& dice) {
  const int64_t length = dice.from_one_to(std::min(options.longest_life, options.steps));
  const Step begin(dice.from_one_to(options.steps - length + 1) - 1);
  Bytes size = options.unit * dice.from_one_to(options.most_units);
  if (options.unit > Bytes(1) && dice.chance(options.odd_sizes)) {
    size -= Bytes(dice.from_one_to(options.unit.count() - 1));
  }
  const bool input = dice.chance(options.inputs);
  const int64_t uses = std::max<int64_t>(dice.from_one_to(length), std::min<int64_t>(length, 2));
  return {.name = fmt::format("b{}", index),
          .live = {begin, begin + Step(length)},
          .size = size,
          .align = options.align,
          .uses = uses,
          .input = input,
          .saves = size * (input ? uses - 1 : uses)};
}

void draw_parents(Problem& problem, double share, Dice& dice) {
  for (Buffer& child : problem.buffers) {
    for (BufferIndex p = 0; p < std::ssize(problem.buffers); ++p) {
      const Buffer& parent = problem.buffers[p];
      const bool fits = parent.live.end == child.live.begin + Step(1) && parent.live.length() > 1 &&
                        child.size <= parent.size && read_count(parent.uses, parent.input) > 0;
      if (fits && dice.chance(share)) child.in_place_parents.push_back(p);
    }
  }
}

/// Where first fit puts some buffers is a set of offsets that is known to be legal.
void fix_some(Problem& problem, double share, Dice& dice) {
  const Placement placement = make_first_fit()->solve(problem, Deadline::none()).placement;
  for (size_t i = 0; i < problem.buffers.size(); ++i) {
    if (placement.offset[i].has_value() && dice.chance(share)) problem.buffers[i].fixed = placement.offset[i];
  }
}

/// Alternatives and groups, among the buffers that are not fixed.
void draw_choices(Problem& problem, const GenerateOptions& options, Dice& dice) {
  for (int i = 1; i < std::ssize(problem.buffers); ++i) {
    Buffer& b = problem.buffers[i];
    Buffer& before = problem.buffers[i - 1];
    if (b.fixed.has_value()) continue;
    if (dice.chance(options.tensors) && !before.fixed.has_value()) {
      if (before.tensor < 0) before.tensor = i;
      b.tensor = before.tensor;
    }
    for (int j = 0; j < i && b.group < 0; ++j) {
      Buffer& other = problem.buffers[j];
      if (other.fixed.has_value() || other.group >= 0 || !other.live.meets(b.live)) continue;
      if (are_alternatives(b, other) || !dice.chance(options.groups)) continue;
      b.group = other.group = i;
    }
  }
}

}  // namespace

Problem generate_problem(const GenerateOptions& options, uint64_t seed) {
  Dice dice(seed);
  Problem problem;
  for (int i = 0; i < options.buffers; ++i) problem.buffers.push_back(draw_buffer(options, i, dice));
  draw_parents(problem, options.in_place, dice);
  const double capacity = double(peak_live_bytes(problem).count()) * options.capacity_to_peak;
  problem.capacity = Bytes(int64_t(capacity));
  for (Buffer& b : problem.buffers) {
    if (dice.chance(options.ineligible)) b.ineligible = "the generator says so";
  }
  if (options.fixed > 0) fix_some(problem, options.fixed, dice);
  if (options.tensors > 0 || options.groups > 0) draw_choices(problem, options, dice);
  return problem;
}

}  // namespace spyre::solve
