#include "spyre/device/timing/execute_work.h"

#include <map>
#include <tuple>

#include "spyre/cost/memory.h"
#include "spyre/cost/ring.h"
#include "spyre/device/timing/access_pattern.h"
#include "spyre/device/timing/matmul_roles.h"
#include "spyre/device/timing/ring_links.h"

namespace spyre::timing {
namespace {

using exec::BoundOp;
using program::Residence;
using program::Tensor;
using program::TensorDim;

/// What a core has of a tensor is the same memory as what another has if it starts at the same place and has
/// the same extents. Rows picked by an index are each core's own.
using SliceKey = std::vector<int64_t>;
SliceKey slice_key(const BoundOp& bound, int tensor, int core) {
  const Tensor& t = bound.tensors[tensor];
  SliceKey key = {bound.start[tensor][core], bits_of(t.format)};
  if (t.through) key.push_back(core);
  for (const TensorDim& dim : t.dims) {
    if (dim.scale > 0) key.push_back(bound.boxes[core].extent(dim.dim));
  }
  return key;
}

/// From the first byte that any core touches to past the last; a table is touched whole.
AddressRange range_of(const BoundOp& bound, int tensor) {
  const Tensor& t = bound.tensors[tensor];
  const auto [first, last] = std::minmax_element(bound.start[tensor].begin(), bound.start[tensor].end());
  int64_t elements = t.lanes();
  for (const TensorDim& dim : t.dims) {
    const bool whole = dim.indexed || dim.window;
    const int64_t steps = whole ? dim.extent : ceil_div(bound.op->slice_extent(dim.dim), dim.per_stick);
    if (dim.scale > 0) elements += (steps - 1) * dim.stride;
  }
  return {*first, *last + elements * bits_of(t.format) / 8};
}

class WorkBuilder {
 public:
  WorkBuilder(const BoundOp& bound, const Surroundings& surroundings, const Machine& machine,
              const Rates& rates)
      : bound_(bound),
        surroundings_(surroundings),
        machine_(machine),
        rates_(rates),
        counts_(exec::count_execute(bound, machine, &messages_)) {}

  ExecuteWork build() {
    if (bound_.op->info->family == OpFamily::kMatmul) roles_ = roles_of(bound_);
    add_streams();
    set_rates();
    set_caps();
    add_tasks();
    add_ring();
    return std::move(work_);
  }

 private:
  bool contracts() const { return roles_.has_value(); }
  double rows_per_core() const { return static_cast<double>(roles_->shape.m) / roles_->split.m; }

  void add_streams() {
    std::map<SliceKey, size_t> loads;
    for (int t = 0; t < static_cast<int>(bound_.tensors.size()); ++t) {
      if (bound_.tensors[t].residence != Residence::kHbm) continue;
      (t == bound_.op->output ? work_.writes : work_.reads).push_back(range_of(bound_, t));
      for (int core = 0; core < static_cast<int>(bound_.op->cores.size()); ++core) {
        const exec::Traffic& moved = counts_.tensors[t][core];
        if (moved.hbm_written > 0) {
          work_.stores.push_back(
              {.address = bound_.start[t][core], .bytes = moved.hbm_written, .cores = {core}});
        }
        if (moved.hbm_read == 0) continue;
        const auto [found, is_new] = loads.try_emplace(slice_key(bound_, t, core), work_.loads.size());
        if (is_new) {
          work_.loads.push_back({.address = bound_.start[t][core], .bytes = moved.hbm_read});
          again_.push_back(is_again(t));
        }
        // An operand that is there twice (x * x) is the same stream.
        std::vector<int>& readers = work_.loads[found->second].cores;
        if (std::find(readers.begin(), readers.end(), core) == readers.end()) readers.push_back(core);
      }
    }
  }

  bool is_again(int tensor) const {
    return surroundings_.tiled && !surroundings_.again.empty() && surroundings_.again[tensor];
  }

  /// Rows that a core has of the result, and columns of the whole: what fits of tiles are told by.
  std::pair<double, int64_t> tile() const {
    int64_t rows = 1, cols = 1;
    for (const TensorDim& dim : bound_.output().dims) {
      if (dim.scale < 0) continue;
      if (dim.per_stick > 1) {
        cols *= bound_.limit[dim.dim];
      } else {
        rows *= bound_.boxes.front().extent(dim.dim);
      }
    }
    return {static_cast<double>(rows), cols};
  }

  /// How much longer the memory takes for the streams of tiles.
  double tile_slowdown() const {
    if (!surroundings_.tiled) return 1;
    const auto [rows, cols] = tile();
    const int bytes = bits_of(bound_.output().format) / 8;
    const double fill = contracts() ? matmul_tile_efficiency(rows) : tile_efficiency(rows, cols);
    const TiledKind kind = contracts() ? TiledKind::kMatmul : TiledKind::kFused;
    return 1 / (std::min(1.0, fill) * spill_derate(rows, cols, bytes, kind));
  }

