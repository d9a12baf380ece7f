#include <algorithm>
#include <bit>
#include <cmath>

#include "spyre/device/exec/kernels.h"
#include "spyre/ops/formulas.h"

namespace spyre::exec {

namespace {

template <typename T>
ReducerOf<T> reducer_of(OpId op) {
  using namespace formulas;  // NOLINT: rows name formulas unqualified
#define SPYRE_REDUCTION(name, formats, constants, variants, mask, first, meaning) \
  if (op == OpId::name) {                                                         \
    return {.start = first, .fold = [](T acc, T x) -> T { return meaning; }};     \
  }
#include "spyre/ops/table.def"
  return {};
}

}  // namespace

Reducer find_reducer(OpId op) {
  return reducer_of<float>(op);
}

float reduction_factor(const ProgramOp& op) {
  return op.info->id == OpId::mean ? op.k[0] : 1.0f;
}

namespace {

/// The lanes that fold side by side: those of the stick if it is reduced, else one.
struct Lanes {
  int dim = 0;
  int64_t count = 1;

  /// The lane of a point of a core's box. Slices start at a stick.
  int64_t of(const Coordinate& at, const Box& box) const { return (at[dim] - box.lower[dim]) % count; }
};

Lanes reduced_lanes(const Tensor& input, const DimRoles& roles) {
  if (input.stick.size() != 1 || !input.stick[0].present ||
      std::count(roles.reduced.begin(), roles.reduced.end(), input.stick[0].dim) == 0) {
    return {};
  }
  return {.dim = input.stick[0].dim, .count = input.stick[0].size};
}

/// Folds each lane with the one half a stick on, until one is left.
template <typename T>
T fold_lanes(std::span<T> lanes, const ReducerOf<T>& reducer) {
  for (size_t half = lanes.size() / 2; half > 0; half /= 2) {
    for (size_t i = 0; i < half; ++i) {
      lanes[i] = reducer.fold(lanes[i], lanes[i + half]);
    }
  }
  return lanes[0];
}

/// Folds every point of `dims` of the group's cores around `g`: within a core each lane in ascending order
/// and then the lanes, then the cores in the order of the group. `term(core position in group, point)` gives
/// the value of a point.
template <typename T, typename Term>
T fold_group(const Work& work, const std::vector<int>& group, std::span<const int> dims, const Lanes& lanes,
             Coordinate g, const ReducerOf<T>& reducer, Term&& term) {
  constexpr int64_t kMostPartials = 128;
  SPYRE_CHECK(lanes.count <= kMostPartials && std::has_single_bit(static_cast<uint64_t>(lanes.count)),
              "a stick of a strange number of lanes");
  T total = reducer.start;
  for (size_t member = 0; member < group.size(); ++member) {
    const Box& box = work.bound.boxes[group[member]];
    std::array<T, kMostPartials> partial;
    std::fill_n(partial.begin(), lanes.count, reducer.start);
    for_each_point(box, dims, g, work.fault, [&](const Coordinate& at) {
      T& acc = partial[lanes.of(at, box)];
      acc = reducer.fold(acc, term(member, at));
    });
    const T folded = fold_lanes(std::span(partial).first(static_cast<size_t>(lanes.count)), reducer);
    total = member == 0 ? folded : reducer.fold(total, folded);
  }
  return total;
}

/// Runs `result(group, g)` for every point of each group's result and hands it to `store(sink, g, value)`.
template <typename Evaluate, typename Store>
void for_each_result(const Work& work, const std::vector<int>& group, const DimRoles& roles,
                     Evaluate&& evaluate, Store&& store) {
  std::vector<Sink> sinks;
  for (const int core : writers(work.bound, group)) {
    sinks.push_back(work.output(core));
  }
  Coordinate g{};
  for_each_point(work.bound.boxes[group.front()], roles.kept, g, work.fault, [&](const Coordinate& at) {
    const auto value = evaluate(at);
    for (Sink& sink : sinks) {
      store(sink, at, value);
    }
  });
}

std::vector<Operand> operands_of(const Work& work, int input, const std::vector<int>& group) {
  std::vector<Operand> operands;
  for (const int core : group) {
    operands.push_back(work.input(input, core));
  }
  return operands;
}

/// Whether the result keeps one value per stick.
bool reduces_stick(const Tensor& out) {
  return !out.stick.empty() && !out.present(out.stick[0].dim);
}

void store_reduced(Sink& sink, const Coordinate& at, float value) {
  if (reduces_stick(sink.tensor())) {
    sink.whole_stick(at, value);
  } else {
    sink.value(at, value);
  }
}

/// The same by a row's reducer: of fp32 values in their order, or of doubles.
template <typename Term>
float fold_group(const Work& work, const std::vector<int>& group, std::span<const int> dims,
                 const Lanes& lanes, const Coordinate& g, OpId op, Term&& term) {
  if (work.sums == Sums::kInDoubles) {
    return static_cast<float>(fold_group(work, group, dims, lanes, g, reducer_of<double>(op), term));
  }
  return fold_group(work, group, dims, lanes, g, reducer_of<float>(op), term);
}

constexpr Reducer kLargestMagnitude{
    .start = 0, .fold = [](float acc, float x) { return formulas::max(acc, std::fabs(x)); }};

}  // namespace

DimRoles roles_by_result(const BoundOp& bound) {
  DimRoles roles;
  for (int d = 0; d < bound.dims(); ++d) {
    (bound.output().present(d) ? roles.kept : roles.reduced).push_back(d);
  }
  return roles;
}

std::span<const int> writers(const BoundOp& bound, const std::vector<int>& group) {
  const std::span<const int> all(group);
  return bound.output().residence == Residence::kLx ? all : all.last(1);
}

float masked_value(const BoundOp& bound, Operand& operand, const Coordinate& g) {
  for (const Mask& mask : bound.op->masks) {
    if (g[mask.dim] >= mask.start && g[mask.dim] < mask.start + mask.count) {
      return mask.value;
    }
  }
  return operand.value(g);
}

void run_reduction(const Work& work) {
  const OpId op = work.op().info->id;
  SPYRE_CHECK(find_reducer(op).fold != nullptr, "a reduction row without an expression");
  const DimRoles roles = roles_by_result(work.bound);
  const Lanes lanes = reduced_lanes(work.bound.input(0), roles);
  const float factor = reduction_factor(work.op());
  for (const std::vector<int>& group : work.bound.groups) {
    std::vector<Operand> x = operands_of(work, 0, group);
    const auto evaluate = [&](const Coordinate& at) {
      return factor *
             fold_group(work, group, roles.reduced, lanes, at, op, [&](size_t member, const Coordinate& p) {
               return masked_value(work.bound, x[member], p);
             });
    };
    for_each_result(work, group, roles, evaluate, store_reduced);
  }
}

void run_contraction(const Work& work) {
  const DimRoles roles = roles_by_result(work.bound);
  for (const std::vector<int>& group : work.bound.groups) {
    std::vector<Operand> x = operands_of(work, 0, group), w = operands_of(work, 1, group);
    const auto evaluate = [&](const Coordinate& at) {
      return fold_group(
          work, group, roles.reduced, Lanes(), at, OpId::sum,
          [&](size_t member, const Coordinate& p) { return x[member].value(p) * w[member].value(p); });
    };
    for_each_result(work, group, roles, evaluate, [](Sink& sink, const Coordinate& at, float value) {
      if (sink.tensor().format != DataFormat::IEEE_FP32) {
        return sink.value(at, value);
      }
      Coordinate target = at;
      const int n = sink.tensor().stick.back().dim;
      target[n] = widened_position(at[n]);
      sink.value(target, value);
    });
  }
}

void run_pool(const Work& work) {
  const DimRoles roles = roles_by_result(work.bound);
  for (const std::vector<int>& group : work.bound.groups) {
    std::vector<Operand> x = operands_of(work, 0, group);
    const auto evaluate = [&](const Coordinate& at) {
      return work.op().k[0] *
             fold_group(work, group, roles.reduced, Lanes(), at, OpId::sum,
                        [&](size_t member, const Coordinate& p) { return x[member].value(p); });
    };
    for_each_result(work, group, roles, evaluate,
                    [](Sink& sink, const Coordinate& at, float value) { sink.value(at, value); });
  }
}

void run_quant_scale(const Work& work) {
  // The scale that brings the largest magnitude of a token to the end of the fp8 range.
  const float low = work.op().k[0], high = work.op().k[1], factor = work.op().k[2];
  const DimRoles roles = roles_by_result(work.bound);
  const Lanes lanes = reduced_lanes(work.bound.input(0), roles);
  for (const std::vector<int>& group : work.bound.groups) {
    std::vector<Operand> x = operands_of(work, 0, group);
    const auto evaluate = [&](const Coordinate& at) {
      const float largest = fold_group(
          work, group, roles.reduced, lanes, at, kLargestMagnitude,
          [&](size_t member, const Coordinate& p) { return masked_value(work.bound, x[member], p); });
      return formulas::min(formulas::max(largest * factor, low), high);
    };
    for_each_result(work, group, roles, evaluate, store_reduced);
  }
}

namespace {

/// Moments of a row: lane 0 holds scale * sum(x) (0 under useZeroMean), lane 1 scale * sum(x * x), the rest
/// 0.
void run_exx2(const Work& work) {
  const float factor = work.op().k[0];
  const bool zero_mean = work.op().k[1] != 0;
  const DimRoles roles = roles_by_result(work.bound);
  const Lanes lanes = reduced_lanes(work.bound.input(0), roles);
  for (const std::vector<int>& group : work.bound.groups) {
    std::vector<Operand> x = operands_of(work, 0, group);
    const auto evaluate = [&](const Coordinate& at) {
      const auto value = [&](size_t member, const Coordinate& p) {
        return masked_value(work.bound, x[member], p);
      };
      const float first = fold_group(work, group, roles.reduced, lanes, at, OpId::sum, value);
      const float second = fold_group(work, group, roles.reduced, lanes, at, OpId::sum,
                                      [&](size_t member, const Coordinate& p) {
                                        const float v = value(member, p);
                                        return v * v;
                                      });
      return std::pair(zero_mean ? 0.0f : factor * first, factor * second);
    };
    for_each_result(work, group, roles, evaluate,
                    [](Sink& sink, const Coordinate& at, std::pair<float, float> moments) {
                      sink.whole_stick(at, 0);
                      sink.lane(at, 0, moments.first);
                      sink.lane(at, 1, moments.second);
                    });
  }
}

void run_layernorm_scale(const Work& work) {
  const float eps = work.op().k[0];
  const DimRoles roles = roles_by_result(work.bound);
  for (int core = 0; core < static_cast<int>(work.op().cores.size()); ++core) {
    Operand moments = work.input(0, core);
    Sink sink = work.output(core);
    Coordinate g{};
    for_each_point(work.bound.boxes[core], roles.kept, g, work.fault, [&](const Coordinate& at) {
      const float mean = moments.lane(at, 0), square = moments.lane(at, 1);
      sink.value(at, 1.0f / std::sqrt(square - mean * mean + eps));
    });
  }
}

void run_layernorm_norm(const Work& work) {
  const DimRoles roles = roles_by_result(work.bound);
  for (int core = 0; core < static_cast<int>(work.op().cores.size()); ++core) {
    Operand x = work.input(0, core), moments = work.input(1, core), r = work.input(2, core),
            w = work.input(3, core), b = work.input(4, core);
    Sink sink = work.output(core);
    Coordinate g{};
    for_each_point(work.bound.boxes[core], roles.kept, g, work.fault, [&](const Coordinate& at) {
      sink.value(at, (x.value(at) - moments.lane(at, 0)) * r.value(at) * w.value(at) + b.value(at));
    });
  }
}

}  // namespace

void run_layernorm(const Work& work) {
  if (work.op().info->id == OpId::exx2) {
    run_exx2(work);
  } else if (work.op().info->id == OpId::layernormscale) {
    run_layernorm_scale(work);
  } else {
    run_layernorm_norm(work);
  }
}

}  // namespace spyre::exec
