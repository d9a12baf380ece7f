// Rules that need the resolved op: roles of dims, sticks, addresses.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "spyre/program/refusal.h"
#include "spyre/program/validate.h"

namespace spyre::program {
namespace {

Error refuse_tensor(const DeviceOp& op, const Tensor& tensor, std::string_view field, std::string_view found,
                    std::string_view allowed) {
  return refusal(op.file, fmt::format("dscs_[0].{}.{} of {}", op.name, field, tensor.name), found, allowed);
}

std::set<int> stick_dims(const Tensor& tensor) {
  std::set<int> dims;
  for (const StickDigit& digit : tensor.stick) {
    dims.insert(digit.dim);
  }
  return dims;
}

std::string names(const DeviceOp& op, const std::set<int>& dims) {
  std::vector<std::string> labels;
  for (const int dim : dims) {
    labels.push_back(op.dims[dim].label);
  }
  return fmt::format("[{}]", fmt::join(labels, ", "));
}

bool is_window_family(OpFamily family) {
  return family == OpFamily::kPool || family == OpFamily::kConv || family == OpFamily::kDepthwise;
}

Status slices_are_whole_sticks(const DeviceOp& op) {
  for (const Tensor& tensor : op.tensors) {
    for (const TensorDim& dim : tensor.dims) {
      if (dim.scale < 0 || dim.per_stick == 1 || dim.window) {
        continue;
      }
      int64_t slice = op.slice_extent(dim.dim);
      if (!tensor.own_splits.empty()) {
        slice = op.dims[dim.dim].extent / tensor.own_splits[dim.dim];
      }
      const bool whole = slice % dim.per_stick == 0;
      if (!whole && !(tensor.is_index && slice < dim.per_stick)) {
        return refuse_tensor(op, tensor, fmt::format("dataStageParam_.0.ss_.{}_", op.dims[dim.dim].label),
                             fmt::format("{} elements per core", slice),
                             fmt::format("a multiple of the stick size {}", dim.per_stick));
      }
    }
  }
  return Status();
}

Status matmul_dims_have_roles(const DeviceOp& op) {
  if (op.info->family != OpFamily::kMatmul) {
    return Status();
  }
  const Tensor &x = op.tensors[op.inputs[0]], &w = op.tensors[op.inputs[1]], &out = op.tensors[op.output];
  std::set<int> reduced, generated, preserved, shared;
  for (int d = 0; d < static_cast<int>(op.dims.size()); ++d) {
    const bool in_x = x.present(d), in_w = w.present(d), in_out = out.present(d);
    if (in_x && in_w && !in_out) reduced.insert(d);
    // A batch dim that X lists as absent is broadcast, not generated.
    if (!in_x && in_w && in_out) (x.find(d) != nullptr ? shared : generated).insert(d);
    if (in_x && !in_w && in_out) preserved.insert(d);
    if (in_x && in_w && in_out) shared.insert(d);
  }
  const std::string field = fmt::format("dscs_[0].{}.labeledDs_", op.name);
  if (reduced.size() != 1) {
    return refusal(op.file, field, fmt::format("{} contracted dims", reduced.size()), "one");
  }
  if (generated.size() != 1) {
    return refusal(op.file, field, fmt::format("{} generated dims", generated.size()), "one");
  }
  if (preserved.size() > 2) {
    return refusal(op.file, field, fmt::format("{} preserved dims", preserved.size()), "at most two");
  }
  if (shared.size() > 2) {
    return refusal(op.file, field, fmt::format("{} dims shared by all three", shared.size()), "at most two");
  }
  std::set<int> w_stick = generated;
  if (op.name == "batchmatmulfp8") {
    w_stick.insert(reduced.begin(), reduced.end());
  }
  const auto check = [&](const Tensor& tensor, const std::set<int>& allowed) -> Status {
    if (stick_dims(tensor) != allowed) {
      return refuse_tensor(op, tensor, "primaryDsInfo_.stickDimOrder_", names(op, stick_dims(tensor)),
                           names(op, allowed));
    }
    return Status();
  };
  SPYRE_TRY(check(x, reduced));
  SPYRE_TRY(check(w, w_stick));
  return check(out, generated);
}

Status topk_dims_have_roles(const DeviceOp& op) {
  if (op.info->family != OpFamily::kTopK) {
    return Status();
  }
  const bool keeps = op.name == "keepbyindex";
  const Tensor& values = op.tensors[op.inputs[0]];
  const Tensor& ranked = keeps ? op.tensors[op.inputs[1]] : op.tensors[op.output];
  std::set<int> searched, rank;
  for (int d = 0; d < static_cast<int>(op.dims.size()); ++d) {
    if (values.present(d) && !ranked.present(d)) searched.insert(d);
    if (!values.present(d) && ranked.present(d)) rank.insert(d);
  }
  const std::string field = fmt::format("dscs_[0].{}.labeledDs_", op.name);
  if (searched.size() != 1 || rank.size() != 1) {
    return refusal(op.file, field, fmt::format("{} searched and {} rank dims", searched.size(), rank.size()),
                   "one of each");
  }
  if (!keeps && op.dims[*searched.begin()].splits != 1) {
    return refusal(op.file, "numWkSlicesPerDim_",
                   fmt::format("the searched dim '{}' split", op.dims[*searched.begin()].label),
                   "a searched dim that every core has whole");
  }
  return Status();
}

Status pointwise_tensors_share_a_stick(const DeviceOp& op) {
  const OpFamily family = op.info->family;
  if (family != OpFamily::kPointwise && family != OpFamily::kReduction && family != OpFamily::kLayerNorm) {
    return Status();
  }
  const Tensor& out = op.tensors[op.output];
  for (const Tensor& tensor : op.tensors) {
    if (!tensor.is_index && stick_dims(tensor) != stick_dims(out)) {
      return refuse_tensor(op, tensor, "primaryDsInfo_.stickDimOrder_", names(op, stick_dims(tensor)),
                           names(op, stick_dims(out)) + ", as the result");
    }
  }
  return Status();
}

Status conversions_keep_the_stick(const DeviceOp& op) {
  // Weight and batch quantisation take their pairs from another dim; the rest stays along one.
  if (op.info->family != OpFamily::kConversion || op.name == "qfp8wt" || op.name == "qfp8mb") {
    return Status();
  }
  const Tensor &in = op.tensors[op.inputs[0]], &out = op.tensors[op.output];
  if (stick_dims(in) != stick_dims(out) || in.stick.size() != 1) {
    return refuse_tensor(op, in, "primaryDsInfo_.stickDimOrder_", names(op, stick_dims(in)),
                         names(op, stick_dims(out)) + ", as the result, one dim");
  }
  return Status();
}

Status relayouts_stay_in_lx(const DeviceOp& op) {
  for (const Tensor& tensor : op.tensors) {
    if (op.info->family == OpFamily::kShuffle && tensor.residence != Residence::kLx) {
      return refuse_tensor(op, tensor, "scheduleTree_.component_", "hbm", "lx, for both sides of a relayout");
    }
  }
  return Status();
}

Status broadcast_sticks_are_broadcast_whole(const DeviceOp& op) {
  for (const Tensor& tensor : op.tensors) {
    const std::set<int> dims = stick_dims(tensor);
    const size_t absent =
        std::count_if(dims.begin(), dims.end(), [&](int dim) { return !tensor.present(dim); });
    if (absent != 0 && absent != dims.size()) {
      return refuse_tensor(op, tensor, "labeledDs_.scale_", "one stick dim broadcast and another not",
                           "all stick dims or none");
    }
  }
  return Status();
}

bool may_reduce(OpFamily family) {
  return family == OpFamily::kReduction || family == OpFamily::kMatmul || family == OpFamily::kTopK ||
         family == OpFamily::kQuantScale || family == OpFamily::kLayerNorm || is_window_family(family);
}

Status results_are_not_broadcast(const DeviceOp& op) {
  const Tensor& out = op.tensors[op.output];
  if (may_reduce(op.info->family) && op.name != "layernormscale" && op.name != "layernormnorm") {
    return Status();
  }
  for (int d = 0; d < static_cast<int>(op.dims.size()); ++d) {
    if (!out.present(d) && !out.through) {
      return refuse_tensor(op, out, "labeledDs_.scale_",
                           fmt::format("no '{}' in the result", op.dims[d].label),
                           fmt::format("every dim: {} does not reduce", op.name));
    }
  }
  return Status();
}

Status addresses_are_legal(const DeviceOp& op, const Machine& machine) {
  for (const Tensor& tensor : op.tensors) {
    const int64_t bytes = allocated_elements(tensor) * bits_of(tensor.format) / 8;
    for (size_t c = 0; c < tensor.start.size(); ++c) {
      const CoreStart& start = tensor.start[c];
      if (start.symbolic) {
        continue;
      }
      const std::string field =
          fmt::format("scheduleTree_.startAddressCoreCorelet_.data_[{}]", op.cores[c].core);
      if (start.value % start_alignment(tensor) != 0) {
        return refuse_tensor(op, tensor, field, std::to_string(start.value),
                             fmt::format("a multiple of {}", start_alignment(tensor)));
      }
      if (tensor.residence == Residence::kLx && start.value + bytes > machine.lx_per_core.count()) {
        return refuse_tensor(op, tensor, field, fmt::format("{} with {} bytes after it", start.value, bytes),
                             fmt::format("an end within the {} bytes of LX", machine.lx_per_core.count()));
      }
    }
  }
  return Status();
}

/// Bytes between the first and past the last stick of a tensor that one core touches.
int64_t span_of(const DeviceOp& op, const Tensor& tensor) {
  int64_t last = 0;
  for (const TensorDim& dim : tensor.dims) {
    int64_t steps = dim.extent;
    if (!dim.window && !dim.indexed && dim.scale > 0 && !dim.index_outer) {
      steps = std::min(steps, ceil_div(op.slice_extent(dim.dim), dim.per_stick));
    }
    last += (steps - 1) * dim.stride;
  }
  return (last + tensor.lanes()) * bits_of(tensor.format) / 8;
}

Status cores_reach_their_slices(const DeviceOp& op, const Machine& machine) {
  for (const Tensor& tensor : op.tensors) {
    const bool table = tensor.through.has_value();
    if (tensor.residence == Residence::kHbm && !table && span_of(op, tensor) > machine.span_limit.count()) {
      return refuse_tensor(op, tensor, "scheduleTree_",
                           fmt::format("a slice that spans {} bytes", span_of(op, tensor)),
                           fmt::format("{}, what one core reaches", machine.span_limit.count()));
    }
  }
  return Status();
}

}  // namespace

Status validate_op(const DeviceOp& op, const Machine& machine) {
  SPYRE_TRY(slices_are_whole_sticks(op));
  SPYRE_TRY(matmul_dims_have_roles(op));
  SPYRE_TRY(topk_dims_have_roles(op));
  SPYRE_TRY(pointwise_tensors_share_a_stick(op));
  SPYRE_TRY(conversions_keep_the_stick(op));
  SPYRE_TRY(relayouts_stay_in_lx(op));
  SPYRE_TRY(broadcast_sticks_are_broadcast_whole(op));
  SPYRE_TRY(results_are_not_broadcast(op));
  SPYRE_TRY(addresses_are_legal(op, machine));
  return cores_reach_their_slices(op, machine);
}

}  // namespace spyre::program
