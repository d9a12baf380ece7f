// Rules that need the resolved op: its shape, by the rules that the compiler follows too, and addresses.

#include <fmt/format.h>

#include <algorithm>

#include "spyre/ops/legality.h"
#include "spyre/program/refusal.h"
#include "spyre/program/validate.h"

namespace spyre::program {
namespace {

Error refuse_tensor(const ProgramOp& op, const Tensor& tensor, std::string_view field, std::string_view found,
                    std::string_view allowed) {
  return refusal(op.file, fmt::format("dscs_[0].{}.{} of {}", op.name, field, tensor.name), found, allowed);
}

OpShape shape_of(const ProgramOp& op) {
  OpShape shape{.info = op.info, .inputs = op.inputs, .output = op.output};
  for (const ProgramDim& dim : op.dims) {
    shape.dims.push_back({.label = dim.label, .extent = dim.extent, .splits = dim.splits});
  }
  for (const Tensor& tensor : op.tensors) {
    OpShape::Tensor& out = shape.tensors.emplace_back();
    out = {.name = tensor.name,
           .presence = std::vector(op.dims.size(), Presence::kUnlisted),
           .per_stick = std::vector<int64_t>(op.dims.size(), 1),
           .own_splits = tensor.own_splits,
           .is_index = tensor.is_index,
           .through_index = tensor.through.has_value(),
           .in_lx = tensor.residence == Residence::kLx};
    for (const TensorDim& dim : tensor.dims) {
      out.presence[dim.dim] = dim.scale > 0 ? Presence::kPresent : Presence::kAbsent;
      out.per_stick[dim.dim] = dim.per_stick;
      if (dim.window) {
        out.windows.insert(dim.dim);
      }
    }
    for (const StickDigit& digit : tensor.stick) {
      out.stick.insert(digit.dim);
    }
  }
  return shape;
}

Status shape_is_legal(const ProgramOp& op) {
  const std::optional<Illegality> found = check_legality(shape_of(op));
  if (!found) {
    return Status();
  }
  if (found->tensor >= 0) {
    return refuse_tensor(op, op.tensors[found->tensor], found->field, found->found, found->allowed);
  }
  return refusal(op.file, fmt::format("dscs_[0].{}.{}", op.name, found->field), found->found, found->allowed);
}

/// Bytes from where a core's part of a tensor starts to behind the last stick that the core reaches. A view that begins
/// late in a buffer has a gap as large as the buffer, which goes on behind the buffer's end.
int64_t reached_bytes(const ProgramOp& op, const Tensor& tensor) {
  int64_t last = 0;
  for (const TensorDim& dim : tensor.dims) {
    const bool walks = tensor.own_slices.empty() && dim.stride != 0 && !dim.window && !dim.indexed;
    const int64_t steps =
        walks ? std::min(dim.extent, ceil_div(op.slice_extent(dim.dim), dim.per_stick)) : dim.extent;
    last += (steps - 1) * dim.stride;
  }
  return (last + tensor.lanes()) * bits_of(tensor.format) / 8;
}

Status addresses_are_legal(const ProgramOp& op, const Machine& machine) {
  for (const Tensor& tensor : op.tensors) {
    const int64_t bytes = reached_bytes(op, tensor);
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
int64_t span_of(const ProgramOp& op, const Tensor& tensor) {
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

Status cores_reach_their_slices(const ProgramOp& op, const Machine& machine) {
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

Status validate_op(const ProgramOp& op, const Machine& machine) {
  SPYRE_TRY(shape_is_legal(op));
  SPYRE_TRY(addresses_are_legal(op, machine));
  return cores_reach_their_slices(op, machine);
}

}  // namespace spyre::program
