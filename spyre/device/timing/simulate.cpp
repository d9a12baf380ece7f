#include "spyre/device/timing/simulate.h"

#include <algorithm>
#include <map>
#include <set>

#include "spyre/device/timing/program_work.h"
#include "spyre/device/timing/schedule.h"

namespace spyre::timing {
namespace {

using program::DeviceProgram;
using program::ProgramLoop;
using program::Step;

/// What the transfers of an execute take at least: the memory one after the other, each port for itself.
Nanos alone_time(const ExecuteWork& work, const Prices& prices) {
  double bus = 0, slowest = 0;
  std::vector<double> ports(work.cores.size());
  const auto add = [&](const Stream& stream, bool load) {
    const auto bytes = static_cast<double>(stream.bytes);
    bus += bytes * prices.per_byte(stream, load);
    double shared = 0;
    double& port = stream.cores.size() > 1 ? shared : ports[stream.cores.front()];
    port += bytes / stream.cap;
    slowest = std::max(slowest, port);
  };
  for (const Stream& load : work.loads) add(load, true);
  for (const Stream& store : work.stores) add(store, false);
  return {std::max(bus, slowest)};
}

Bound bound_of(const ExecuteTime& time) {
  const std::pair<Nanos, Bound> candidates[] = {{time.memory, Bound::kMemory},
                                                {time.matrix, Bound::kMatrix},
                                                {time.vector, Bound::kVector},
                                                {time.lx, Bound::kLx},
                                                {time.ring, Bound::kRing}};
  std::pair<Nanos, Bound> most = {Nanos{}, Bound::kNothing};
  for (const auto& candidate : candidates) {
    if (candidate.first > most.first) most = candidate;
  }
  return most.second;
}

ExecuteTime execute_time(const ExecuteWork& work, const Prices& prices) {
  ExecuteTime time = {.op = work.op, .memory = alone_time(work, prices)};
  for (const CoreTask& task : work.cores) {
    time.matrix = std::max(time.matrix, task.matrix);
    time.vector = std::max(time.vector, task.vector);
    time.lx = std::max(time.lx, task.lx);
  }
  for (const RingStep& step : work.ring) time.ring = time.ring + step.time;
  for (const Stream& load : work.loads) time.read += Bytes(load.bytes);
  for (const Stream& store : work.stores) time.written += Bytes(store.bytes);
  time.bound = bound_of(time);
  return time;
}

/// The phases of one execute, core by core.
void add_phases(int execute, const ExecuteWork& work, const Progress& progress, std::vector<Phase>& phases) {
  const auto add = [&](int core, Unit unit, double begin, double end, int64_t amount) {
    if (amount > 0) phases.push_back({execute, work.cores[core].core, unit, {begin}, {end}, amount});
  };
  std::vector<double> stored(work.cores.size(), progress.store_begin);
  for (const Transfer& transfer : progress.stores) {
    double& end = stored[transfer.stream->cores.front()];
    end = std::max(end, transfer.end);
  }
  double ring_begin = progress.start;
  for (size_t c = 0; c < work.cores.size(); ++c) {
    const CoreTask& task = work.cores[c];
    const int core = static_cast<int>(c);
    const double computed = progress.start + task.compute().ns;
    ring_begin = std::max({ring_begin, computed, progress.loaded[c]});
    add(core, Unit::kLoad, progress.load_begin, progress.loaded[c], task.counts.traffic.hbm_read);
    add(core, Unit::kMatrix, progress.start, computed, task.counts.macs);
    add(core, Unit::kVector, progress.start, computed, task.counts.vector_elements);
    add(core, Unit::kStore, progress.store_begin, stored[c], task.counts.traffic.hbm_written);
  }
  for (const RingStep& step : work.ring) {
    std::map<int, int64_t> sent;  // several messages of one core are one phase
    for (const auto& [from, bytes] : step.sent) sent[from] += bytes;
    for (const auto& [from, bytes] : sent) {
      add(from, Unit::kRing, ring_begin, ring_begin + step.time.ns, bytes);
    }
    ring_begin += step.time.ns;
  }
}

/// Operands in off-chip memory of all executes that are written down; how often loops run them is the card's.
size_t operands_of(const DeviceProgram& program, const std::vector<Step>& steps) {
  size_t operands = 0;
  for (const Step& step : steps) {
    if (const auto* loop = std::get_if<ProgramLoop>(&step.what)) {
      operands += operands_of(program, loop->body);
      continue;
    }
    const auto op = static_cast<size_t>(std::get<program::Execute>(step.what).op);
    for (const program::Tensor& tensor : program.ops[op].tensors) {
      operands += tensor.residence == program::Residence::kHbm ? 1 : 0;
    }
  }
  return operands;
}

/// What a launch costs the host.
Nanos launch_time(const DeviceProgram& program, size_t cores, const Rates& rates) {
  const auto operands = static_cast<double>(operands_of(program, program.steps));
  return {rates.launch + rates.launch_operand * operands + (cores > 1 ? rates.launch_cores : 0)};
}

}  // namespace

std::string_view to_string(Unit unit) {
  constexpr std::string_view kNames[] = {"matrix", "vector", "ring", "load", "store", "idle"};
  return kNames[static_cast<size_t>(unit)];
}

std::string_view to_string(Bound bound) {
  constexpr std::string_view kNames[] = {"memory", "matrix", "vector", "LX", "ring", "nothing"};
  return kNames[static_cast<size_t>(bound)];
}

Result<Timeline> simulate(const DeviceProgram& program, const exec::LaunchValues& launch,
                          const Machine& machine, const Rates& rates, Detail detail) {
  SPYRE_ASSIGN_OR_RETURN(const std::vector<ExecuteWork> works, program_work(program, launch, machine, rates));
  const Prices prices(works, rates);
  const Schedule schedule = play(works, prices);

  Timeline timeline = {.kernel = {schedule.end}, .memory_busy = {schedule.memory_busy}};
  std::set<int> cores;
  for (size_t i = 0; i < works.size(); ++i) {
    ExecuteTime time = execute_time(works[i], prices);
    timeline.read += time.read;
    timeline.written += time.written;
    for (const CoreTask& task : works[i].cores) cores.insert(task.core);
    if (detail == Detail::kTotals) continue;
    time.begin = {schedule.progress[i].start};
    time.end = i + 1 < works.size() ? Nanos{schedule.progress[i + 1].start} : timeline.kernel;
    timeline.executes.push_back(time);
    if (detail == Detail::kCores) {
      add_phases(static_cast<int>(i), works[i], schedule.progress[i], timeline.phases);
    }
  }
  if (detail == Detail::kCores) timeline.memory = schedule.speeds;
  timeline.cores.assign(cores.begin(), cores.end());
  timeline.launch = launch_time(program, cores.size(), rates);
  return timeline;
}

exec::LaunchValues largest_extents(const DeviceProgram& program) {
  exec::LaunchValues launch;
  for (const program::Parameter& parameter : program.parameters) {
    launch.parameters.push_back(parameter.max_value.value_or(0));
  }
  return launch;
}

}  // namespace spyre::timing
