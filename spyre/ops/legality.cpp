#include "spyre/ops/legality.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace spyre {
namespace {

using Found = std::optional<Illegality>;

constexpr int kMostPreserved = 2, kMostShared = 2;

int dims_of(const OpShape& op) {
  return static_cast<int>(op.dims.size());
}

const OpShape::Dim& dim(const OpShape& op, int d) {
  return op.dims[static_cast<size_t>(d)];
}

const OpShape::Tensor& tensor(const OpShape& op, int t) {
  return op.tensors[static_cast<size_t>(t)];
}

std::string names(const OpShape& op, const std::set<int>& dims) {
  std::vector<std::string> labels;
  for (const int d : dims) labels.push_back(dim(op, d).label);
  return fmt::format("[{}]", fmt::join(labels, ", "));
}

Found slices_are_whole_sticks(const OpShape& op) {
  for (size_t t = 0; t < op.tensors.size(); ++t) {
    const OpShape::Tensor& tensor = op.tensors[t];
    for (int d = 0; d < dims_of(op); ++d) {
      const int64_t per_stick = tensor.per_stick[static_cast<size_t>(d)];
      if (!tensor.has(d) || per_stick == 1 || tensor.windows.contains(d)) continue;
      const int64_t splits =
          tensor.own_splits.empty() ? dim(op, d).splits : tensor.own_splits[static_cast<size_t>(d)];
      const int64_t slice = dim(op, d).extent / splits;
      if (slice % per_stick == 0 || (tensor.is_index && slice < per_stick)) continue;
      return Illegality{fmt::format("dataStageParam_.0.ss_.{}_", dim(op, d).label), static_cast<int>(t),
                        fmt::format("{} elements per core", slice),
                        fmt::format("a multiple of the stick size {}", per_stick)};
    }
  }
  return std::nullopt;
}

Found stick_is(const OpShape& op, int t, const std::set<int>& allowed, std::string_view why = "") {
  if (tensor(op, t).stick == allowed) return std::nullopt;
  return Illegality{"primaryDsInfo_.stickDimOrder_", t, names(op, tensor(op, t).stick),
                    names(op, allowed) + std::string(why)};
}

Found matmul_dims_have_roles(const OpShape& op) {
  if (op.info->family != OpFamily::kMatmul) return std::nullopt;
  const OpShape::Tensor &x = tensor(op, op.inputs[0]), &w = tensor(op, op.inputs[1]),
                        &out = tensor(op, op.output);
  std::set<int> contracted, generated;
  MatmulLoops loops;
  for (int d = 0; d < dims_of(op); ++d) {
    const bool in_x = x.has(d), in_w = w.has(d), in_out = out.has(d);
    const int step = dim(op, d).extent > 1 ? 1 : 0;
    if (in_x && in_w && !in_out) contracted.insert(d);
    // A batch dim that X lists as absent is broadcast, not generated.
    if (!in_x && in_w && in_out && !x.lists(d)) generated.insert(d);
    if (!in_x && in_w && in_out && x.lists(d)) loops.shared += step;
    if (in_x && !in_w && in_out) loops.preserved += step;
    if (in_x && in_w && in_out) loops.shared += step;
  }
  loops.contracted = static_cast<int>(contracted.size());
  loops.generated = static_cast<int>(generated.size());
  if (Found found = check_matmul_loops(loops)) return found;
  std::set<int> w_stick = generated;
  if (op.info->id == OpId::batchmatmulfp8) w_stick.insert(contracted.begin(), contracted.end());
  if (Found found = stick_is(op, op.inputs[0], contracted)) return found;
  if (Found found = stick_is(op, op.inputs[1], w_stick)) return found;
  return stick_is(op, op.output, generated);
}

Found topk_dims_have_roles(const OpShape& op) {
  if (op.info->family != OpFamily::kTopK) return std::nullopt;
  const bool keeps = op.info->id == OpId::keepbyindex;
  const OpShape::Tensor& values = tensor(op, op.inputs[0]);
  const OpShape::Tensor& ranked = keeps ? tensor(op, op.inputs[1]) : tensor(op, op.output);
  std::set<int> searched, rank;
  for (int d = 0; d < dims_of(op); ++d) {
    if (values.has(d) && !ranked.has(d)) searched.insert(d);
    if (!values.has(d) && ranked.has(d)) rank.insert(d);
  }
  if (searched.size() != 1 || rank.size() != 1) {
    return Illegality{"labeledDs_", -1,
                      fmt::format("{} searched and {} rank dims", searched.size(), rank.size()),
                      "one of each"};
  }
  if (!keeps && dim(op, *searched.begin()).splits != 1) {
    return Illegality{"numWkSlicesPerDim_", -1,
                      fmt::format("the searched dim '{}' split", dim(op, *searched.begin()).label),
                      "a searched dim that every core has whole"};
  }
  return std::nullopt;
}

Found pointwise_tensors_share_a_stick(const OpShape& op) {
  const OpFamily family = op.info->family;
  if (family != OpFamily::kPointwise && family != OpFamily::kReduction && family != OpFamily::kLayerNorm)
    return std::nullopt;
  for (size_t t = 0; t < op.tensors.size(); ++t) {
    if (op.tensors[t].is_index) continue;
    if (Found found = stick_is(op, static_cast<int>(t), tensor(op, op.output).stick, ", as the result"))
      return found;
  }
  return std::nullopt;
}

Found conversions_keep_the_stick(const OpShape& op) {
  // Weight and batch quantisation take their pairs from another dim; the rest stays along one.
  if (op.info->family != OpFamily::kConversion || op.info->id == OpId::qfp8wt || op.info->id == OpId::qfp8mb)
    return std::nullopt;
  const std::set<int>& stick = tensor(op, op.output).stick;
  if (Found found = stick_is(op, op.inputs[0], stick, ", as the result, one dim")) return found;
  if (stick.size() == 1) return std::nullopt;
  return Illegality{"primaryDsInfo_.stickDimOrder_", op.output, names(op, stick), "one dim"};
}

Found relayouts_stay_in_lx(const OpShape& op) {
  for (size_t t = 0; t < op.tensors.size(); ++t) {
    if (op.info->family == OpFamily::kShuffle && !op.tensors[t].in_lx) {
      return Illegality{"scheduleTree_.component_", static_cast<int>(t), "hbm",
                        "lx, for both sides of a relayout"};
    }
  }
  return std::nullopt;
}

Found broadcast_sticks_are_broadcast_whole(const OpShape& op) {
  for (size_t t = 0; t < op.tensors.size(); ++t) {
    const std::set<int>& stick = op.tensors[t].stick;
    const auto absent =
        std::count_if(stick.begin(), stick.end(), [&](int d) { return !op.tensors[t].has(d); });
    if (absent != 0 && absent != static_cast<int64_t>(stick.size())) {
      return Illegality{"labeledDs_.scale_", static_cast<int>(t), "one stick dim broadcast and another not",
                        "all stick dims or none"};
    }
  }
  return std::nullopt;
}

bool may_reduce(const OpInfo& info) {
  switch (info.family) {
    case OpFamily::kReduction:
    case OpFamily::kMatmul:
    case OpFamily::kTopK:
    case OpFamily::kQuantScale:
    case OpFamily::kPool:
    case OpFamily::kConv:
    case OpFamily::kDepthwise:
      return true;
    case OpFamily::kLayerNorm:
      return info.id != OpId::layernormscale && info.id != OpId::layernormnorm;
    default:
      return false;
  }
}

Found results_are_not_broadcast(const OpShape& op) {
  const OpShape::Tensor& out = tensor(op, op.output);
  if (may_reduce(*op.info) || out.through_index) return std::nullopt;
  for (int d = 0; d < dims_of(op); ++d) {
    if (out.has(d)) continue;
    return Illegality{"labeledDs_.scale_", op.output, fmt::format("no '{}' in the result", dim(op, d).label),
                      fmt::format("every dim: {} does not reduce", op.info->name)};
  }
  return std::nullopt;
}

}  // namespace

std::optional<Illegality> check_matmul_loops(const MatmulLoops& loops) {
  const auto refuse = [](int count, std::string_view what, std::string_view allowed) {
    return Illegality{"labeledDs_", -1, fmt::format("{} {}", count, what), std::string(allowed)};
  };
  if (loops.contracted != 1) return refuse(loops.contracted, "contracted dims", "one");
  if (loops.generated != 1) return refuse(loops.generated, "generated dims", "one");
  if (loops.preserved > kMostPreserved) return refuse(loops.preserved, "preserved dims", "at most two");
  if (loops.shared > kMostShared) return refuse(loops.shared, "dims shared by all three", "at most two");
  return std::nullopt;
}

std::optional<Illegality> check_legality(const OpShape& op) {
  for (const auto rule : {slices_are_whole_sticks, matmul_dims_have_roles, topk_dims_have_roles,
                          pointwise_tensors_share_a_stick, conversions_keep_the_stick, relayouts_stay_in_lx,
                          broadcast_sticks_are_broadcast_whole, results_are_not_broadcast}) {
    if (Found found = rule(op)) return found;
  }
  return std::nullopt;
}

}  // namespace spyre
