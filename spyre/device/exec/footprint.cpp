#include "spyre/device/exec/footprint.h"

#include <algorithm>

#include "spyre/device/exec/kernels.h"

namespace spyre::exec {
namespace {

/// Local coordinates [lower, upper) of a box along a dim of the tensor.
std::pair<int64_t, int64_t> local_range(const TensorDim& dim, const Box& box, const Box& held) {
  const int d = dim.dim;
  if (dim.indexed) {
    return {0, dim.extent * dim.per_stick};
  }
  if (!dim.window) {
    return {box.lower[d] - held.lower[d], box.upper[d] - held.lower[d]};
  }
  const Window& w = *dim.window;
  const int64_t lowest = box.lower[d] * w.stride - w.pad_front + box.lower[w.window_dim] * w.dilation;
  const int64_t highest =
      (box.upper[d] - 1) * w.stride - w.pad_front + (box.upper[w.window_dim] - 1) * w.dilation;
  const int64_t origin = held.lower[d] * w.stride;
  return {std::max<int64_t>(lowest, 0) - origin, std::min(highest + 1, w.input_extent) - origin};
}

/// Adds a run for every combination of steps of the outer levels, the last of them slowest.
void add_runs(const std::vector<StickLevel>& outer, size_t depth, int64_t first, int64_t length,
              Footprint& out) {
  if (depth == 0) {
    out.push_back({first, length});
    return;
  }
  const StickLevel& level = outer[depth - 1];
  for (int64_t i = 0; i < level.count; ++i) {
    add_runs(outer, depth - 1, first + i * level.stride, length, out);
  }
}

bool is_search_input(const BoundOp& bound, int tensor) {
  return bound.op->info->family == OpFamily::kTopK && tensor != bound.op->output;
}

}  // namespace

Footprint runs_of(int64_t first, std::vector<StickLevel> levels) {
  std::erase_if(levels, [](const StickLevel& level) { return level.count == 1; });
  std::sort(levels.begin(), levels.end(),
            [](const StickLevel& a, const StickLevel& b) { return a.stride < b.stride; });
  int64_t length = 1;
  size_t merged = 0;
  while (merged < levels.size() && levels[merged].stride == length) {
    length *= levels[merged++].count;
  }
  levels.erase(levels.begin(), levels.begin() + static_cast<std::ptrdiff_t>(merged));
  Footprint out;
  add_runs(levels, levels.size(), first, length, out);
  return out;
}

Footprint footprint(const BoundOp& bound, int tensor, int core, const Box& box) {
  const Tensor& t = bound.tensors[tensor];
  const Box held = bound.held(tensor, core);
  const int64_t element_bytes = bits_of(t.format) / 8;
  for (int d = 0; d < bound.dims(); ++d) {
    if (box.extent(d) <= 0) {
      return {};
    }
  }
  int64_t first = bound.start[tensor][core] / kStick;
  std::vector<StickLevel> levels;
  for (const TensorDim& dim : t.dims) {
    if (dim.stride == 0) {
      continue;
    }
    const auto [lower, upper] = local_range(dim, box, held);
    if (upper <= lower) {
      return {};
    }
    const int64_t stride = dim.stride * element_bytes / kStick, begin = floor_quotient(lower, dim.per_stick);
    first += begin * stride;
    levels.push_back({.stride = stride, .count = ceil_div(upper, dim.per_stick) - begin});
  }
  if (t.through) {
    int64_t last = first;
    for (const StickLevel& level : levels) {
      last += (level.count - 1) * level.stride;
    }
    return {{first, last + 1 - first}};
  }
  return runs_of(first, std::move(levels));
}

Box touched_box(const BoundOp& bound, int tensor, int core) {
  if (bound.op->info->family == OpFamily::kShuffle) {
    return bound.held(tensor, core);
  }
  Box box = bound.boxes[core];
  for (int d = 0; d < bound.dims() && is_search_input(bound, tensor); ++d) {
    if (!bound.output().present(d) && box.extent(d) > 0) {
      box.lower[d] = 0;
      box.upper[d] = bound.limit[d];
    }
  }
  if (bound.op->info->family == OpFamily::kCopy) {
    for (const Tensor* side : {&bound.input(0), &bound.output()}) {
      for (const TensorDim& dim : side->dims) {
        if (side->residence == Residence::kHbm && dim.stride != 0 && !dim.indexed) {
          box.upper[dim.dim] = std::min(box.upper[dim.dim], dim.extent * dim.per_stick);
        }
      }
    }
  }
  return box;
}

std::vector<int> writing_cores(const BoundOp& bound) {
  std::vector<int> cores;
  switch (bound.op->info->family) {
    case OpFamily::kReduction:
    case OpFamily::kMatmul:
    case OpFamily::kConv:
    case OpFamily::kDepthwise:
    case OpFamily::kPool:
    case OpFamily::kQuantScale:
      for (const std::vector<int>& group : bound.groups) {
        const auto finishing = writers(bound, group);
        cores.insert(cores.end(), finishing.begin(), finishing.end());
      }
      return cores;
    case OpFamily::kLayerNorm:
      if (bound.op->info->id == OpId::exx2) {
        for (const std::vector<int>& group : bound.groups) {
          const auto finishing = writers(bound, group);
          cores.insert(cores.end(), finishing.begin(), finishing.end());
        }
        return cores;
      }
      [[fallthrough]];
    default:
      for (int core = 0; core < static_cast<int>(bound.op->cores.size()); ++core) {
        const bool relayout = bound.op->info->family == OpFamily::kShuffle;
        if (!relayout || !bound.output().own_slices[core].empty()) {
          cores.push_back(core);
        }
      }
      return cores;
  }
}

bool overlap(Footprint& a, Footprint& b) {
  const auto by_first = [](const StickRun& x, const StickRun& y) { return x.first < y.first; };
  std::sort(a.begin(), a.end(), by_first);
  std::sort(b.begin(), b.end(), by_first);
  for (auto i = a.begin(), j = b.begin(); i != a.end() && j != b.end();) {
    if (i->end() <= j->first) {
      ++i;
    } else if (j->end() <= i->first) {
      ++j;
    } else {
      return true;
    }
  }
  return false;
}

}  // namespace spyre::exec
