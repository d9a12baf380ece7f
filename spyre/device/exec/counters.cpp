#include "spyre/device/exec/counters.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "spyre/device/exec/kernels.h"

namespace spyre::exec {
namespace {

constexpr int64_t kPartialBytes = 4;  // a partial result travels as fp32

/// Input rows that a slice of a windowed dim needs.
int64_t rows_under_window(const BoundOp& bound, int core, const TensorDim& dim) {
  const Window& w = *dim.window;
  const Box& box = bound.boxes[core];
  std::set<int64_t> rows;
  for (int64_t i = box.lower[dim.dim]; i < box.upper[dim.dim]; ++i) {
    for (int64_t k = box.lower[w.window_dim]; k < box.upper[w.window_dim]; ++k) {
      const int64_t row = i * w.stride - w.pad_front + k * w.dilation;
      if (row >= 0 && row < w.input_extent) {
        rows.insert(row);
      }
    }
  }
  return static_cast<int64_t>(rows.size());
}

/// Sticks of a tensor that a core's slice has.
int64_t sticks_of(const BoundOp& bound, int tensor, int core) {
  const Tensor& t = bound.tensors[tensor];
  const Box box = bound.held(tensor, core);
  const bool copies = bound.op->info->family == OpFamily::kCopy;
  int64_t sticks = 1;
  for (const TensorDim& dim : t.dims) {
    if (dim.scale < 0) {
      continue;
    }
    int64_t steps = ceil_div(box.extent(dim.dim), dim.per_stick);
    if (dim.window) {
      steps = rows_under_window(bound, core, dim);
    } else if (copies && t.residence == Residence::kHbm && !dim.indexed && !dim.index_outer) {
      // A copy is clipped to what memory has.
      steps = std::clamp<int64_t>(dim.extent - box.lower[dim.dim] / dim.per_stick, 0, steps);
    }
    sticks *= steps;
  }
  return sticks;
}

void count_read(const BoundOp& bound, int tensor, int core, OpCounts& counts) {
  const int64_t bytes = sticks_of(bound, tensor, core) * kStickBytes.count();
  Traffic& traffic = counts.tensors[tensor][core];
  (bound.tensors[tensor].residence == Residence::kHbm ? traffic.hbm_read : traffic.lx_read) += bytes;
}

void count_write(const BoundOp& bound, int tensor, int core, OpCounts& counts) {
  const int64_t bytes = sticks_of(bound, tensor, core) * kStickBytes.count();
  Traffic& traffic = counts.tensors[tensor][core];
  (bound.tensors[tensor].residence == Residence::kHbm ? traffic.hbm_written : traffic.lx_written) += bytes;
}

int64_t ring_distance(const BoundOp& bound, int from, int to, const Machine& machine) {
  const int64_t apart = std::abs(bound.op->cores[from].core - bound.op->cores[to].core);
  return std::min(apart, machine.cores - apart);
}

/// The ring of one execute.
struct Ring {
  const Machine& machine;
  std::vector<RingMessage>* messages;  // may be null

