#include "spyre/codegen/superdsc/physical.h"

#include <fmt/format.h>

#include "spyre/base/text.h"

namespace spyre::superdsc {
namespace {

// Steps of a dimension that a whole op covers, and that one core holds.
int64_t iterated_steps(const SdscPlan& plan, const Tensor& tensor, const TensorDim& d) {
  return ceil_div(plan.dims[d.dim].extent, tensor.part(d.dim));
}

bool moves_directly(const TensorDim& d) {
  return d.scale > 0 && d.max_size == -1;
}

// Steps one core holds of a tensor in LX, gap included.
int64_t lx_steps(const SdscPlan& plan, const Tensor& tensor, const TensorDim& d) {
  if (d.scale < 0) return 1;
  const int64_t part = tensor.part(d.dim);
  return ceil_div(plan.dims[d.dim].extent / split_of(plan, tensor, d.dim) + d.gap, part);
}

void set_strides(Tensor& tensor) {
  int64_t stride = tensor.lanes;
  for (TensorDim& d : tensor.dims) {
    d.stride = stride;
    if (d.scale > 0 && (d.max_size == -1 || d.max_size == 1)) stride *= d.steps;
  }
}

Status set_gap(const SdscPlan& plan, const Tensor& tensor, TensorDim& d) {
  const Dim& dim = plan.dims[d.dim];
  if (d.scale < 0) return Status();
  if (d.max_size > 1) return Status();  // an outer index dimension is not in the table at all
  const int64_t part = tensor.part(d.dim);
  if (is_windowed_input(plan, tensor) && window_along(plan, d.dim)) return Status();
  d.gap = (d.steps - iterated_steps(plan, tensor, d)) * part;
  const bool indexed = d.max_size == 1;
  const bool may_be_short = plan.is_restickify() && part == 1;
  if (d.gap < 0 && !indexed && !may_be_short) {
    return plan
        .refuse(tensor, fmt::format("holds {} along '{}', the padded extent is {}", d.steps * part, dim.label,
                                    dim.extent))
        .try_instead("padding the tensor to whole sticks of every operand");
  }
  const int64_t last = d.offset * part + dim.logical;
  if (!indexed && last > d.steps * part) {
    return plan.refuse(tensor,
                       fmt::format("runs to {} along '{}', it holds {}", last, dim.label, d.steps * part));
  }
  return Status();
}

Status check_split(const SdscPlan& plan, const Tensor& tensor, const TensorDim& d) {
  const Dim& dim = plan.dims[d.dim];
  const int64_t split = split_of(plan, tensor, d.dim);
  if (dim.extent % split != 0) {
    return plan.refuse(
        fmt::format("'{}' has extent {}, which {} cores cannot share evenly", dim.label, dim.extent, split));
  }
  const int64_t per_core = dim.extent / split;
  const int64_t part = tensor.part(d.dim);
  // No rule pads the stick of an index tensor, so even one core may be left with a piece of a stick.
  if (tensor.indirection == Indirection::kIndex && per_core > part && per_core % part != 0) {
    return plan
        .refuse(tensor,
                fmt::format("each core reads {} indices along '{}', allowed are whole sticks of {} or "
                            "less than one",
                            per_core, dim.label, part))
        .try_instead("splitting the loop further, or making it a multiple of the stick");
  }
  if (split == 1 || d.scale < 0) return Status();
  if (!dim.dynamic.empty() && dim.bound.granularity % (split * part) != 0) {
    return plan.refuse(tensor, fmt::format("'{}' grows by {}, which {} cores cannot share in steps of {}",
                                           dim.label, dim.bound.granularity, split, part));
  }
  // Pieces of a stick of indices, where no core's piece runs over into the next stick.
  const bool short_index = tensor.indirection == Indirection::kIndex && part % per_core == 0;
  if (per_core % part != 0 && !short_index) {
    const bool index = tensor.indirection == Indirection::kIndex;
    return plan.refuse(tensor,
                       fmt::format("each core gets {} along '{}', allowed are whole sticks of {}{}", per_core,
                                   dim.label, part, index ? " or pieces that divide one" : ""));
  }
  if (tensor.in_lx() && (d.gap != 0 || d.offset != 0)) {
    return plan
        .refuse(tensor,
                fmt::format("is a slice along '{}', which is split; who holds which part in LX is open",
                            dim.label))
        .try_instead("a shuffle, or a copy in device memory");
  }
  if (plan.is_restickify() && dim.extent != dim.logical) {
    return plan.refuse(
        fmt::format("'{}' is padded from {} to {} and cannot be split", dim.label, dim.logical, dim.extent));
  }
  const auto window = is_windowed_input(plan, tensor) ? window_along(plan, d.dim) : std::nullopt;
  if (window && (window->pad_front != 0 || window->pad_back != 0)) {
    return plan.refuse(tensor, fmt::format("'{}' is padded by the window and cannot be split", dim.label));
  }
  return Status();
}

Status check_window(const SdscPlan& plan, const Tensor& tensor, const TensorDim& d) {
  const auto window = window_along(plan, d.dim);
  if (!window || !is_windowed_input(plan, tensor)) return Status();
  const int64_t consumed = window->total - window->pad_front - window->pad_back;
  if (consumed != d.steps) {
    return plan
        .refuse(tensor, fmt::format("windows consume {} of the {} positions along '{}'", consumed, d.steps,
                                    plan.dims[d.dim].label))
        .try_instead("cropping the input to what the windows reach");
  }
  return Status();
}

// Strides are whole sticks, and so are the pieces that check_split lets through.
void check_alignment(const SdscPlan& plan, const Tensor& tensor) {
  if (tensor.indirection == Indirection::kIndex) return;
  for (int64_t core = 0; core < plan.cores; ++core) {
    const int64_t at = slice_offset_bytes(plan, tensor) + core_offset_bytes(plan, tensor, core);
    SPYRE_CHECK(at % kStickBytes.count() == 0,
                fmt::format("core {} starts inside a stick, at byte {}", core, at));
  }
}

// Bytes from the first to the last element that one core touches.
int64_t span_bytes(const SdscPlan& plan, const Tensor& tensor) {
  int64_t elements = tensor.lanes;
  for (const TensorDim& d : tensor.dims) {
    if (d.scale < 0 || d.max_size > 1) continue;
    const int64_t per_core = ceil_div(plan.dims[d.dim].per_core(), tensor.part(d.dim));
    const int64_t reached = d.max_size == 1 || window_along(plan, d.dim) ? d.steps : per_core;
    elements += (reached - 1) * d.stride;
  }
  return elements * tensor.word_length;
}

Status check_room(const SdscPlan& plan, const Tensor& tensor, const Machine& machine) {
  if (!tensor.in_lx()) {
    const Bytes span(span_bytes(plan, tensor));
    if (span <= machine.span_limit) return Status();
    return plan
        .refuse(tensor, fmt::format("one core spans {} of device memory, it reaches {}", human_bytes(span),
                                    human_bytes(machine.span_limit)))
        .try_instead("splitting a dimension of the tensor over more cores");
  }
  int64_t bytes = tensor.lanes * tensor.word_length;
  for (const TensorDim& d : tensor.dims) {
    bytes *= lx_steps(plan, tensor, d);
  }
  const int64_t end = tensor.arg->allocation.value + bytes;
  if (end > machine.lx_per_core.count()) {
    return plan.refuse(tensor,
                       fmt::format("ends at byte {} of LX, a core has {}", end, machine.lx_per_core.count()));
  }
  return Status();
}

}  // namespace

bool is_windowed_input(const SdscPlan& plan, const Tensor& tensor) {
  return plan.has_window() && &tensor == &plan.tensors.front();
}

std::optional<WindowAlong> window_along(const SdscPlan& plan, int dim) {
  const std::string& label = plan.dims[dim].label;
  if (!plan.has_window() || (label != "i" && label != "j")) return std::nullopt;
  const WindowParams& w = *plan.op->window;
  const bool vertical = label == "i";
  WindowAlong along{.stride = vertical ? w.stride_i : w.stride_j,
                    .dilation = vertical ? w.dilation_i : w.dilation_j,
                    .kernel = vertical ? w.kernel_h : w.kernel_w,
                    .pad_front = vertical ? w.pad_i : w.pad_j,
                    .window_dim = vertical ? "ki" : "kj"};
  along.total = (plan.dims[dim].extent - 1) * along.stride + along.dilation * (along.kernel - 1) + 1;
  // Padding behind the input counts only as far as the last window reaches into it.
  const TensorDim* input = plan.tensors.front().find(dim);
  const int64_t reach = along.total - along.pad_front - (input != nullptr ? input->steps : 1);
  along.pad_back = std::clamp<int64_t>(reach, 0, along.pad_front);
  return along;
}

int64_t split_of(const SdscPlan& plan, const Tensor& tensor, int dim) {
  for (const WorkDivision& division : tensor.arg->work_division) {
    if (division.symbol == plan.dims[dim].symbol) return division.split;
  }
  return tensor.arg->work_division.empty() ? plan.dims[dim].split : 1;
}

int64_t slice_offset_bytes(const SdscPlan& plan, const Tensor& tensor) {
  int64_t elements = 0;
  int64_t lx_stride = tensor.lanes;
  for (const TensorDim& d : tensor.dims) {
    if (moves_directly(d) || d.max_size == 1) elements += d.offset * (tensor.in_lx() ? lx_stride : d.stride);
    lx_stride *= lx_steps(plan, tensor, d);
  }
  return elements * tensor.word_length;
}

int64_t core_offset_bytes(const SdscPlan& plan, const Tensor& tensor, int64_t core) {
  if (tensor.in_lx()) return 0;
  int64_t elements = 0;
  for (const TensorDim& d : tensor.dims) {
    if (!moves_directly(d) || !plan.dims[d.dim].dynamic.empty()) continue;
    int64_t first = plan.slices[core][d.dim] * plan.dims[d.dim].per_core();
    if (const auto window = window_along(plan, d.dim); window && is_windowed_input(plan, tensor)) {
      first *= window->stride;
    }
    const int64_t part = tensor.part(d.dim);
    elements += first / part * d.stride + first % part;
  }
  return elements * tensor.word_length;
}

std::vector<std::pair<int, int64_t>> core_bytes_per_extent(const SdscPlan& plan, const Tensor& tensor,
                                                           int64_t core) {
  std::vector<std::pair<int, int64_t>> bytes;
  for (const TensorDim& d : tensor.dims) {
    const Dim& dim = plan.dims[d.dim];
    if (dim.dynamic.empty() || !moves_directly(d) || plan.slices[core][d.dim] == 0) continue;
    const int64_t per_split = d.stride * tensor.word_length / tensor.part(d.dim);
    bytes.emplace_back(d.dim, plan.slices[core][d.dim] * per_split / dim.split);
  }
  return bytes;
}

Status lay_out(SdscPlan& plan, const Machine& machine) {
  for (Tensor& tensor : plan.tensors) {
    for (TensorDim& d : tensor.dims) {
      SPYRE_TRY(set_gap(plan, tensor, d));
      SPYRE_TRY(check_split(plan, tensor, d));
      SPYRE_TRY(check_window(plan, tensor, d));
    }
    set_strides(tensor);
    SPYRE_TRY(check_room(plan, tensor, machine));
    check_alignment(plan, tensor);
  }
  return Status();
}

}  // namespace spyre::superdsc
