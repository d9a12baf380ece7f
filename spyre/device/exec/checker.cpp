#include "spyre/device/exec/checker.h"

#include <fmt/format.h>

#include <algorithm>

#include "spyre/device/exec/padding_flow.h"

namespace spyre::exec {
namespace {

constexpr int64_t kStick = 128;

StickRun hull_of(const Footprint& sticks) {
  int64_t first = sticks.front().first, end = sticks.front().end();
  for (const StickRun& run : sticks) {
    first = std::min(first, run.first);
    end = std::max(end, run.end());
  }
  return {first, end - first};
}

StickRun join(const StickRun& a, const StickRun& b) {
  const int64_t first = std::min(a.first, b.first);
  return {first, std::max(a.end(), b.end()) - first};
}

/// From the first stick that any core touches to the last; nothing if none does.
std::optional<StickRun> hull_of(const std::vector<Footprint>& cores) {
  std::optional<StickRun> hull;
  for (const Footprint& sticks : cores) {
    if (!sticks.empty()) {
      hull = hull ? join(*hull, hull_of(sticks)) : hull_of(sticks);
    }
  }
  return hull;
}

bool contains(const StickRun& outer, const StickRun& inner) {
  return outer.first <= inner.first && inner.end() <= outer.end();
}

/// Part of a buffer, written or read as such: inside it, and stepping as it does.
bool is_slice_of(const MemoryShape& view, const StickRun& view_hull, const MemoryShape& buffer,
                 const StickRun& buffer_hull) {
  return contains(buffer_hull, view_hull) && strides_within(view, buffer);
}

/// Tensors whose steps are those of the iteration space: no window, no index.
bool is_plain(const Tensor& tensor) {
  return !tensor.is_index && !tensor.through &&
         std::none_of(tensor.dims.begin(), tensor.dims.end(),
                      [](const TensorDim& d) { return d.window.has_value() || d.indexed || d.index_outer; });
}

int64_t bytes_of(const LaunchArg& arg) {
  int64_t bytes = arg.device_format ? bits_of(*arg.device_format) / 8 : 0;
  for (const int64_t size : arg.device_size) {
    if (__builtin_mul_overflow(bytes, size, &bytes)) {
      return 0;
    }
  }
  return round_up(bytes, kStick);
}

/// The address of a stick; sticks outside any memory stop at the largest address.
int64_t bytes_at(int64_t stick) {
  int64_t bytes = 0;
  return __builtin_mul_overflow(stick, kStick, &bytes) ? std::numeric_limits<int64_t>::max() : bytes;
}

int core_count(const BoundOp& bound) {
  return static_cast<int>(bound.op->cores.size());
}

}  // namespace

// ---- records ---------------------------------------------------------------------------------------------

uint32_t Checker::new_record(Record record) {
  record.sequence = ++sequence_;
  if (!spare_.empty()) {
    const uint32_t number = spare_.back();
    spare_.pop_back();
    records_[number] = std::move(record);
    return number;
  }
  records_.push_back(std::move(record));
  return static_cast<uint32_t>(records_.size() - 1);
}

void Checker::write_sticks(ShadowMemory& memory, const StickRun& run, uint32_t number) {
  memory.for_each_run(run.first, run.count, [&](uint32_t old, int64_t, int64_t count) {
    if (old != 0) {
      Record& record = records_[old];
      record.sticks -= count;
      if (old != number && record.sticks == 0) {
        dropped_.push_back(old);
      }
    }
  });
  memory.fill(run.first, run.count, number);
  records_[number].sticks += number == 0 ? 0 : run.count;
}

// ---- the host --------------------------------------------------------------------------------------------

void Checker::note_alloc(uint64_t address, uint64_t bytes, std::string name) {
  const auto begin = static_cast<int64_t>(address), end = begin + static_cast<int64_t>(bytes);
  allocations_[begin] = {.begin = begin, .end = end, .name = std::move(name)};
  write_sticks(hbm_, {begin / kStick, ceil_div(end, kStick) - begin / kStick}, 0);
}

void Checker::note_free(uint64_t address) {
  const auto found = allocations_.find(static_cast<int64_t>(address));
  if (found != allocations_.end()) {
    const Region& region = found->second;
    write_sticks(hbm_, {region.begin / kStick, ceil_div(region.end, kStick) - region.begin / kStick}, 0);
    allocations_.erase(found);
  }
}

void Checker::note_host_write(uint64_t address, uint64_t bytes, std::string name) {
  const auto begin = static_cast<int64_t>(address), end = begin + static_cast<int64_t>(bytes);
  const StickRun run{begin / kStick, ceil_div(end, kStick) - begin / kStick};
  const uint32_t number = new_record({.who = {.op = std::move(name)}, .from_host = true, .hull = run});
  write_sticks(hbm_, run, number);
}

// ---- launches --------------------------------------------------------------------------------------------

void Checker::add_region(Region region, int64_t bytes) {
  const int64_t space = machine_.address_space().count();
  if (region.begin >= 0 && region.begin < space && bytes > 0) {
    region.end = region.begin + std::min(bytes, space - region.begin);
    regions_.push_back(std::move(region));
  }
}

void Checker::begin_launch(const DeviceProgram& program, const LaunchValues& launch) {
  ++launch_;
  findings_.clear();
  known_.clear();
  regions_.clear();
  spare_.insert(spare_.end(), dropped_.begin(), dropped_.end());
  dropped_.clear();
  args_ = program.launch ? program.launch->args : std::vector<LaunchArg>();
  for (size_t i = 0; i < program.parameters.size() && i < launch.parameters.size(); ++i) {
    const Parameter& parameter = program.parameters[i];
    const int64_t address = launch.parameters[i];
    if (parameter.is_pool && program.launch) {
      add_region({.begin = address, .name = "pool", .is_pool = true}, program.launch->pool_size);
    }
    for (const LaunchArg& arg : args_) {
      if (parameter.arg_index == arg.arg_index) {
        add_region({.begin = address, .name = fmt::format("argument {}", arg.arg_index), .arg = &arg},
                   bytes_of(arg));
      }
    }
  }
  add_region({.begin = launch.pool_base, .name = "pool", .is_pool = true}, program.pool_bytes);
  for (const Region& region : regions_) {
    const bool aliased = std::any_of(regions_.begin(), regions_.end(), [&](const Region& other) {
      return &other != &region && other.begin < region.end && region.begin < other.end;
    });
    if (region.is_pool || (region.arg != nullptr && region.arg->role == "output" && !aliased)) {
      write_sticks(hbm_, {region.begin / kStick, (region.end - region.begin) / kStick}, 0);
    }
  }
}

void Checker::find_sticks(const BoundOp& bound) {
  sticks_.assign(bound.tensors.size(), std::vector<Footprint>(core_count(bound)));
  for (int t = 0; t < static_cast<int>(bound.tensors.size()); ++t) {
    for (int core = 0; core < core_count(bound); ++core) {
      Footprint sticks = footprint(bound, t, core, touched_box(bound, t, core));
      if (!sticks.empty() && check_place(bound, t, core, sticks)) {
        sticks_[t][core] = std::move(sticks);
      }
    }
  }
}

void Checker::check_execute(const BoundOp& bound) {
  const auto tensors = static_cast<int>(bound.tensors.size());
  find_sticks(bound);
  for (int t = 0; t < tensors; ++t) {
    check_starts(bound, t);
    check_against_region(bound, t);
  }
  std::vector<Input> inputs;
  for (const int t : bound.op->inputs) {
    inputs.push_back(check_input(bound, t));
  }
  for (int t = 0; t < tensors; ++t) {
    if (bound.tensors[t].is_index) {
      check_input(bound, t);
    }
  }
  check_in_place(bound);
  check_padding(bound, inputs);
  write_output(bound, inputs);
}

std::vector<Finding> Checker::end_launch() {
  check_outputs();
  return abandon_launch();
}

std::vector<Finding> Checker::abandon_launch() {
  regions_.clear();
  return std::exchange(findings_, {});
}

const Checker::Region* Checker::region_of(int64_t address) const {
  for (const Region& region : regions_) {
    if (region.contains(address)) {
      return &region;
    }
  }
  auto next = allocations_.upper_bound(address);
  if (next == allocations_.begin()) {
    return nullptr;
  }
  --next;
  return next->second.contains(address) ? &next->second : nullptr;
}

// ---- findings --------------------------------------------------------------------------------------------

Party Checker::party(const BoundOp& bound, int tensor, int core) const {
  return {.launch = launch_,
          .instruction = bound.instruction,
          .file = bound.op->file,
          .op = bound.op->name,
          .tensor = bound.tensors[tensor].name,
          .core = core < 0 ? -1 : bound.op->cores[core].core};
}

void Checker::report(Rule rule, const BoundOp& bound, int tensor, int core, StickRun where,
                     std::string detail, std::optional<Party> other) {
  add({.rule = rule,
       .party = party(bound, tensor, core),
       .range = {bound.tensors[tensor].residence, bytes_at(where.first), bytes_at(where.end())},
       .other = std::move(other),
       .detail = std::move(detail)});
}

void Checker::add(Finding finding) {
  const auto [known, fresh] = known_.try_emplace(
      std::tuple(finding.rule, finding.party.file, finding.party.tensor), findings_.size());
  if (fresh) {
    findings_.push_back(std::move(finding));
  } else {
    ++findings_[known->second].occurrences;
  }
}

// ---- addresses: alignment, starts of cores, bounds, span --------------------------------------------------

void Checker::check_starts(const BoundOp& bound, int tensor) {
  const Tensor& t = bound.tensors[tensor];
  const int64_t base =
      bound.start[tensor].empty() ? 0 : bound.start[tensor][0] - slice_offset(bound, tensor, 0);
  for (int core = 0; core < core_count(bound); ++core) {
    const int64_t start = bound.start[tensor][core];
    const StickRun at{start / kStick, 1};
    if (start % start_alignment(t) != 0) {
      report(Rule::kMisaligned, bound, tensor, core, at,
             fmt::format("starts at {:#x}, allowed: a multiple of {}", start, start_alignment(t)));
    }
    const int64_t expected = base + slice_offset(bound, tensor, core);
    if (t.residence == Residence::kHbm && start != expected) {
      report(Rule::kCoreStart, bound, tensor, core, at,
             fmt::format("starts at {:#x}; its slice begins at {:#x}, seen from core {}", start, expected,
                         bound.op->cores[0].core),
             party(bound, tensor, 0));
    }
  }
}

/// Whether the sticks are in memory at all.
bool Checker::check_place(const BoundOp& bound, int tensor, int core, const Footprint& sticks) {
  const Tensor& t = bound.tensors[tensor];
  const bool lx = t.residence == Residence::kLx;
  const int64_t capacity = (lx ? machine_.lx_per_core : machine_.address_space()).count();
  const StickRun hull = hull_of(sticks);
  if (hull.first < 0 || hull.end() > capacity / kStick) {
    report(Rule::kOutOfBounds, bound, tensor, core, hull,
           fmt::format("leaves the {} of {} bytes", lx ? "scratchpad" : "address space", capacity));
    return false;
  }
  const int64_t begin = hull.first * kStick, end = hull.end() * kStick;
  if (!lx && end - begin > machine_.span_limit.count() && !t.through) {
    report(Rule::kSpan, bound, tensor, core, hull,
           fmt::format("spans {} bytes, allowed: {}", end - begin, machine_.span_limit.count()));
  }
  if (lx || (regions_.empty() && allocations_.empty())) {
    return true;
  }
  const Region* region = region_of(begin);
  if (region == nullptr) {
    report(Rule::kOutOfBounds, bound, tensor, core, hull, "is in no argument, pool or allocation");
  } else if (end > region->end) {
    report(Rule::kOutOfBounds, bound, tensor, core, hull,
           fmt::format("leaves {}, which is [{:#x}, {:#x})", region->name, region->begin, region->end));
  }
  return true;
}

void Checker::check_against_region(const BoundOp& bound, int tensor) {
  const Tensor& t = bound.tensors[tensor];
  if (t.residence == Residence::kLx || bound.start[tensor].empty()) {
    return;
  }
  const Region* region = region_of(bound.start[tensor][0]);
  if (region == nullptr || region->arg == nullptr) {
    return;
  }
  const StickRun at{region->begin / kStick, (region->end - region->begin) / kStick};
  const LaunchArg& arg = *region->arg;
  if (tensor == bound.op->output && arg.role == "input") {
    report(Rule::kReadOnly, bound, tensor, -1, at,
           fmt::format("writes {}, which the launch specification calls an input", region->name));
  }
  if (is_plain(t) && !views(shape_of(bound, tensor), shape_of(arg, region->begin))) {
    report(Rule::kLayout, bound, tensor, -1, at,
           fmt::format("steps through {} in another way than its device_size says", region->name));
  }
  const bool moves_bits = bound.op->info->family == OpFamily::kCopy;
  if (arg.device_format && *arg.device_format != t.format && !moves_bits) {
    report(Rule::kFormat, bound, tensor, -1, at,
           fmt::format("is {}, but {} holds {}", to_string(t.format), region->name,
                       to_string(*arg.device_format)));
  }
}

// ---- reads -----------------------------------------------------------------------------------------------

Checker::Input Checker::check_input(const BoundOp& bound, int tensor) {
  const Tensor& t = bound.tensors[tensor];
  Input input{.logical = std::vector<int64_t>(bound.dims(), kNoPadding)};
  std::vector<uint32_t> all;
  std::vector<int> seen;  // one core of each different slice
  bool missing = false;
  for (int core = 0; core < core_count(bound); ++core) {
    const Footprint& sticks = sticks_[tensor][core];
    const bool shared =
        t.residence == Residence::kHbm &&
        std::any_of(seen.begin(), seen.end(), [&](int other) { return sticks_[tensor][other] == sticks; });
    if (sticks.empty() || shared) {
      continue;
    }
    std::vector<uint32_t> found;
    ShadowMemory& memory = shadow(t.residence, bound.op->cores[core].core);
    for (const StickRun& run : sticks) {
      memory.for_each_run(run.first, run.count, [&](uint32_t number, int64_t, int64_t) {
        missing |= number == 0;
        if (number != 0 && std::find(found.begin(), found.end(), number) == found.end()) {
          found.push_back(number);
        }
      });
    }
    check_found(bound, tensor, core, hull_of(sticks), found);
    for (const uint32_t number : found) {
      records_[number].was_read = true;
      if (std::find(all.begin(), all.end(), number) == all.end()) {
        all.push_back(number);
      }
    }
    seen.push_back(core);
  }
  learn(bound, tensor, all, input);
  if (missing && !t.through) {
    Input result = input;
    for (const int core : seen) {
      check_missing(bound, tensor, core, input, result);
    }
    input = result;
  }
  return input;
}

void Checker::learn(const BoundOp& bound, int tensor, const std::vector<uint32_t>& found,
                    Input& input) const {
  const MemoryShape view = shape_of(bound, tensor);
  const Region* region = bound.tensors[tensor].residence == Residence::kHbm ? region_of(view.base) : nullptr;
  bool first = true;
  for (const uint32_t number : found) {
    const Record& record = records_[number];
    const bool known_arg = record.from_host && region != nullptr && region->arg != nullptr;
    const MemoryShape buffer = known_arg ? shape_of(*region->arg, region->begin) : record.shape;
    for (const MemoryDim& dim : view.dims) {
      int64_t& logical = input.logical[dim.op_dim];
      logical = std::min(logical, logical_extent(view, dim, buffer));
    }
    input.padding = first ? record.padding : join(input.padding, record.padding);
    input.format = first || input.format == record.format ? record.format : DataFormat::INVALID;
    first = false;
  }
}

void Checker::check_missing(const BoundOp& bound, int tensor, int core, const Input& input, Input& result) {
  const Tensor& t = bound.tensors[tensor];
  Box box = touched_box(bound, tensor, core);
  for (int d = 0; d < bound.dims(); ++d) {
    box.upper[d] = std::min(box.upper[d], std::max(input.logical[d], box.lower[d]));
  }
  std::optional<StickRun> gone;
  const int id = bound.op->cores[core].core;
  for (const StickRun& run : footprint(bound, tensor, core, box)) {
    shadow(t.residence, id)
        .for_each_run(run.first, run.count, [&](uint32_t number, int64_t at, int64_t count) {
          if (number == 0 && !gone) {
            gone = StickRun{at, count};
          }
        });
  }
  if (!gone) {
    result.padding = {.kind = PadValue::Kind::kUndefined};
    return;
  }
  for (const auto& [other, memory] : lx_) {
    uint32_t holder = 0;
    memory.for_each_run(gone->first, 1, [&](uint32_t number, int64_t, int64_t) { holder = number; });
    if (t.residence == Residence::kLx && other != id && holder != 0) {
      Party who = records_[holder].who;
      who.core = other;
      report(Rule::kNotHeld, bound, tensor, core, *gone, "nobody wrote this here; another core holds it",
             who);
      return;
    }
  }
  report(Rule::kUninitialised, bound, tensor, core, *gone, "reads what nobody wrote");
}

void Checker::check_found(const BoundOp& bound, int tensor, int core, const StickRun& hull,
                          const std::vector<uint32_t>& found) {
  const Tensor& t = bound.tensors[tensor];
  check_clobber(bound, tensor, core, found);
  for (const uint32_t number : found) {
    const Record& record = records_[number];
    if (record.from_host || !is_plain(t)) {
      continue;
    }
    Party who = record.who;
    if (t.residence == Residence::kLx) {
      check_held(bound, tensor, core, record, hull);
    } else if (!record.shape.dims.empty() && !views(shape_of(bound, tensor), record.shape)) {
      report(Rule::kLayout, bound, tensor, core, hull,
             "steps through the buffer in another way than its writer", who);
    }
    if (record.format != t.format && bound.op->info->family != OpFamily::kCopy) {
      report(Rule::kFormat, bound, tensor, core, hull,
             fmt::format("reads {} as {}", to_string(record.format), to_string(t.format)), who);
    }
  }
}

void Checker::check_clobber(const BoundOp& bound, int tensor, int core, const std::vector<uint32_t>& found) {
  for (const uint32_t newer : found) {
    for (const uint32_t older : found) {
      const Record &over = records_[newer], &under = records_[older];
      if (!over.overwrote.contains(under.sequence) || under.from_host ||
          is_slice_of(over.shape, over.hull, under.shape, under.hull)) {
        continue;
      }
      report(Rule::kClobbered, bound, tensor, core, over.hull,
             fmt::format("wants what {} wrote, part of which is overwritten", to_string(under.who)),
             over.who);
    }
  }
}

void Checker::check_held(const BoundOp& bound, int tensor, int core, const Record& record,
                         const StickRun& hull) {
  const MemoryShape view = shape_of(bound, tensor);
  Party who = record.who;
  who.core = bound.op->cores[core].core;
  if (!same_strides(view, record.shape)) {
    report(Rule::kLayout, bound, tensor, core, hull,
           "steps through the buffer in another way than its writer", who);
    return;
  }
  const auto held = record.held.find(who.core);
  const Box wanted = bound.held(tensor, core);
  for (const MemoryDim& dim : view.dims) {
    const auto same =
        std::find_if(record.shape.dims.begin(), record.shape.dims.end(), [&](const MemoryDim& d) {
          return d.stride == dim.stride && d.steps == dim.steps && d.per_stick == dim.per_stick;
        });
    if (held == record.held.end() || same == record.shape.dims.end() || view.base != record.shape.base) {
      continue;
    }
    const Box& has = held->second;
    if (has.lower[same->op_dim] != wanted.lower[dim.op_dim] && wanted.extent(dim.op_dim) > 0) {
      report(Rule::kNotHeld, bound, tensor, core, hull,
             fmt::format("wants '{}' from {}, but this core holds it from {}",
                         bound.op->dims[dim.op_dim].label, wanted.lower[dim.op_dim], has.lower[same->op_dim]),
             who);
      return;
    }
  }
}

// ---- in place --------------------------------------------------------------------------------------------

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
                       in_shape.dims == out_shape.dims && bits_of(in.format) == bits_of(out.format);
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

// ---- padding ---------------------------------------------------------------------------------------------

void Checker::check_padding(const BoundOp& bound, const std::vector<Input>& inputs) {
  std::vector<PaddedInput> padded;
  for (const Input& input : inputs) {
    padded.push_back({input.logical, input.padding});
  }
  for (const PaddingLeak& leak : padding_leaks(bound, padded)) {
    const int tensor = bound.op->inputs[leak.input];
    const Footprint& sticks = sticks_[tensor][0];
    std::optional<Party> other;
    const StickRun where = sticks.empty() ? StickRun{} : hull_of(sticks);
    if (!sticks.empty()) {
      shadow(bound.tensors[tensor].residence, bound.op->cores[0].core)
          .for_each_run(where.first, where.count, [&](uint32_t number, int64_t, int64_t) {
            if (number != 0 && !other) {
              other = records_[number].who;
            }
          });
    }
    report(Rule::kPadding, bound, tensor, -1, where, leak.detail, other);
  }
}

// ---- writes ----------------------------------------------------------------------------------------------

void Checker::write_output(const BoundOp& bound, const std::vector<Input>& inputs) {
  const int output = bound.op->output;
  const Tensor& out = bound.tensors[output];
  std::vector<PaddedInput> padded;
  for (const Input& input : inputs) {
    padded.push_back({input.logical, input.padding});
  }
  const PaddedInput result = padding_of_result(bound, padded);
  Record record{.who = party(bound, output, -1), .memory = out.residence, .format = out.format};
  record.shape = shape_of(bound, output);
  record.padding = result.padding;
  for (MemoryDim& dim : record.shape.dims) {
    dim.logical = result.logical[dim.op_dim];
  }
  std::vector<int> cores = writing_cores(bound);
  std::erase_if(cores, [&](int core) { return sticks_[output][core].empty(); });
  if (cores.empty()) {
    return;
  }
  record.hull = hull_of(sticks_[output][cores.front()]);
  for (const int core : cores) {
    record.hull = join(record.hull, hull_of(sticks_[output][core]));
    if (out.residence == Residence::kLx) {
      record.held[bound.op->cores[core].core] = bound.held(output, core);
    }
  }
  const bool moves_bits =
      bound.op->info->family == OpFamily::kCopy || bound.op->info->family == OpFamily::kShuffle;
  if (moves_bits && inputs[0].format != DataFormat::INVALID &&
      bits_of(inputs[0].format) == bits_of(out.format)) {
    record.format = inputs[0].format;  // a copy moves bits, whatever it calls them
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
    const Region* region = fresh.memory == Residence::kHbm ? region_of(first * kStick) : nullptr;
    const bool kernel_local = fresh.memory == Residence::kLx || (region != nullptr && region->is_pool);
    const bool slice =
        under.hull != fresh.hull && is_slice_of(fresh.shape, fresh.hull, under.shape, under.hull);
    if (kernel_local && !under.was_read && !under.from_host && under.who.launch == launch_ && !slice) {
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