  void set_rates() {
    std::optional<double> rate = pattern_rate(bound_, surroundings_.alone, rates_);
    double reread = 0;
    if (contracts() && streams_weight(roles_->shape)) {
      rate = weight_rate(rows_per_core(), roles_->split, rates_);
    } else if (contracts()) {
      reread = operand_reread(roles_->shape, roles_->split);
    }
    const double tiles = tile_slowdown();
    for (size_t i = 0; i < work_.loads.size(); ++i) {
      Stream& load = work_.loads[i];
      load.rate = rate;
      load.slowdown = again_[i] ? rates_.reread_share : tiles * (1 + reread);
    }
    for (Stream& store : work_.stores) {
      store.rate = rate;
      store.slowdown = tiles;
    }
  }

  void set_caps() {
    const double alone = core_rate(static_cast<int>(bound_.op->cores.size()), rates_);
    double shared = rates_.slice_shared;
    if (contracts()) {
      shared = shared_slice_rate(rows_per_core(), roles_->split, rates_);
    }
    for (std::vector<Stream>* streams : {&work_.loads, &work_.stores}) {
      for (Stream& stream : *streams) stream.cap = stream.cores.size() > 1 ? shared : alone;
    }
  }

  void add_tasks() {
    for (size_t c = 0; c < bound_.op->cores.size(); ++c) {
      CoreTask task = {.core = bound_.op->cores[c].core, .counts = counts_.cores[c]};
      task.matrix = matrix_time(static_cast<double>(task.counts.macs));
      task.vector = {static_cast<double>(task.counts.vector_elements) / rates_.vector};
      for (const std::vector<exec::Traffic>& tensor : counts_.tensors) {
        const int64_t moved = std::max(tensor[c].lx_read, tensor[c].lx_written);
        task.lx = std::max(task.lx, Nanos{static_cast<double>(moved) / rates_.lx});
      }
      if (bound_.op->info->family == OpFamily::kShuffle) task.vector = task.lx = {};  // see add_ring
      work_.cores.push_back(std::move(task));
    }
  }

  Nanos matrix_time(double macs) const {
    if (macs == 0) return {};
    if (!contracts()) return {macs / rates_.mac_sustained};
    const MatmulTime whole = matmul_time(roles_->shape, roles_->split, rates_, roles_->batch_by_sticks);
    const double even_share = roles_->shape.macs() / roles_->split.cores();
    const Nanos penalty = streams_weight(roles_->shape) ? Nanos{} : whole.split_penalty;
    return whole.compute * one_corelet(roles_->split) * (macs / even_share) + penalty;
  }

  void add_ring() {
    std::map<int, std::vector<exec::RingMessage>> steps;
    for (const exec::RingMessage& message : messages_) steps[message.step].push_back(message);
    for (const auto& [number, messages] : steps) {
      RingStep step;
      RingLinks links(machine_.cores);
      for (const exec::RingMessage& message : messages) {
        links.send(bound_.op->cores[message.from].core, bound_.op->cores[message.to].core, message.bytes);
        step.sent.emplace_back(message.from, message.bytes);
      }
      step.time = {static_cast<double>(links.busiest()) / rates_.ring};
      work_.ring.push_back(std::move(step));
    }
    if (bound_.op->info->family == OpFamily::kShuffle) add_relayout();
  }

  /// A relayout takes at least what upstream measured for moving pieces, also where nothing leaves its core.
  void add_relayout() {
    const Nanos fitted = pieces_time();
    if (work_.ring.empty()) work_.ring.emplace_back();
    work_.ring.front().time = std::max(work_.ring.front().time, fitted);
  }

  Nanos pieces_time() const {
    const Tensor &from = bound_.input(0), &to = bound_.output();
    const auto slices = [](const Tensor& t) {
      int64_t product = 1;
      for (const int64_t split : t.own_splits) product *= split;
      return product;
    };
    const Tensor& finer = slices(to) > slices(from) ? to : from;
    int64_t run = bits_of(finer.format) * finer.lanes() / 8, bytes = 0, split = 1;
    for (const TensorDim& dim : finer.dims) {
      if (dim.scale < 0) continue;
      const int64_t parts = finer.own_splits[dim.dim];
      run *= ceil_div(bound_.extents.total[dim.dim] / parts, dim.per_stick);
      if (parts > 1) {
        split = parts;
        break;
      }
    }
    for (const exec::CoreCounts& core : counts_.cores) bytes += core.traffic.lx_written;
    const auto cores = static_cast<int>(bound_.op->cores.size());
    return relayout_time(Bytes(bytes), cores, Bytes(run), static_cast<int>(split), rates_);
  }

  const BoundOp& bound_;
  const Surroundings& surroundings_;
  const Machine& machine_;
  const Rates& rates_;
  std::vector<exec::RingMessage> messages_;
  exec::OpCounts counts_;
  std::optional<MatmulRoles> roles_;
  std::vector<bool> again_;  // [load]
  ExecuteWork work_;
};

}  // namespace

ExecuteWork work_of(const exec::BoundOp& bound, const Surroundings& surroundings, const Machine& machine,
                    const Rates& rates) {
  return WorkBuilder(bound, surroundings, machine, rates).build();
}

}  // namespace spyre::timing
