#include "spyre/device/exec/memory_shape.h"

#include <algorithm>

namespace spyre::exec {
namespace {

/// Launch specifications may hold any number: products stop at the largest.
int64_t times(int64_t a, int64_t b) {
  int64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? std::numeric_limits<int64_t>::max() : product;
}

/// Stride of each dim of a contiguous host tensor.
std::vector<int64_t> host_strides(const std::vector<int64_t>& shape) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;) {
    strides[i - 1] = times(strides[i], std::max<int64_t>(shape[i], 1));
  }
  return strides;
}

/// Sizes of the host tensor, or nothing where some are known only by name.
std::vector<int64_t> known_shape(const LaunchArg& arg) {
  std::vector<int64_t> shape;
  for (const auto& size : arg.shape) {
    if (!std::holds_alternative<int64_t>(size)) {
      return {};
    }
    shape.push_back(std::get<int64_t>(size));
  }
  return shape;
}

std::vector<MemoryDim> stepping_dims(const MemoryShape& shape) {
  std::vector<MemoryDim> dims;
  std::copy_if(shape.dims.begin(), shape.dims.end(), std::back_inserter(dims),
               [](const MemoryDim& d) { return d.steps > 1; });
  std::sort(dims.begin(), dims.end(),
            [](const MemoryDim& a, const MemoryDim& b) { return a.stride < b.stride; });
  return dims;
}

}  // namespace

int64_t slice_offset(const BoundOp& bound, int tensor, int core) {
  const Tensor& t = bound.tensors[tensor];
  const int64_t bytes = bits_of(t.format) / 8;
  int64_t offset = 0;
  for (const TensorDim& dim : t.dims) {
    if (t.residence == Residence::kLx || dim.stride == 0 || dim.indexed) {
      continue;
    }
    int64_t lower = bound.op->cores[core].slice[dim.dim] * bound.extents.per_core[dim.dim];
    lower *= dim.window ? dim.window->stride : 1;
    offset += (lower / dim.per_stick * dim.stride + lower % dim.per_stick) * bytes;
  }
  return offset;
}

int64_t first_held_stick(const BoundOp& bound, int tensor, int core) {
  const Tensor& t = bound.tensors[tensor];
  const Box held = bound.held(tensor, core);
  int64_t first = 0;
  int64_t stride = 1;
  for (const TensorDim& dim : t.dims) {
    if (dim.stride == 0) {
      continue;
    }
    first += held.lower[dim.dim] / dim.per_stick * stride;
    stride *= dim.extent * (t.own_slices.empty() ? bound.op->dims[dim.dim].splits : t.own_splits[dim.dim]);
  }
  return first;
}

MemoryShape shape_of(const BoundOp& bound, int tensor) {
  const Tensor& t = bound.tensors[tensor];
  MemoryShape shape;
  shape.base = bound.start[tensor].empty() ? 0 : bound.start[tensor][0] - slice_offset(bound, tensor, 0);
  for (const TensorDim& dim : t.dims) {
    if (dim.stride != 0) {
      const int64_t walked = bound.extents.total[dim.dim];
      // In LX the gap of a divided dim is behind each core's slice, and nobody knows where in the buffer.
      const bool whole =
          t.residence == Residence::kHbm || (t.own_slices.empty() && bound.op->dims[dim.dim].splits == 1);
      const bool gap = whole && ceil_div(walked, dim.per_stick) < dim.extent;
      shape.dims.push_back({.stride = dim.stride * bits_of(t.format) / 8,
                            .steps = dim.extent,
                            .per_stick = dim.per_stick,
                            .written = gap ? walked : kNoPadding,
                            .op_dim = dim.dim});
    }
  }
  return shape;
}

