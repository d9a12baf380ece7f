#include "spyre/runtime/run_facts.h"

#include <algorithm>
#include <array>

#include "spyre/device/timing/rate_over_time.h"
#include "spyre/device/timing/simulate.h"
#include "spyre/runtime/kernel_times.h"

namespace spyre {
namespace {

using timing::Timeline;
using timing::Unit;

Result<Timeline> timeline_of(const ProgramRun& run, timing::Detail detail) {
  const LoadedProgram& loaded = *run.program;
  return timing::simulate(loaded.program(), {.parameters = run.parameters}, loaded.machine(), fitted_rates(),
                          detail);
}

RunFacts facts_of(const ProgramRun& run) {
  const Result<Timeline> played = timeline_of(run, timing::Detail::kExecutes);
  if (!played.ok()) {
    return {.bound = "unknown", .memory_busy = {}, .read = {}, .written = {}, .ops = {}};
  }
  const Timeline& timeline = played.value();
  RunFacts facts = {.bound = "nothing",
                    .memory_busy = timeline.memory_busy,
                    .read = timeline.read,
                    .written = timeline.written,
                    .ops = {}};
  std::vector<Nanos> longest;
  for (const program::ProgramOp& op : run.program->program().ops) {
    facts.ops.push_back(
        {.name = op.name, .file = op.file, .time = {}, .bound = "nothing", .read = {}, .written = {}});
    longest.emplace_back();
  }
  std::map<std::string_view, Nanos> by_bound;
  for (const timing::ExecuteTime& execute : timeline.executes) {
    const auto position = static_cast<size_t>(execute.op);
    OpFacts& op = facts.ops[position];
    const Nanos window = execute.end - execute.begin;
    op.time = op.time + window;
    op.read += execute.read;
    op.written += execute.written;
    if (window >= longest[position]) {
      longest[position] = window;
      op.bound = timing::to_string(execute.bound);
    }
    Nanos& sum = by_bound[timing::to_string(execute.bound)];
    sum = sum + window;
  }
  const auto most = std::max_element(by_bound.begin(), by_bound.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most != by_bound.end()) {
    facts.bound = most->first;
  }
  return facts;
}

std::string_view name_of(Unit unit) {
  return unit == Unit::kMatrix || unit == Unit::kVector ? "compute" : timing::to_string(unit);
}

std::vector<Level> levels_of(const timing::RateOverTime& rate) {
  std::vector<Level> levels;
  for (const auto& [at, value] : rate.levels()) levels.push_back({at, value});
  return levels;
}

/// Bytes of scratchpads whose content is used, from the first execute that touches them to the last.
std::vector<Level> lx_live(const ProgramRun& run, const Timeline& timeline) {
  struct Life {
    Nanos begin, end;
    int64_t bytes = 0;
  };
  std::map<std::pair<int, int64_t>, Life> lives;  // by core and address
  for (const timing::ExecuteTime& execute : timeline.executes) {
    const program::ProgramOp& op = run.program->program().ops[static_cast<size_t>(execute.op)];
    for (const program::Tensor& tensor : op.tensors) {
      if (tensor.residence != program::Residence::kLx) continue;
      const int64_t bytes = program::allocated_elements(tensor) * bits_of(tensor.format) / 8;
      for (size_t position = 0; position < op.cores.size() && position < tensor.start.size(); ++position) {
        if (tensor.start[position].symbolic) continue;
        Life& life = lives
                         .try_emplace({op.cores[position].core, tensor.start[position].value},
                                      Life{execute.begin, execute.end, bytes})
                         .first->second;
        life.end = execute.end;
        life.bytes = std::max(life.bytes, bytes);
      }
    }
  }
  std::map<double, double> changes;
  for (const auto& [place, life] : lives) {
    changes[life.begin.ns] += static_cast<double>(life.bytes);
    changes[life.end.ns] -= static_cast<double>(life.bytes);
  }
  std::vector<Level> levels;
  double live = 0;
  for (const auto& [at, change] : changes) {
    live += change;
    levels.push_back({{at}, live});
  }
  return levels;
}

}  // namespace

const RunFacts& RunFactsCache::of(const ProgramRun& run) {
  const auto [place, fresh] =
      facts_.try_emplace({run.program.get(), extents_among(run.parameters, *run.program)});
  if (fresh) {
    place->second = facts_of(run);
  }
  return place->second;
}

CoreFacts core_facts(const ProgramRun& run) {
  const Result<Timeline> played = timeline_of(run, timing::Detail::kCores);
  if (!played.ok()) {
    return {};
  }
  const Timeline& timeline = played.value();
  CoreFacts facts;
  for (const int core : timeline.cores) {
    for (const timing::Phase& phase : timing::core_states(timeline, core)) {
      const bool idle = phase.unit == Unit::kIdle;
      const std::string_view name = name_of(phase.unit);
      const int op = idle ? -1 : timeline.executes[static_cast<size_t>(phase.execute)].op;
      facts.states.push_back({core, name, phase.begin, phase.end, op});
    }
  }
  timing::RateOverTime ring, macs;
  for (const timing::Phase& phase : timeline.phases) {
    const auto amount = static_cast<double>(phase.amount);
    if (phase.unit == Unit::kRing) {
      ring.add(phase.begin, phase.end, amount);
    } else if (phase.unit == Unit::kMatrix) {
      macs.add(phase.begin, phase.end, amount);
    }
  }
  std::vector<Level>& memory = facts.counters["HBM GB/s"];
  for (const timing::MemorySpeed& speed : timeline.memory) {
    memory.push_back({speed.begin, speed.read + speed.written});
  }
  memory.push_back({timeline.kernel, 0});
  facts.counters["ring GB/s"] = levels_of(ring);
  facts.counters["GMACs/s"] = levels_of(macs);
  facts.counters["LX bytes live"] = lx_live(run, timeline);
  return facts;
}

}  // namespace spyre
