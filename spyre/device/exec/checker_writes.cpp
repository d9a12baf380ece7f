// The checker's rules about what an execute writes: over inputs, over other results, by two cores, not at
// all.

#include <fmt/format.h>

#include <algorithm>

#include "spyre/device/exec/checker.h"
#include "spyre/device/exec/checker_parts.h"
#include "spyre/device/exec/padding_flow.h"

namespace spyre::exec {

namespace {

/// Whether two tensors that begin at one place hold each point of the op there: they step alike along every dim that
/// has more than one.
bool step_alike(const BoundOp& bound, const MemoryShape& a, const MemoryShape& b) {
  const auto steps = [&](const MemoryShape& shape) {
    std::map<int, std::pair<int64_t, int64_t>> walked;
    for (const MemoryDim& dim : shape.dims) {
      if (bound.limit[dim.op_dim] > 1) {
        walked[dim.op_dim] = {dim.stride, dim.per_stick};
      }
    }
    return walked;
  };
  return steps(a) == steps(b);
}

}  // namespace

void Checker::check_in_place(const BoundOp& bound) {
  const int output = bound.op->output;
  const Tensor& out = bound.tensors[output];
  const MemoryShape out_shape = shape_of(bound, output);
  for (const int t : bound.op->inputs) {
    const Tensor& in = bound.tensors[t];
    if (in.residence != out.residence) {
      continue;
    }
    const MemoryShape in_shape = shape_of(bound, t);
    const bool exact = bound.op->info->in_place && bound.start[t] == bound.start[output] &&
                       step_alike(bound, in_shape, out_shape) && bits_of(in.format) == bits_of(out.format);
    const std::optional<StickRun> reads = hull_of(sticks_[t]), writes = hull_of(sticks_[output]);
    if (exact || !reads || !writes || reads->end() <= writes->first || writes->end() <= reads->first) {
      continue;
    }
    for (const int core : writing_cores(bound)) {
      for (int reader = 0; reader < core_count(bound); ++reader) {
        Footprint written = sticks_[output][core], read = sticks_[t][reader];
        if (written.empty() || (in.residence == Residence::kLx && reader != core) ||
            !overlap(read, written)) {
          continue;
        }
        report(
            Rule::kPartialOverlap, bound, output, core, hull_of(written),
            fmt::format("the result lies on {}, but {}", in.name,
                        bound.op->info->in_place ? "not element on element" : "the op cannot work in place"),
            party(bound, t, reader));
      }
    }
  }
}

void Checker::write_output(const BoundOp& bound, const std::vector<Input>& inputs) {
  const int output = bound.op->output;
  const Tensor& out = bound.tensors[output];
  std::vector<PaddedInput> padded;
  for (const Input& input : inputs) {
    padded.push_back(input.padding);
  }
  const PaddedInput result = padding_of_result(bound, padded);
  Record record{.who = party(bound, output, -1), .memory = out.residence, .format = out.format};
  record.shape = shape_of(bound, output);
  for (MemoryDim& dim : record.shape.dims) {
    dim.logical = result[dim.op_dim].begin;
    dim.padding = result[dim.op_dim].value;
    dim.tail = result[dim.op_dim].tail;
  }
  std::vector<int> cores = writing_cores(bound);
  std::erase_if(cores, [&](int core) { return sticks_[output][core].empty(); });
  if (cores.empty()) {
    return;
  }
  record.hull = hull_of(sticks_[output][cores.front()]);
  for (const int core : cores) {
    record.hull = join(record.hull, hull_of(sticks_[output][core]));
    for (const StickRun& run : sticks_[output][core]) {
      record.written += run.count;
    }
    if (out.residence == Residence::kLx) {
      record.held[bound.op->cores[core].core] = first_held_stick(bound, output, core);
    }
  }
  if (moves_bits(bound) && inputs[0].format != DataFormat::INVALID) {
    record.format =
        inputs[0].format;  // a copy moves bits, whatever it calls them: half-words are still of 32-bit values
  }
  const uint32_t number = new_record(record);
  for (const int core : cores) {
    ShadowMemory& memory = shadow(out.residence, bound.op->cores[core].core);
    for (const StickRun& run : sticks_[output][core]) {
      if (out.through) {
        // Which rows a scatter writes is not known here: what was written stays, what was not counts as
        // written.
        std::vector<StickRun> fresh;
        memory.for_each_run(run.first, run.count, [&](uint32_t old, int64_t first, int64_t count) {
          if (old == 0) {
            fresh.push_back({first, count});
          }
        });
        for (const StickRun& part : fresh) {
          write_sticks(memory, part, number);
        }
        continue;
      }
      check_overwritten(bound, core, run, record, number);
      write_sticks(memory, run, number);
    }
  }
  if (records_[number].sticks == 0) {
    dropped_.push_back(number);
  }
}

void Checker::check_overwritten(const BoundOp& bound, int core, const StickRun& run, const Record& fresh,
                                uint32_t number) {
  const int output = bound.op->output;
  const ShadowMemory& memory = shadow(fresh.memory, bound.op->cores[core].core);
  memory.for_each_run(run.first, run.count, [&](uint32_t old, int64_t first, int64_t count) {
    if (old == 0) {
      return;
    }
    if (old == number) {
      int other = -1;
      for (const int candidate : writing_cores(bound)) {
        Footprint theirs = sticks_[output][candidate];
        Footprint here = {{first, count}};
        if (candidate != core && other < 0 && overlap(theirs, here)) {
          other = candidate;
        }
      }
      report(Rule::kSharedStick, bound, output, core, {first, count}, "another core writes the same sticks",
             party(bound, output, other));
      return;
    }
    Record& under = records_[old];
    records_[number].overwrote.insert(under.sequence);
    if (under.read.count == 0 || join(under.read, fresh.hull) == fresh.hull) {
      records_[number].updated.insert(under.sequence);
    }
    const Region* region = fresh.memory == Residence::kHbm ? region_of(first * kStick) : nullptr;
    const bool kernel_local = fresh.memory == Residence::kLx || (region != nullptr && region->is_pool);
    const bool slice =
        fresh.written < under.written && is_slice_of(fresh.shape, fresh.hull, under.shape, under.hull);
    if (kernel_local && under.read.count == 0 && !under.from_host && under.who.launch == launch_ && !slice) {
      report(Rule::kLostResult, bound, output, core, {first, count},
             "writes over a result that nobody has read", under.who);
    }
  });
}

void Checker::check_outputs() {
  for (const Region& region : regions_) {
    if (region.arg == nullptr || region.arg->role != "output") {
      continue;
    }
    const bool dynamic =
        std::any_of(region.arg->shape.begin(), region.arg->shape.end(),
                    [](const auto& size) { return std::holds_alternative<std::string>(size); });
    for (const StickRun& run : logical_footprint(shape_of(*region.arg, region.begin))) {
      hbm_.for_each_run(run.first, run.count, [&](uint32_t number, int64_t first, int64_t count) {
        if (!dynamic && records_[number].who.launch != launch_) {
          add({.rule = Rule::kNotWritten,
               .party = {.launch = launch_, .op = "launch", .tensor = region.name},
               .range = {Residence::kHbm, first * kStick, (first + count) * kStick},
               .detail = fmt::format("{} is an output, but these sticks were not written", region.name)});
        }
      });
    }
  }
}

}  // namespace spyre::exec
