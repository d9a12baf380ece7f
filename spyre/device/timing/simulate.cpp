#include "spyre/device/timing/simulate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "spyre/device/timing/execute_work.h"
#include "spyre/device/timing/memory_bus.h"

namespace spyre::timing {
namespace {

using program::DeviceProgram;
using program::ProgramLoop;
using program::Step;

// ---------------------------------------------------------------------------------------------------------
// What there is to do.

/// Addresses that no two tensors share, so that time does not depend on where they lie.
exec::LaunchValues apart(const DeviceProgram& program, const exec::LaunchValues& launch) {
  constexpr int64_t kApart = int64_t{1} << 40;
  exec::LaunchValues placed = launch;
  for (size_t i = 0; i < program.parameters.size() && i < placed.parameters.size(); ++i) {
    if (program.parameters[i].kind == program::ParameterKind::kAddress) {
      placed.parameters[i] = static_cast<int64_t>(i + 1) * kApart;
    }
  }
  placed.pool_base = static_cast<int64_t>(program.parameters.size() + 1) * kApart;
  return placed;
}

void collect_tiled(const std::vector<Step>& steps, bool in_loop, std::set<int>& tiled) {
  for (const Step& step : steps) {
    if (const auto* loop = std::get_if<ProgramLoop>(&step.what)) {
      collect_tiled(loop->body, true, tiled);
    } else if (in_loop) {
      tiled.insert(std::get<program::Execute>(step.what).op);
    }
  }
}

/// The work of every execute of a launch, in order.
class Collector {
 public:
  Collector(const DeviceProgram& program, const Machine& machine, const Rates& rates)
      : program_(program), machine_(machine), rates_(rates), last_starts_(program.ops.size()) {
    collect_tiled(program.steps, false, tiled_);
    alone_ = program.steps.size() == 1 && tiled_.empty();
  }

  Status add(int op, const exec::SymbolValues& symbols, int64_t instruction) {
    SPYRE_ASSIGN_OR_RETURN(const exec::BoundOp bound,
                           exec::bind_op(program_.ops[static_cast<size_t>(op)], symbols, instruction));
    for (const program::CoreWork& core : bound.op->cores) {
      if (core.core >= machine_.cores) {
        return Error(ErrorKind::kInvalidArgument,
                     fmt::format("{}: found core {}, allowed: 0 to {}, as machine '{}' has", bound.where(),
                                 core.core, machine_.cores - 1, machine_.name))
            .try_instead("compiling for that many cores (SENCORES)");
      }
    }
    Surroundings surroundings = {.alone = alone_, .tiled = tiled_.contains(op)};
    std::vector<std::vector<int64_t>>& last = last_starts_[static_cast<size_t>(op)];
    for (size_t t = 0; t < last.size(); ++t) surroundings.again.push_back(last[t] == bound.start[t]);
    last = bound.start;
    works_.push_back(work_of(bound, surroundings, machine_, rates_));
    works_.back().op = op;
    return Status();
  }

  std::vector<ExecuteWork> take() { return std::move(works_); }

 private:
  const DeviceProgram& program_;
  const Machine& machine_;
  const Rates& rates_;
  std::set<int> tiled_;
  bool alone_ = false;
  std::vector<std::vector<std::vector<int64_t>>> last_starts_;  // [op][tensor][core position]
  std::vector<ExecuteWork> works_;
};

// ---------------------------------------------------------------------------------------------------------
// When it happens.

constexpr double kNever = std::numeric_limits<double>::infinity();

/// ns of memory for one byte of a stream. What streams plainly pays for turning the bus around once for each
/// byte of the direction that the whole program uses less.
class Prices {
 public:
  Prices(const std::vector<ExecuteWork>& works, const Rates& rates) : rates_(rates) {
    double read = 0, written = 0;
    for (const ExecuteWork& work : works) {
      for (const Stream& load : work.loads) read += load.rate ? 0 : static_cast<double>(load.bytes);
      for (const Stream& store : work.stores) written += store.rate ? 0 : static_cast<double>(store.bytes);
    }
    loads_turn_ = read < written;
  }

  double per_byte(const Stream& stream, bool load) const {
    const double rate = std::min(stream.rate.value_or(rates_.hbm_one_way), rates_.hbm_peak);
    const double turnaround = stream.rate || load != loads_turn_ ? 0 : rates_.turnaround;
    return (1 / rate + turnaround) * stream.slowdown;
  }

 private:
  const Rates& rates_;
  bool loads_turn_;
};

/// A stream on its way.
struct Transfer {
  const Stream* stream = nullptr;
  MemoryBus::Id id = 0;
  double end = kNever;
};

/// An execute on its way through the card.
struct Progress {
  double start = -1, computed = -1;                       // barrier before it; all its cores are done
  double load_begin = -1, store_begin = -1, stored = -1;  // stored: nothing of it is left
  std::vector<Transfer> loads, stores;
  std::vector<double> loaded;  // [core position]
};

class Schedule {
 public:
  Schedule(const std::vector<ExecuteWork>& works, const Rates& rates)
      : works_(works), prices_(works, rates), progress_(works.size()) {}

  void run() {
    while (true) {
      while (begin_what_may()) {
      }
      if (store_ == works_.size()) return;
      const double next = std::min(now_ + bus_.until_next_end(), running_until());
      SPYRE_CHECK(std::isfinite(next), "a launch whose next event never comes");
      if (next > now_) speeds_.push_back({{now_}, {next}, bus_.speed(true), bus_.speed(false)});
      bus_.advance(next - now_);
      now_ = next;
      end_what_is_done();
    }
  }

  const std::vector<Progress>& progress() const { return progress_; }
  const std::vector<MemorySpeed>& speeds() const { return speeds_; }
  double busy() const { return bus_.busy(); }
  double end() const { return now_; }

