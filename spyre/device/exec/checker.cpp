#include "spyre/device/exec/checker.h"

#include <fmt/format.h>

#include <algorithm>

#include "spyre/device/exec/checker_parts.h"

namespace spyre::exec {
namespace {

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

// What the parameters of a program point to. What is new here starts out empty: pools, and arguments that
// are outputs and nothing else.
void Checker::add_regions(const DeviceProgram& program, const LaunchValues& launch) {
  // A program's own pool ends with it.
  std::erase_if(regions_, [](const Region& region) { return region.is_pool && region.own; });
  const auto known = static_cast<std::ptrdiff_t>(regions_.size());
  static const std::vector<LaunchArg> kNoArgs;
  const std::vector<LaunchArg>& args = program.launch ? program.launch->args : kNoArgs;
  const auto is_known = [&](const auto& same) {
    return std::any_of(regions_.begin(), regions_.begin() + known, same);
  };
  for (size_t i = 0; i < program.parameters.size() && i < launch.parameters.size(); ++i) {
    const Parameter& parameter = program.parameters[i];
    const int64_t address = launch.parameters[i];
    if (parameter.is_pool && program.launch && !is_known([](const Region& r) { return r.is_pool; })) {
      add_region({.begin = address, .name = "pool", .is_pool = true}, program.launch->pool_size);
    }
    for (const LaunchArg& arg : args) {
      if (parameter.arg_index != arg.arg_index ||
          is_known([&](const Region& r) { return r.arg != nullptr && r.arg->arg_index == arg.arg_index; })) {
        continue;
      }
      args_.push_back(arg);
      add_region({.begin = address, .name = fmt::format("argument {}", arg.arg_index), .arg = &args_.back()},
                 bytes_of(arg));
    }
  }
  add_region({.begin = launch.pool_base, .name = "pool", .is_pool = true, .own = true}, program.pool_bytes);
  for (auto region = regions_.begin() + known; region != regions_.end(); ++region) {
    const bool aliased = std::any_of(regions_.begin(), regions_.end(), [&](const Region& other) {
      return &other != &*region && other.begin < region->end && region->begin < other.end;
    });
    if (region->is_pool || (region->arg != nullptr && region->arg->role == "output" && !aliased)) {
      write_sticks(hbm_, {region->begin / kStick, (region->end - region->begin) / kStick}, 0);
    }
  }
}

void Checker::begin_launch(const DeviceProgram& program, const LaunchValues& launch) {
  ++launch_;
  launching_ = true;
  findings_.clear();
  known_.clear();
  regions_.clear();
  args_.clear();
  spare_.insert(spare_.end(), dropped_.begin(), dropped_.end());
  dropped_.clear();
  add_regions(program, launch);
}

void Checker::next_bundle(const DeviceProgram& program, const LaunchValues& launch) {
  known_.clear();
  add_regions(program, launch);
}

void Checker::forget_lx() {
  const StickRun whole{0, machine_.lx_per_core.count() / kStick};
  for (auto& [core, memory] : lx_) {
    write_sticks(memory, whole, 0);
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
  launching_ = false;
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

}  // namespace spyre::exec
