#include "spyre/device/timing/program_facts.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

#include "spyre/base/json.h"
#include "spyre/device/timing/advice.h"
#include "spyre/device/timing/least_bytes.h"
#include "spyre/device/timing/lx_lives.h"
#include "spyre/device/timing/program_work.h"
#include "spyre/device/timing/simulate.h"

namespace spyre::timing {
namespace {

/// What a row of a timeline shows; the colours of a page go by these names.
constexpr std::array<std::string_view, 12> kStates = {
    "matrix", "vector", "ring", "load", "store", "idle", "memory", "LX", "nothing", "launch", "copy", "fill"};
/// Pages stay below some ten megabytes: of longer timelines they show operations and no cores.
constexpr size_t kMostPhases = 400'000;
constexpr size_t kMostLives = 20'000;

int64_t whole_ns(Nanos time) {
  return std::llround(time.ns);
}

/// The steps from the least a launch could take to what it takes. Each is what the limit before it leaves out.
class Waterfall {
 public:
  /// The level that the next step reaches; never falls, never passes the end.
  void reach(std::string_view step, std::string_view why, Nanos level) {
    const Nanos next = std::min(end_, std::max(level_, level));
    steps_.push_back({std::string(step), std::string(why), next - level_});
    level_ = next;
  }
  explicit Waterfall(Nanos end) : end_(end) {}

  struct Step {
    std::string step, why;
    Nanos time;
  };
  const std::vector<Step>& steps() const { return steps_; }

 private:
  Nanos end_, level_;
  std::vector<Step> steps_;
};

/// One operation of a program, all its executes together.
struct Item {
  const program::ProgramOp* op = nullptr;
  program::OpOrigin origin;
  OpTotals totals;
  std::map<Bound, Nanos> by_bound;
  std::set<int> cores;

  void add(const ExecuteTime& time, const ExecuteWork& work, Nanos kernel_begin, int machine_cores) {
    const Nanos window = time.end - time.begin;
    if (totals.executes++ == 0) totals.begin = kernel_begin + time.begin;
    totals.time = totals.time + window;
    by_bound[time.bound] = by_bound[time.bound] + window;
    totals.memory = totals.memory + time.memory;
    totals.matrix = totals.matrix + time.matrix;
    totals.vector = totals.vector + time.vector;
    totals.lx = totals.lx + time.lx;
    totals.ring = totals.ring + time.ring;
    totals.read += time.read.count();
    totals.written += time.written.count();
    Nanos most, sum;
    for (const CoreTask& task : work.cores) {
      cores.insert(task.core);
      totals.lx_bytes += task.counts.traffic.lx_read + task.counts.traffic.lx_written;
      totals.ring_bytes += task.counts.ring_bytes;
      totals.macs += task.counts.macs;
      totals.elements += task.counts.vector_elements;
      most = std::max(most, task.compute());
      sum = sum + task.compute();
    }
    totals.busiest = totals.busiest + most;
    totals.evens = totals.evens + sum / static_cast<double>(machine_cores);
  }

  OpTotals finished() const {
    OpTotals done = totals;
    done.cores = static_cast<int>(cores.size());
    Nanos most = {-1};
    for (const auto& [bound, time] : by_bound) {
      if (time <= most) continue;
      most = time;
      done.bound = bound;
    }
    return done;
  }
};

Json item_json(const Item& item, const CardModel& card) {
  const OpTotals op = item.finished();
  const Advice advice = advise(op, card);
  return {{"name", item.op->name},
          {"kind", "operation"},
          {"file", item.op->file},
          {"count", op.executes},
          {"begin_us", op.begin.us()},
          {"us", op.time.us()},
          {"bound_by", to_string(op.bound)},
          {"memory_us", op.memory.us()},
          {"matrix_us", op.matrix.us()},
          {"vector_us", op.vector.us()},
          {"lx_us", op.lx.us()},
          {"ring_us", op.ring.us()},
          {"read_bytes", op.read},
          {"written_bytes", op.written},
          {"spilled_bytes", op.spilled},
          {"lx_bytes", op.lx_bytes},
          {"ring_bytes", op.ring_bytes},
          {"macs", op.macs},
          {"elements", op.elements},
          {"cores", op.cores},
          {"aten", item.origin.aten},
          {"source", item.origin.source},
          {"help", advice.text},
          {"help_us", advice.saves.us()}};
}

class FactsBuilder {
 public:
  FactsBuilder(const CardModel& card, Detail detail) : card_(card), detail_(detail) {}