 private:
  bool is_computed(size_t i) const { return progress_[i].computed >= 0; }
  bool is_stored(size_t i) const { return progress_[i].stored >= 0; }
  bool is_started(size_t i) const { return progress_[i].start >= 0; }

  bool begin_what_may() {
    if (!loading_ && load_ < works_.size() && (load_ == 0 || is_started(load_ - 1)) && may_read(load_)) {
      begin_loads(load_);
      return true;
    }
    if (next_ < works_.size() && (next_ == 0 || is_computed(next_ - 1)) &&
        (next_ < 2 || is_stored(next_ - 2))) {
      progress_[next_++].start = now_;
      return true;
    }
    if (!storing_ && store_ < next_) {
      begin_stores(store_);
      return true;
    }
    return false;
  }

  /// Whether all that it reads has been stored.
  bool may_read(size_t i) const {
    for (size_t writer = store_; writer < i; ++writer) {
      for (const AddressRange& read : works_[i].reads) {
        for (const AddressRange& written : works_[writer].writes) {
          if (read.meets(written)) return false;
        }
      }
    }
    return true;
  }

  std::vector<Transfer> add(const ExecuteWork& work, const std::vector<Stream>& streams, bool load) {
    std::vector<Transfer> transfers;
    for (const Stream& stream : streams) {
      const bool shared = stream.cores.size() > 1;
      const size_t port =
          shared ? bus_.own_port(stream.cap) : bus_.port(work.cores[stream.cores.front()].core, stream.cap);
      transfers.push_back({&stream, bus_.add({.bytes = static_cast<double>(stream.bytes),
                                              .per_byte = prices_.per_byte(stream, load),
                                              .port = port,
                                              .reads = load,
                                              .cores = static_cast<int>(stream.cores.size())})});
    }
    return transfers;
  }

  void begin_loads(size_t i) {
    progress_[i].load_begin = now_;
    progress_[i].loaded.assign(works_[i].cores.size(), now_);
    progress_[i].loads = add(works_[i], works_[i].loads, true);
    loading_ = true;
    end_loads();
  }

  void begin_stores(size_t i) {
    progress_[i].store_begin = now_;
    progress_[i].stores = add(works_[i], works_[i].stores, false);
    storing_ = true;
    end_stores();
  }

  /// Notes what has arrived; true when everything has.
  bool note_ends(std::vector<Transfer>& transfers) const {
    bool all = true;
    for (Transfer& transfer : transfers) {
      if (transfer.end == kNever && bus_.done(transfer.id)) transfer.end = now_;
      all &= transfer.end != kNever;
    }
    return all;
  }

  void end_loads() {
    Progress& progress = progress_[load_];
    if (!note_ends(progress.loads)) return;
    for (const Transfer& transfer : progress.loads) {
      for (const int core : transfer.stream->cores) {
        progress.loaded[core] = std::max(progress.loaded[core], transfer.end);
      }
    }
    loading_ = false;
    ++load_;
  }

  /// When the execute that runs will be done, as far as that is known.
  double running_until() const {
    if (next_ == 0 || is_computed(next_ - 1) || load_ < next_) return kNever;
    return computed_at(works_[next_ - 1], progress_[next_ - 1]);
  }

  static double computed_at(const ExecuteWork& work, const Progress& progress) {
    double done = progress.start;
    for (size_t c = 0; c < work.cores.size(); ++c) {
      done = std::max({done, progress.start + work.cores[c].compute().ns, progress.loaded[c]});
    }
    for (const RingStep& step : work.ring) done += step.time.ns;
    return done;
  }

  void end_what_is_done() {
    if (loading_) end_loads();
    if (running_until() <= now_) progress_[next_ - 1].computed = now_;
    if (storing_) end_stores();
  }

  void end_stores() {
    if (!note_ends(progress_[store_].stores) || !is_computed(store_)) return;
    progress_[store_++].stored = now_;
    storing_ = false;
  }

  const std::vector<ExecuteWork>& works_;
  Prices prices_;
  std::vector<Progress> progress_;
  MemoryBus bus_;
  std::vector<MemorySpeed> speeds_;
  double now_ = 0;
  size_t load_ = 0, next_ = 0, store_ = 0;  // the next to load, to start, to store
  bool loading_ = false, storing_ = false;
};

// ---------------------------------------------------------------------------------------------------------
// What is told about it.

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
  Collector collector(program, machine, rates);
  SPYRE_TRY(exec::walk_program(program, apart(program, launch),
                               [&](int op, const exec::SymbolValues& symbols, int64_t instruction) {
                                 return collector.add(op, symbols, instruction);
                               }));
  const std::vector<ExecuteWork> works = collector.take();
  Schedule schedule(works, rates);
  schedule.run();

  const Prices prices(works, rates);
  Timeline timeline = {.kernel = {schedule.end()}, .memory_busy = {schedule.busy()}};
  std::set<int> cores;
  for (size_t i = 0; i < works.size(); ++i) {
    ExecuteTime time = execute_time(works[i], prices);
    timeline.read += time.read;
    timeline.written += time.written;
    for (const CoreTask& task : works[i].cores) cores.insert(task.core);
    if (detail == Detail::kTotals) continue;
    time.begin = {schedule.progress()[i].start};
    time.end = i + 1 < works.size() ? Nanos{schedule.progress()[i + 1].start} : timeline.kernel;
    timeline.executes.push_back(time);
    if (detail == Detail::kCores) {
      add_phases(static_cast<int>(i), works[i], schedule.progress()[i], timeline.phases);
    }
  }
  if (detail == Detail::kCores) timeline.memory = schedule.speeds();
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