  void count(const BoundOp& bound, const RingMessage& message, OpCounts& counts) const {
    CoreCounts& sender = counts.cores[message.from];
    sender.ring_bytes += message.bytes;
    sender.ring_byte_hops += message.bytes * ring_distance(bound, message.from, message.to, machine);
    if (messages != nullptr) messages->push_back(message);
  }
};

/// Values of the result that one group makes, one per reduced stick.
int64_t result_values(const BoundOp& bound, int core) {
  int64_t values = 1;
  for (int d = 0; d < bound.dims(); ++d) {
    if (bound.output().present(d)) {
      values *= bound.boxes[core].extent(d);
    }
  }
  return values;
}

void count_groups(const BoundOp& bound, const Ring& ring, OpCounts& counts) {
  for (const std::vector<int>& group : bound.groups) {
    const int64_t partial = result_values(bound, group.front()) * kPartialBytes;
    const int steps = static_cast<int>(group.size()) - 1;
    for (int i = 0; i < steps; ++i) {
      ring.count(bound, {group[i], group[i + 1], partial, i}, counts);
    }
    for (const int core : writers(bound, group)) {
      count_write(bound, bound.op->output, core, counts);
      if (core != group.back()) {
        const int64_t bytes = sticks_of(bound, bound.op->output, core) * kStickBytes.count();
        ring.count(bound, {group.back(), core, bytes, steps}, counts);
      }
    }
  }
}

void count_work(const BoundOp& bound, OpCounts& counts) {
  for (size_t c = 0; c < bound.boxes.size(); ++c) {
    int64_t points = 1, useful = 1;
    for (int d = 0; d < bound.dims(); ++d) {
      const Box& box = bound.boxes[c];
      int64_t masked = 0;
      for (const Mask& mask : bound.op->masks) {
        if (mask.dim == d) {
          const int64_t begin = std::max(mask.start, box.lower[d]);
          masked += std::max<int64_t>(std::min(mask.start + mask.count, box.upper[d]) - begin, 0);
        }
      }
      points *= box.extent(d);
      useful *= std::max<int64_t>(box.extent(d) - masked, 0);
    }
    CoreCounts& core = counts.cores[c];
    (bound.op->info->unit == ExUnit::kPt ? core.macs : core.vector_elements) += points;
    core.useful_elements += useful;
  }
}

/// Bytes a core receives of a relayout's tensor, by source. Boxes intersect, so this needs no walk over
/// elements.
void count_shuffle(const BoundOp& bound, const Ring& ring, OpCounts& counts) {
  const int source = bound.op->inputs[0], target = bound.op->output;
  const Tensor& out = bound.tensors[target];
  const auto cores = static_cast<int>(bound.op->cores.size());
  for (int core = 0; core < cores; ++core) {
    if (out.own_slices[core].empty()) {
      continue;
    }
    count_write(bound, target, core, counts);
    const Box wanted = bound.held(target, core);
    // Walk the corners of the finest common division: each piece has one source.
    std::vector<int> dims;
    Box pieces;
    Coordinate size{};
    for (int d = 0; d < bound.dims(); ++d) {
      const int64_t a = bound.extents.total[d] / bound.tensors[source].own_splits[d];
      const int64_t b = wanted.extent(d);
      size[d] = std::gcd(a, b);
      pieces.upper[d] = b / size[d];
      dims.push_back(d);
    }
    Coordinate piece{};
    const Fault none;
    for_each_point(pieces, dims, piece, none, [&](const Coordinate& at) {
      Coordinate corner{};
      int64_t values = 1;
      for (int d = 0; d < bound.dims(); ++d) {
        corner[d] = wanted.lower[d] + at[d] * size[d];
        values *= out.present(d) ? size[d] : 1;
      }
      const int from = holder_of(bound, source, core, corner);
      const int64_t bytes = values * bits_of(out.format) / 8;
      if (from < 0) {
        return;
      }
      counts.tensors[source][from].lx_read += bytes;
      if (from != core) {
        ring.count(bound, {from, core, bytes}, counts);
      }
    });
    int64_t points = 1;
    for (int d = 0; d < bound.dims(); ++d) {
      points *= wanted.extent(d);
    }
    counts.cores[core].vector_elements += points;
    counts.cores[core].useful_elements += points;
  }
}

}  // namespace

Traffic& Traffic::operator+=(const Traffic& other) {
  hbm_read += other.hbm_read;
  hbm_written += other.hbm_written;
  lx_read += other.lx_read;
  lx_written += other.lx_written;
  return *this;
}

CoreCounts& CoreCounts::operator+=(const CoreCounts& other) {
  traffic += other.traffic;
  ring_bytes += other.ring_bytes;
  ring_byte_hops += other.ring_byte_hops;
  macs += other.macs;
  vector_elements += other.vector_elements;
  useful_elements += other.useful_elements;
  return *this;
}

void OpCounts::add(const OpCounts& other) {
  if (executes == 0) {
    *this = other;
    return;
  }
  executes += other.executes;
  for (size_t t = 0; t < tensors.size(); ++t) {
    for (size_t c = 0; c < tensors[t].size(); ++c) {
      tensors[t][c] += other.tensors[t][c];
    }
  }
  for (size_t c = 0; c < cores.size(); ++c) {
    cores[c] += other.cores[c];
  }
}

CoreCounts OpCounts::total() const {
  CoreCounts sum;
  for (const CoreCounts& core : cores) {
    sum += core;
  }
  return sum;
}

Traffic OpCounts::tensor_total(int tensor) const {
  Traffic sum;
  for (const Traffic& traffic : tensors[tensor]) {
    sum += traffic;
  }
  return sum;
}

CoreCounts RunCounts::total() const {
  CoreCounts sum;
  for (const OpCounts& op : ops) {
    sum += op.total();
  }
  return sum;
}

OpCounts count_execute(const BoundOp& bound, const Machine& machine, std::vector<RingMessage>* messages) {
  const size_t cores = bound.op->cores.size();
  const Ring ring = {machine, messages};
  OpCounts counts;
  counts.executes = 1;
  counts.tensors.assign(bound.tensors.size(), std::vector<Traffic>(cores));
  counts.cores.resize(cores);
  if (bound.op->info->family == OpFamily::kShuffle) {
    count_shuffle(bound, ring, counts);
  } else {
    for (int t = 0; t < static_cast<int>(bound.tensors.size()); ++t) {
      for (int c = 0; c < static_cast<int>(cores) && t != bound.op->output; ++c) {
        count_read(bound, t, c, counts);
      }
    }
    count_groups(bound, ring, counts);
    count_work(bound, counts);
  }
  for (size_t c = 0; c < cores; ++c) {
    for (const std::vector<Traffic>& tensor : counts.tensors) {
      counts.cores[c].traffic += tensor[c];
    }
  }
  return counts;
}

}  // namespace spyre::exec
