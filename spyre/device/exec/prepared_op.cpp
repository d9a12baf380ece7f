#include "spyre/device/exec/prepared_op.h"

#include <algorithm>

namespace spyre::exec {
namespace {

/// The part of a copy's box that both tensors have in memory.
Box clipped(const ProgramOp& op, Box box) {
  for (const Tensor& tensor : op.tensors) {
    for (const TensorDim& dim : tensor.dims) {
      if (tensor.residence == Residence::kHbm && dim.stride != 0 && !dim.indexed) {
        box.upper[dim.dim] =
            std::max(box.lower[dim.dim], std::min(box.upper[dim.dim], dim.extent * dim.per_stick));
      }
    }
  }
  return box;
}

std::unique_ptr<FastKernel> plan(const FastShape& shape) {
  switch (shape.op().info->family) {
    case OpFamily::kPointwise:
      return plan_pointwise(shape);
    case OpFamily::kReduction:
      return plan_reduction(shape);
    case OpFamily::kMatmul:
      return plan_matmul(shape);
    case OpFamily::kConversion:
      return plan_conversion(shape);
    case OpFamily::kCopy:
      return plan_copy(shape);
    case OpFamily::kShuffle:
      return plan_shuffle(shape);
    case OpFamily::kLayerNorm:
      return plan_layernorm(shape);
    default:
      return nullptr;
  }
}

bool overlap(const std::byte* a, int64_t a_bytes, const std::byte* b, int64_t b_bytes) {
  return a < b + b_bytes && b < a + a_bytes;
}

}  // namespace

std::span<std::byte> ScratchpadSpans::of(int core) {
  if (core >= static_cast<int>(spans_.size())) {
    spans_.resize(core + 1);
  }
  if (spans_[core].empty()) {
    Result<std::span<std::byte>> found = memory_.lx_span(core);
    if (found.ok()) {
      spans_[core] = found.value();
    }
  }
  return spans_[core];
}

PreparedOp::PreparedOp(BoundOp shape, const VectorKernels& kernels, const Machine& machine)
    : bound_(std::move(shape)), counts_(count_execute(bound_, machine)) {
  shape_.bound = &bound_;
  shape_.vectors = &kernels;
  const bool copies = bound_.op->info->family == OpFamily::kCopy;
  for (const Box& box : bound_.boxes) {
    shape_.boxes.push_back(copies ? clipped(*bound_.op, box) : box);
  }
  for (const Tensor& tensor : bound_.tensors) {
    shape_.geometry.push_back(geometry_of(tensor, shape_.dims()));
  }
  for (int c = 0; c < shape_.cores(); ++c) {
    const int core = bound_.op->cores[c].core;
    position_.resize(std::max<size_t>(position_.size(), core + 1), -1);
    position_[core] = c;
  }
  read_ = bound_.op->inputs;
  for (const Geometry& geometry : shape_.geometry) {
    if (geometry.index_tensor >= 0) {
      read_.push_back(geometry.index_tensor);
    }
  }
  find_reach();
  if (usable()) {
    kernel_ = plan(shape_);
  }
}

/// Slices of different cores must be different ones, and each core must have a scratchpad of its own.
bool PreparedOp::usable() const {
  const ProgramOp& op = *bound_.op;
  const bool shuffles = op.info->family == OpFamily::kShuffle;  // its tensors say who holds what
  for (size_t a = 0; a < op.cores.size(); ++a) {
    for (size_t b = 0; b < a; ++b) {
      if (op.cores[a].core == op.cores[b].core || (!shuffles && op.cores[a].slice == op.cores[b].slice)) {
        return false;
      }
    }
  }
  const bool copies = op.info->family == OpFamily::kCopy;
  return std::all_of(shape_.geometry.begin(), shape_.geometry.end(),
                     [&](const Geometry& g) { return g.plain || (copies && g.gathered >= 0); });
}

void PreparedOp::find_reach() {
  Coordinate all{};
  for (const Box& box : shape_.boxes) {
    for (int d = 0; d < shape_.dims(); ++d) {
      all[d] = std::max(all[d], box.upper[d]);
    }
  }
  for (size_t t = 0; t < shape_.geometry.size(); ++t) {
    const Geometry& g = shape_.geometry[t];
    // Any row of a table may be asked for, by any core: its starts are those of the first row.
    const auto reached = [&](Coordinate extent) {
      if (g.gathered >= 0) {
        extent[g.gathered] = g.rows * g.page;
      }
      return g.reach(extent, shape_.dims());
    };
    reach_.push_back(reached(all));
    for (int c = 0; c < shape_.cores(); ++c) {
      const bool own = !bound_.tensors[t].own_slices.empty();
      Box box = own ? bound_.held(static_cast<int>(t), c) : shape_.boxes[c];
      Coordinate extent{};
      for (int d = 0; d < shape_.dims(); ++d) {
        extent[d] = box.extent(d);
      }
      if (g.gathered >= 0) {
        box.lower[g.gathered] = 0;
      }
      core_reach_.push_back(reached(extent));
      core_offset_.push_back(g.offset(box.lower, shape_.dims()));
    }
  }
}

bool PreparedOp::find_places(const std::vector<int64_t>& starts, CardMemory& memory,
                             ScratchpadSpans& scratchpads, Places& places) const {
  if (!kernel_) {
    return false;
  }
  const auto tensors = static_cast<int>(shape_.geometry.size());
  places.cores = shape_.cores();
  places.origin.assign(tensors, nullptr);
  places.start.assign(static_cast<size_t>(tensors) * places.cores, nullptr);
  for (int t = 0; t < tensors; ++t) {
    const bool found = shape_.geometry[t].residence == Residence::kHbm
                           ? find_hbm(t, starts, memory, places)
                           : find_lx(t, starts, scratchpads, places);
    if (!found) {
      return false;
    }
  }
  return true;
}

bool PreparedOp::find_hbm(int t, const std::vector<int64_t>& starts, CardMemory& memory,
                          Places& places) const {
  if (reach_[t] == 0) {
    return true;
  }
  int64_t origin = 0;
  bool known = false;
  for (int c = 0; c < places.cores; ++c) {
    const int at = t * places.cores + c;
    if (core_reach_[at] == 0) {
      continue;
    }
    const int64_t implied = starts[at] - core_offset_[at];
    if (known && implied != origin) {
      return false;
    }
    origin = implied;
    known = true;
  }
  if (origin < 0) {
    return false;
  }
  Result<std::span<std::byte>> bytes = memory.hbm_span(static_cast<uint64_t>(origin), reach_[t]);
  if (!bytes.ok()) {
    return false;
  }
  places.origin[t] = bytes.value().data();
  for (int c = 0; c < places.cores; ++c) {
    places.start[t * places.cores + c] = places.origin[t] + core_offset_[t * places.cores + c];
  }
  return true;
}

bool PreparedOp::find_lx(int t, const std::vector<int64_t>& starts, ScratchpadSpans& scratchpads,
                         Places& places) const {
  for (int c = 0; c < places.cores; ++c) {
    const int at = t * places.cores + c;
    if (core_reach_[at] == 0) {
      continue;
    }
    const std::span<std::byte> bytes = scratchpads.of(bound_.op->cores[c].core);
    if (starts[at] < 0 || starts[at] + core_reach_[at] > static_cast<int64_t>(bytes.size())) {
      return false;
    }
    places.start[at] = bytes.data() + starts[at];
  }
  return true;
}

/// Whether results would overwrite what is still to be read of an input: of one core's part in LX, of all of
/// it in HBM.
bool PreparedOp::is_overwritten(int t, int core, const Places& places) const {
  const int out = bound_.op->output;
  const Geometry &from = shape_.geometry[t], &to = shape_.geometry[out];
  if (from.residence != to.residence) {
    return false;
  }
  const bool hbm = from.residence == Residence::kHbm;
  const std::byte* in = hbm ? places.origin[t] : places.at(t, core);
  const std::byte* result = hbm ? places.origin[out] : places.at(out, core);
  const int64_t bytes = hbm ? reach_[t] : core_reach_[t * places.cores + core];
  const int64_t result_bytes = hbm ? reach_[out] : core_reach_[out * places.cores + core];
  const bool may_coincide = kernel_->elementwise() && from.same_places(to) && in == result;
  return bytes != 0 && !may_coincide && overlap(in, bytes, result, result_bytes);
}

bool PreparedOp::overwrites_inputs(const Places& places) const {
  for (const int input : read_) {
    for (int c = 0; c < places.cores; ++c) {
      if (is_overwritten(input, c, places)) {
        return true;
      }
    }
  }
  return false;
}

void PreparedOp::keep_input_readable(int t, Places& places, Copies& copies) const {
  const auto keep = [&](const std::byte* bytes, int64_t size) {
    return copies.emplace_back(bytes, bytes + size).data();
  };
  if (shape_.geometry[t].residence == Residence::kHbm) {
    if (!is_overwritten(t, 0, places)) {
      return;
    }
    places.origin[t] = keep(places.origin[t], reach_[t]);
    for (int c = 0; c < places.cores; ++c) {
      places.start[t * places.cores + c] = places.origin[t] + core_offset_[t * places.cores + c];
    }
    return;
  }
  for (int c = 0; c < places.cores; ++c) {
    if (is_overwritten(t, c, places)) {
      std::byte*& in = places.start[t * places.cores + c];
      in = keep(in, core_reach_[t * places.cores + c]);
    }
  }
}

void PreparedOp::run(Places& places) const {
  Copies copies;
  for (const int input : read_) {
    keep_input_readable(input, places, copies);
  }
  kernel_->run(places);
}

void PreparedOp::run_core(const Places& places, int core) const {
  if (core < std::ssize(position_) && position_[core] >= 0) {
    kernel_->run_core(places, position_[core]);
  }
}

std::vector<HbmRange> PreparedOp::hbm_ranges(const Places& places) const {
  std::vector<HbmRange> ranges;
  for (size_t t = 0; t < reach_.size(); ++t) {
    if (places.origin[t] != nullptr) {
      ranges.push_back(
          {places.origin[t], places.origin[t] + reach_[t], bound_.op->output == static_cast<int>(t)});
    }
  }
  return ranges;
}

int64_t PreparedOp::bytes_per_core() const {
  int64_t bytes = 0;
  for (size_t t = 0; t < reach_.size(); ++t) {
    bytes += core_reach_[t * shape_.boxes.size()];
  }
  return bytes;
}

}  // namespace spyre::exec
