#include <algorithm>
#include <cmath>

#include "spyre/device/exec/kernels.h"
#include "spyre/program/element.h"

namespace spyre::exec {
namespace {

/// Whether memory has the coordinate: the physical extent of a tensor may be less than the padded iteration
/// space.
bool exists_in(const Tensor& tensor, const Coordinate& g) {
  return std::all_of(tensor.dims.begin(), tensor.dims.end(), [&](const TensorDim& dim) {
    return tensor.residence == Residence::kLx || dim.stride == 0 || dim.indexed ||
           g[dim.dim] < dim.extent * dim.per_stick;
  });
}

/// Quantisation saturates: a finite value beyond the fp8 range becomes the largest one, not NaN.
float saturated_for(DataFormat format, float value) {
  if (format != DataFormat::SEN143_FP8 && format != DataFormat::SEN152_FP8) {
    return value;
  }
  const float largest = format == DataFormat::SEN143_FP8 ? 448.0f : 57344.0f;
  return std::isfinite(value) ? std::clamp(value, -largest, largest) : value;
}

}  // namespace

int64_t converted_position(OpId op, int64_t c) {
  // c = block * 2 * half + high * half + ..., groups of `run` elements.
  const auto interleave = [&](int64_t half, int64_t run) {
    const int64_t block = c / (2 * half), high = c / half % 2, group = c / run % (half / run), e = c % run;
    return block * 2 * half + group * 2 * run + high * run + e;
  };
  const auto separate = [&](int64_t half, int64_t run) {
    const int64_t block = c / (2 * half), group = c % (2 * half) / (2 * run), high = c / run % 2, e = c % run;
    return block * 2 * half + high * half + group * run + e;
  };
  if (op == OpId::dl16tofp32) return widened_position(c);
  if (op == OpId::fp32todl16) return interleave(32, 4);
  if (op == OpId::fp8todl16) return separate(64, 8);
  if (op == OpId::qfp8ch) return interleave(64, 8);
  return c;
}

uint32_t converted_code(DataFormat format, float value) {
  return program::encode_element(format, without_nan_sign(saturated_for(format, value)));
}

void run_copy(const Work& work) {
  std::vector<int> dims;
  for (int d = 0; d < work.bound.dims(); ++d) {
    dims.push_back(d);
  }
  for (int core = 0; core < static_cast<int>(work.op().cores.size()); ++core) {
    Operand from = work.input(0, core);
    Sink to = work.output(core);
    Coordinate g{};
    for_each_point(work.bound.boxes[core], dims, g, work.fault, [&](const Coordinate& at) {
      if (exists_in(from.tensor(), at) && exists_in(to.tensor(), at)) {
        to.raw(at, from.raw(at));
      }
    });
  }
}

void run_conversion(const Work& work) {
  std::vector<int> dims;
  for (int d = 0; d < work.bound.dims(); ++d) {
    dims.push_back(d);
  }
  const int stick_dim = work.bound.output().stick.back().dim;
  const OpId op = work.op().info->id;
  for (int core = 0; core < static_cast<int>(work.op().cores.size()); ++core) {
    Operand from = work.input(0, core);
    Sink to = work.output(core);
    Coordinate g{};
    for_each_point(work.bound.boxes[core], dims, g, work.fault, [&](const Coordinate& at) {
      Coordinate target = at;
      target[stick_dim] = converted_position(op, at[stick_dim]);
      to.raw(target, converted_code(to.tensor().format, from.value(at)));
    });
  }
}

void run_shuffle(const Work& work) {
  const BoundOp& bound = work.bound;
  const int source = work.op().inputs[0], target = work.op().output;
  const auto cores = static_cast<int>(work.op().cores.size());
  std::vector<int> dims;
  for (int d = 0; d < bound.dims(); ++d) {
    dims.push_back(d);
  }
  std::vector<Operand> held;
  for (int core = 0; core < cores; ++core) {
    held.push_back(work.input(0, core));
  }
  for (int core = 0; core < cores; ++core) {
    if (bound.tensors[target].own_slices[core].empty()) {
      continue;
    }
    Sink sink = work.output(core);
    Coordinate g{};
    for_each_point(bound.held(target, core), dims, g, work.fault, [&](const Coordinate& at) {
      const int from = holder_of(bound, source, core, at);
      if (from < 0) {
        work.fault.raise(
            device_fault(bound, work.op().cores[core].core, 0, "no core holds the data it is to receive"));
        return;
      }
      sink.raw(at, held[from].raw(at));
    });
  }
}

int holder_of(const BoundOp& bound, int tensor, int core, const Coordinate& g) {
  const auto holds = [&](int candidate) {
    if (bound.tensors[tensor].own_slices[candidate].empty()) {
      return false;
    }
    const Box box = bound.held(tensor, candidate);
    for (int d = 0; d < bound.dims(); ++d) {
      if (g[d] < box.lower[d] || g[d] >= box.upper[d]) {
        return false;
      }
    }
    return true;
  };
  if (holds(core)) {
    return core;
  }
  for (int candidate = 0; candidate < static_cast<int>(bound.op->cores.size()); ++candidate) {
    if (holds(candidate)) {
      return candidate;
    }
  }
  return -1;
}

}  // namespace spyre::exec