  Status add(const LaunchedProgram& launched) {
    const program::DeviceProgram& program = *launched.program;
    SPYRE_ASSIGN_OR_RETURN(const std::vector<ExecuteWork> works,
                           program_work(program, launched.launch, card_.machine, card_.rates));
    SPYRE_ASSIGN_OR_RETURN(const Timeline timeline,
                           simulate(program, launched.launch, card_.machine, card_.rates, detail_));
    const Nanos begin = at_ + timeline.launch;
    first_ = items_.size();
    for (const program::ProgramOp& op : program.ops) {
      const auto origin = launched.origins.find(op.file);
      items_.push_back(
          {.op = &op, .origin = origin == launched.origins.end() ? program::OpOrigin() : origin->second});
    }
    const int64_t least = add_executes(program, timeline, works, begin);
    add_waterfall(timeline, works, least);
    if (detail_ == Detail::kCores) {
      add_slice("host", "launch", -1, at_, begin);
      add_rows(timeline, begin);
    }
    SPYRE_TRY(add_lx(launched, timeline, begin));
    kernel_ = kernel_ + timeline.kernel;
    launch_ = launch_ + timeline.launch;
    memory_busy_ = memory_busy_ + timeline.memory_busy;
    compulsory_ += least;
    at_ = begin + timeline.kernel;
    return Status();
  }

  Json facts(const std::string& name) const {
    Json items = Json::array();
    for (const Item& item : items_) items.push_back(item_json(item, card_));
    Json facts = {{"facts", "spyre-time"},
                  {"version", 1},
                  {"kind", "program"},
                  {"name", name},
                  {"machine", machine_facts(card_)},
                  {"totals", totals()},
                  {"bound", bounds()},
                  {"waterfall", waterfall()},
                  {"items", std::move(items)}};
    if (detail_ == Detail::kCores) {
      facts["states"] = state_names();
      facts["rows"] = rows();
      facts["counters"] = {{{"name", "HBM read"}, {"unit", "GB/s"}, {"points", points_of(hbm_read_)}},
                           {{"name", "HBM written"}, {"unit", "GB/s"}, {"points", points_of(hbm_written_)}},
                           {{"name", "ring"}, {"unit", "GB/s"}, {"points", points_of(ring_)}}};
      facts["lx"] = lx_;
      facts["left_out"] = left_out_;
    }
    return facts;
  }

 private:
  int64_t add_executes(const program::DeviceProgram& program, const Timeline& timeline,
                       const std::vector<ExecuteWork>& works, Nanos begin) {
    LeastBytes least;
    const auto pool = [&](int64_t address) { return in_pool(program, address); };
    for (size_t i = 0; i < works.size(); ++i) {
      const ExecuteTime& time = timeline.executes[i];
      Item& item = items_[first_ + static_cast<size_t>(works[i].op)];
      item.add(time, works[i], begin, card_.machine.cores);
      for (const std::vector<Stream>* streams : {&works[i].loads, &works[i].stores}) {
        for (const Stream& stream : *streams) item.totals.spilled += pool(stream.address) ? stream.bytes : 0;
      }
      Nanos& share = by_bound_[std::string(to_string(time.bound))];
      share = share + (time.end - time.begin);
      least.add(works[i], pool);
    }
    return least.total();
  }