MemoryShape shape_of(const LaunchArg& arg, int64_t address) {
  MemoryShape shape{.base = address};
  const std::vector<int64_t> host = known_shape(arg);
  const std::vector<int64_t> strides = arg.stride.empty() ? host_strides(host) : arg.stride;
  // Behind the end of a view there may be more of its storage, which is no padding.
  const bool whole = arg.offset == 0 && arg.storage == 0 && strides.size() == host.size();
  const bool mapped =
      whole && arg.stride_map.size() == arg.device_size.size() && !arg.device_size.empty() && !host.empty();
  const int64_t lanes = arg.device_size.empty() ? 1 : arg.device_size.back();
  const int64_t lane_step = mapped ? arg.stride_map.back() : -1;
  int64_t stride = kStick;
  for (size_t i = arg.device_size.size(); i-- > 1;) {
    MemoryDim dim{.stride = stride, .steps = arg.device_size[i - 1]};
    const int64_t host_step = mapped ? arg.stride_map[i - 1] : -1;
    // The stick's own outer dim steps a whole stick of the host dim that its lanes step through. Where rows
    // are exactly one stick long the next dim steps as far; the stick's outer dim is then the one with one
    // step.
    const bool of_row =
        std::any_of(strides.begin(), strides.end(), [&](int64_t s) { return s == host_step; });
    const bool of_stick =
        lane_step > 0 && host_step == times(lanes, lane_step) && (!of_row || dim.steps == 1);
    for (size_t k = 0; k < host.size() && host_step > 0; ++k) {
      if (host[k] > 1 && strides[k] == (of_stick ? lane_step : host_step)) {
        dim.per_stick = of_stick ? lanes : 1;
        if (host[k] < times(dim.steps, dim.per_stick)) {
          dim.logical = host[k];
        }
      }
    }
    // A dim that steps through nothing of the host has its elements at the first step.
    if (mapped && host_step < 0 && dim.steps > 1) {
      dim.logical = 1;
    }
    shape.dims.push_back(dim);
    if (__builtin_mul_overflow(stride, std::max<int64_t>(dim.steps, 1), &stride)) {
      return {.base = address};  // no memory is that large; others refuse it
    }
  }
  return shape;
}

namespace {

/// Which dims that lie end to end are one: those that count in the same unit; and, for whoever asks for the order of
/// elements and not for coordinates, rows of whole sticks. The first sticks of all rows, then the second, are no row.
enum class Join : uint8_t { kOfOneUnit, kRowsOfSticks };

/// Stepping dims, those that lie end to end joined.
std::vector<MemoryDim> joined_dims(const MemoryShape& shape, Join which = Join::kOfOneUnit) {
  const auto one_walk = [&](const MemoryDim& inner, const MemoryDim& outer) {
    return inner.per_stick == outer.per_stick || (which == Join::kRowsOfSticks && outer.per_stick == 1);
  };
  std::vector<MemoryDim> joined;
  for (const MemoryDim& dim : stepping_dims(shape)) {
    const bool continues = !joined.empty() && one_walk(joined.back(), dim) &&
                           times(joined.back().stride, joined.back().steps) == dim.stride;
    if (continues) {
      joined.back().steps = times(joined.back().steps, dim.steps);
    } else {
      joined.push_back(dim);
    }
  }
  return joined;
}

bool equal_steps(const std::vector<MemoryDim>& x, const std::vector<MemoryDim>& y) {
  if (x.size() != y.size()) {
    return false;
  }
  for (size_t i = 0; i < x.size(); ++i) {
    const bool outermost = i + 1 == x.size();
    if (x[i].stride != y[i].stride || (!outermost && x[i].steps != y[i].steps)) {
      return false;
    }
  }
  return true;
}

}  // namespace

bool same_strides(const MemoryShape& a, const MemoryShape& b) {
  return equal_steps(stepping_dims(a), stepping_dims(b)) ||
         equal_steps(joined_dims(a, Join::kRowsOfSticks), joined_dims(b, Join::kRowsOfSticks));
}

namespace {

/// Whether a dim is a digit of one of the buffer's: its steps, and what lies inside one of them, divide it
/// evenly. Or it takes one in so many: every third row.
bool part_of(const MemoryDim& dim, const MemoryDim& whole) {
  if (whole.stride <= 0 || dim.stride % whole.stride != 0) {
    return false;
  }
  const int64_t step = dim.stride / whole.stride;
  return whole.steps % times(step, dim.steps) == 0 || (step > 1 && times(step, dim.steps - 1) < whole.steps);
}

/// Whether a dim walks through several of the buffer's that lie end to end, from the first to the last step.
bool joins(const MemoryDim& dim, const std::vector<MemoryDim>& buffer) {
  int64_t steps = 0;
  int64_t next = dim.stride;
  for (const MemoryDim& part : buffer) {  // by rising stride
    if (part.stride != next) {
      continue;
    }
    steps = steps == 0 ? part.steps : times(steps, part.steps);
    next = times(part.stride, part.steps);
    if (steps == dim.steps) {
      return true;
    }
  }
  return false;
}

}  // namespace