  void add_waterfall(const Timeline& timeline, const std::vector<ExecuteWork>& works, int64_t least) {
    Nanos matrix, vector, evens, busiest, ringed;
    for (size_t i = 0; i < works.size(); ++i) {
      Nanos most, sum;
      for (const CoreTask& task : works[i].cores) {
        matrix = matrix + Nanos{static_cast<double>(task.counts.macs) / card_.rates.mac_peak};
        vector = vector + Nanos{static_cast<double>(task.counts.vector_elements) / card_.rates.vector};
        most = std::max(most, task.compute());
        sum = sum + task.compute();
      }
      evens = evens + sum / card_.machine.cores;
      busiest = busiest + most;
      ringed = ringed + most + timeline.executes[i].ring;
    }
    const Nanos peak = std::max(matrix, vector) / card_.machine.cores;
    const auto bytes = static_cast<double>((timeline.read + timeline.written).count());
    const Nanos once = {static_cast<double>(least) / card_.rates.hbm_peak},
                all = {bytes / card_.rates.hbm_peak};
    const Nanos busy = timeline.memory_busy;
    Waterfall steps(timeline.kernel);
    steps.reach("ideal",
                "every argument moved once at the peak of memory, arithmetic on all cores at its peak",
                std::max(once, peak));
    steps.reach("re-reads", "bytes that are moved again, and intermediate results in device memory",
                std::max(all, peak));
    steps.reach("memory below peak", "turning the bus around, and access patterns that do not stream",
                std::max(busy, peak));
    steps.reach("arithmetic below peak", "arrays that are not full, and operands through LX",
                std::max(busy, evens));
    steps.reach("imbalance", "cores without work while the busiest one computes", std::max(busy, busiest));
    steps.reach("ring", "sums and moved pieces between cores", std::max(busy, ringed));
    steps.reach("waits", "memory and arithmetic one after the other", timeline.kernel);
    if (steps_.empty())
      steps_ = steps.steps();
    else
      for (size_t i = 0; i < steps_.size(); ++i) steps_[i].time = steps_[i].time + steps.steps()[i].time;
  }

  void add_slice(const std::string& row, std::string_view state, int item, Nanos begin, Nanos end) {
    const int64_t from = whole_ns(begin), to = whole_ns(end);
    if (from == to) return;
    auto [place, fresh] = rows_.try_emplace(row, Json::array());
    if (fresh) row_order_.push_back(row);
    for (const int64_t value : {int64_t{state_of(state)}, int64_t{item}, from, to - from})
      place->second.push_back(value);
  }

  void add_rows(const Timeline& timeline, Nanos begin) {
    const auto item_of = [&](int execute) {
      return static_cast<int>(first_) + timeline.executes[static_cast<size_t>(execute)].op;
    };
    for (size_t i = 0; i < timeline.executes.size(); ++i) {
      const ExecuteTime& time = timeline.executes[i];
      add_slice("operations", to_string(time.bound), item_of(static_cast<int>(i)), begin + time.begin,
                begin + time.end);
    }
    for (const MemorySpeed& speed : timeline.memory) {
      hbm_read_.add(begin + speed.begin, begin + speed.end, speed.read * (speed.end - speed.begin).ns);
      hbm_written_.add(begin + speed.begin, begin + speed.end, speed.written * (speed.end - speed.begin).ns);
    }
    for (const Phase& phase : timeline.phases) {
      if (phase.unit == Unit::kRing)
        ring_.add(begin + phase.begin, begin + phase.end, static_cast<double>(phase.amount));
    }
    phases_ += timeline.phases.size();
    for (int core = 0; core < card_.machine.cores; ++core) {
      const std::vector<Phase> states = core_states(timeline, core);
      for (const Phase& state : states) {
        const bool idle = state.unit == Unit::kIdle;
        Nanos& sum = core_time_[state.unit];
        sum = sum + (state.end - state.begin);
        if (phases_ > kMostPhases) continue;
        add_slice("core " + std::to_string(core), to_string(state.unit), idle ? -1 : item_of(state.execute),
                  begin + state.begin, begin + state.end);
      }
    }
    if (phases_ > kMostPhases) left_out_["cores"] = phases_;
  }

  Status add_lx(const LaunchedProgram& launched, const Timeline& timeline, Nanos begin) {
    LxLives lives;
    SPYRE_TRY(visit_executes(*launched.program, launched.launch, [&](const exec::BoundOp& bound, int op) {
      lives.add(bound, op);
      return Status();
    }));
    for (const LxLife& life : lives.take()) {
      lx_top_ = std::max(lx_top_, life.address + life.bytes);
      if (detail_ != Detail::kCores) continue;
      if (lx_.size() >= kMostLives) {
        left_out_["lx"] = left_out_.value("lx", 0) + 1;
        continue;
      }
      lx_.push_back({{"tensor", life.tensor},
                     {"item", first_ + static_cast<size_t>(life.op)},
                     {"address", life.address},
                     {"bytes", life.bytes},
                     {"cores", life.cores},
                     {"begin_ns", whole_ns(begin + timeline.executes[static_cast<size_t>(life.first)].begin)},
                     {"end_ns", whole_ns(begin + timeline.executes[static_cast<size_t>(life.last)].end)}});
    }
    return Status();
  }