bool views(const MemoryShape& view, const MemoryShape& buffer) {
  const std::vector<MemoryDim> single = stepping_dims(buffer), joined = joined_dims(buffer);
  const auto any_has = [&](const auto& has) {
    return std::ranges::any_of(single, has) || std::ranges::any_of(joined, has);
  };
  return std::ranges::all_of(stepping_dims(view), [&](const MemoryDim& dim) {
    MemoryDim before_gap = dim;
    before_gap.steps = dim.written == kNoPadding ? dim.steps : ceil_div(dim.written, dim.per_stick);
    return before_gap.steps <= 1 || joins(dim, single) || joins(before_gap, single) ||
           any_has([&](const MemoryDim& whole) { return part_of(dim, whole); }) ||
           any_has([&](const MemoryDim& whole) {
             // With its gap it takes a whole number of the buffer's dims, or the buffer's a whole number of it.
             const bool fits = whole.steps % dim.steps == 0 || dim.steps % whole.steps == 0;
             return fits && part_of(before_gap, whole);
           });
  });
}

bool strides_within(const MemoryShape& view, const MemoryShape& buffer) {
  const std::vector<MemoryDim> x = stepping_dims(view), y = stepping_dims(buffer);
  return std::all_of(x.begin(), x.end(), [&](const MemoryDim& a) {
    return std::any_of(y.begin(), y.end(), [&](const MemoryDim& b) { return a.stride == b.stride; });
  });
}

namespace {

/// The dim of the buffer that a dim of a view steps as, and that says where something begins.
const MemoryDim* seen_by(const MemoryDim& dim, const MemoryShape& buffer, int64_t MemoryDim::*begin) {
  const auto found = std::ranges::find_if(buffer.dims, [&](const MemoryDim& known) {
    return known.*begin != kNoPadding && known.stride == dim.stride && known.per_stick == dim.per_stick;
  });
  return found == buffer.dims.end() ? nullptr : &*found;
}

/// Where that begins in the coordinates of the view.
int64_t begin_in(const MemoryShape& view, const MemoryShape& buffer, const MemoryDim& known, int64_t begin) {
  const int64_t apart = view.base - buffer.base;
  const int64_t steps = std::abs(apart) / known.stride % std::max<int64_t>(known.steps, 1);
  return std::max<int64_t>(begin - (apart < 0 ? -steps : steps) * known.per_stick, 0);
}

}  // namespace

Padding padding_along(const MemoryShape& view, const MemoryDim& dim, const MemoryShape& buffer) {
  Padding padding;
  if (const MemoryDim* known = seen_by(dim, buffer, &MemoryDim::logical)) {
    padding.begin = begin_in(view, buffer, *known, known->logical);
    padding.value = known->padding;
  }
  for (const MemoryDim& known : buffer.dims) {
    if (known.stride == dim.stride && known.per_stick == dim.per_stick && view.base == buffer.base) {
      padding.tail = known.tail;
    }
  }
  return padding;
}

int64_t written_extent(const MemoryShape& view, const MemoryDim& dim, const MemoryShape& buffer) {
  const MemoryDim* known = seen_by(dim, buffer, &MemoryDim::written);
  return known == nullptr ? kNoPadding : begin_in(view, buffer, *known, known->written);
}

bool in_gap(const MemoryShape& buffer, int64_t address) {
  return std::ranges::any_of(buffer.dims, [&](const MemoryDim& dim) {
    return dim.stride > 0 && (address - buffer.base) / dim.stride % dim.steps * dim.per_stick >= dim.written;
  });
}

Footprint logical_footprint(const MemoryShape& shape) {
  std::vector<StickLevel> levels;
  for (const MemoryDim& dim : shape.dims) {
    const int64_t steps = dim.logical == kNoPadding ? dim.steps : ceil_div(dim.logical, dim.per_stick);
    if (steps < 1) {
      return {};
    }
    levels.push_back({.stride = dim.stride / kStick, .count = std::min(steps, dim.steps)});
  }
  return runs_of(shape.base / kStick, std::move(levels));
}

}  // namespace spyre::exec