  Json totals() const {
    OpTotals sum;
    std::set<int> cores;
    for (const Item& item : items_) {
      sum.executes += item.totals.executes;
      sum.read += item.totals.read;
      sum.written += item.totals.written;
      sum.spilled += item.totals.spilled;
      sum.lx_bytes += item.totals.lx_bytes;
      sum.ring_bytes += item.totals.ring_bytes;
      sum.macs += item.totals.macs;
      sum.elements += item.totals.elements;
      cores.insert(item.cores.begin(), item.cores.end());
    }
    Json totals = {{"total_us", at_.us()},
                   {"kernel_us", kernel_.us()},
                   {"launch_us", launch_.us()},
                   {"memory_busy_us", memory_busy_.us()},
                   {"read_bytes", sum.read},
                   {"written_bytes", sum.written},
                   {"compulsory_bytes", compulsory_},
                   {"spilled_bytes", sum.spilled},
                   {"lx_bytes", sum.lx_bytes},
                   {"ring_bytes", sum.ring_bytes},
                   {"macs", sum.macs},
                   {"elements", sum.elements},
                   {"executes", sum.executes},
                   {"cores", cores.size()},
                   {"lx_top_bytes", lx_top_}};
    if (detail_ != Detail::kCores) return totals;
    Json states = Json::object();
    for (const auto& [unit, time] : core_time_) states[to_string(unit)] = time.us() / card_.machine.cores;
    totals["core_us"] = std::move(states);
    return totals;
  }

  Json bounds() const {
    Json shares = Json::object();
    for (const auto& [bound, time] : by_bound_) shares[bound] = time.us();
    shares["launch"] = launch_.us();
    std::string most = "launch";
    for (const auto& [bound, time] : by_bound_) {
      if (time.us() > shares[most].get<double>()) most = bound;
    }
    return {{"by", most}, {"us", std::move(shares)}};
  }

  Json waterfall() const {
    Json steps = Json::array();
    for (const Waterfall::Step& step : steps_)
      steps.push_back({{"step", step.step}, {"why", step.why}, {"us", step.time.us()}});
    steps.push_back(
        {{"step", "launch"}, {"why", "what the host spends before the card begins"}, {"us", launch_.us()}});
    return steps;
  }

  Json rows() const {
    Json rows = Json::array();
    for (const std::string& name : row_order_) rows.push_back({{"name", name}, {"slices", rows_.at(name)}});
    return rows;
  }

  const CardModel& card_;
  const Detail detail_;
  Nanos at_, kernel_, launch_, memory_busy_;
  int64_t compulsory_ = 0, lx_top_ = 0;
  size_t first_ = 0;  ///< item of the first op of the program being added
  std::vector<Item> items_;
  std::map<std::string, Nanos> by_bound_;
  std::vector<Waterfall::Step> steps_;
  std::map<Unit, Nanos> core_time_;  ///< of all cores
  size_t phases_ = 0;
  std::map<std::string, Json> rows_;
  std::vector<std::string> row_order_;
  RateOverTime hbm_read_, hbm_written_, ring_;
  Json lx_ = Json::array(), left_out_ = Json::object();
};

}  // namespace

int state_of(std::string_view name) {
  return static_cast<int>(std::find(kStates.begin(), kStates.end(), name) - kStates.begin());
}

Json points_of(const RateOverTime& rate) {
  Json points = Json::array();
  for (const auto& [at, value] : rate.levels()) {
    points.push_back(std::llround(at.ns));
    points.push_back(std::round(value * 1000) / 1000);
  }
  return points;
}

Json state_names() {
  return kStates;
}

Json machine_facts(const CardModel& card) {
  const auto cores = static_cast<double>(card.machine.cores);
  return {{"name", card.name},
          {"cores", card.machine.cores},
          {"lx_bytes_per_core", card.machine.lx_per_core.count()},
          {"memory_gb_per_s", card.rates.hbm_peak},
          {"macs_per_ns", card.rates.mac_peak * cores},
          {"elements_per_ns", card.rates.vector * cores},
          {"ring_gb_per_s_per_link", card.rates.ring}};
}

Result<Json> program_facts(const std::string& name, std::span<const LaunchedProgram> programs,
                           const CardModel& card, Detail detail) {
  FactsBuilder builder(card, detail);
  for (const LaunchedProgram& launched : programs) SPYRE_TRY(builder.add(launched));
  return builder.facts(name);
}

}  // namespace spyre::timing
