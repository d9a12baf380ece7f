#include "spyre/runtime/profile_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <set>
#include <tuple>

#include "spyre/base/json.h"
#include "spyre/device/timing/program_facts.h"
#include "spyre/device/timing/simulate.h"
#include "spyre/runtime/kernel_times.h"

namespace spyre {
namespace {

constexpr size_t kWhole = 3;  ///< kernels whose facts are there whole

/// A kernel with its extents, or a kind of copy.
struct ProfileItem {
  Activity::Kind kind = Activity::Kind::kKernel;
  std::string name;
  std::shared_ptr<const ProgramRun> run;  // of the first launch
  KernelOrigins origins;
  Json facts;  // of one launch; null for copies and for what cannot be timed
  int64_t count = 0, bytes = 0;
  Nanos time, launch;

  bool is_kernel() const { return kind == Activity::Kind::kKernel; }
};

CardModel model_of(const ProgramRun& run) {
  CardModel card = spyre_model();
  card.machine = run.program->machine();
  return card;
}

Json facts_of(const ProfileItem& item, timing::Detail detail) {
  timing::LaunchedProgram launched;
  launched.program = &item.run->program->program();
  launched.launch.parameters = item.run->parameters;
  launched.origins = item.origins.by_file;
  Result<Json> facts = timing::program_facts(item.name, {&launched, 1}, model_of(*item.run), detail);
  return facts.ok() ? std::move(facts).value() : Json();
}

/// Where the operations of a kernel come from: each text once, the first few.
std::string distinct(const Json& operations, const char* field) {
  std::vector<std::string> texts;
  for (const Json& operation : operations) {
    const std::string text = operation[field];
    if (!text.empty() && std::find(texts.begin(), texts.end(), text) == texts.end()) texts.push_back(text);
  }
  std::string joined;
  for (size_t i = 0; i < std::min<size_t>(texts.size(), 3); ++i) joined += (i > 0 ? ", " : "") + texts[i];
  return texts.size() > 3 ? joined + fmt::format(" and {} more", texts.size() - 3) : joined;
}

/// What would help a kernel: fewer launches where they cost more than it, else what helps its longest operation.
std::pair<std::string, double> help_of(const ProfileItem& item) {
  const auto launches = static_cast<double>(item.count);
  if (item.launch > item.time && item.count > 0) {
    return {fmt::format("Fewer and larger kernels: a launch costs the host {:.1f} us for {:.1f} us of work",
                        item.launch.us() / launches, item.time.us() / launches),
            (item.launch - item.time).us()};
  }
  const Json* longest = nullptr;
  for (const Json& operation : item.facts["items"]) {
    if (longest == nullptr || operation["us"].get<double>() > (*longest)["us"].get<double>())
      longest = &operation;
  }
  if (longest == nullptr || (*longest)["help"].get<std::string>().empty()) return {};
  return {fmt::format("{}: {}", (*longest)["name"].get<std::string>(), (*longest)["help"].get<std::string>()),
          (*longest)["help_us"].get<double>() * launches};
}

/// What bounds most of a kernel, its launch left out.
std::string bound_of_kernel(const Json& facts) {
  std::string most = "nothing";
  double longest = 0;
  for (const auto& [bound, us] : facts["bound"]["us"].items()) {
    if (bound == "launch" || us.get<double>() <= longest) continue;
    longest = us;
    most = bound;
  }
  return most;
}

std::string bound_of_item(const ProfileItem& item) {
  if (!item.is_kernel()) return "copy";
  return item.facts.is_null() ? "nothing" : bound_of_kernel(item.facts);
}

bool reads_device(Activity::Kind kind) {
  return kind == Activity::Kind::kToHost || kind == Activity::Kind::kOnCard;
}
bool writes_device(Activity::Kind kind) {
  return kind == Activity::Kind::kToDevice || kind == Activity::Kind::kOnCard ||
         kind == Activity::Kind::kFill;
}

Json item_json(const ProfileItem& item) {
  Json json = {{"name", item.name},
               {"kind", item.is_kernel()                     ? "kernel"
                        : item.kind == Activity::Kind::kFill ? "fill"
                                                             : "copy"},
               {"file", ""},
               {"count", item.count},
               {"us", item.time.us()},
               {"launch_us", item.launch.us()},
               {"bound_by", bound_of_item(item)},
               {"read_bytes", reads_device(item.kind) ? item.bytes : 0},
               {"written_bytes", writes_device(item.kind) ? item.bytes : 0},
               {"spilled_bytes", 0},
               {"lx_bytes", 0},
               {"ring_bytes", 0},
               {"macs", 0},
               {"elements", 0},
               {"cores", 0},
               {"aten", ""},
               {"source", ""},
               {"modules", item.origins.modules},
               {"artifact", item.origins.artifact},
               {"help", ""},
               {"help_us", 0}};
  if (item.facts.is_null()) return json;
  const Json& totals = item.facts["totals"];
  for (const char* sum :
       {"read_bytes", "written_bytes", "spilled_bytes", "lx_bytes", "ring_bytes", "macs", "elements"})
    json[sum] = totals[sum].get<int64_t>() * item.count;
  json["cores"] = totals["cores"];
  json["aten"] = distinct(item.facts["items"], "aten");
  json["source"] = distinct(item.facts["items"], "source");
  const auto [help, saves] = help_of(item);
  json["help"] = help;
  json["help_us"] = saves;
  return json;
}

/// Time of one card that is no kernel's: copies that no kernel hides, launches that the cores wait for, the rest.
struct Gaps {
  Nanos copies, launches, idle;
};

Gaps gaps_of(std::vector<const Activity*> activities, Nanos begin, Nanos end) {
  std::sort(activities.begin(), activities.end(),
            [](const Activity* a, const Activity* b) { return a->span.begin < b->span.begin; });
  // Kernels follow one another; what is between two of them is covered by copies, or waits for the second.
  Gaps gaps;
  const auto between = [&](Nanos from, Nanos to, Nanos launch) {
    Nanos at = from, bare;
    for (const Activity* copy : activities) {
      if (copy->kind == Activity::Kind::kKernel || copy->span.end <= at || copy->span.begin >= to) continue;
      const Nanos first = std::max(at, copy->span.begin), last = std::min(to, copy->span.end);
      bare = bare + (first - at);
      gaps.copies = gaps.copies + (last - first);
      at = last;
    }
    bare = bare + (to - at);
    const Nanos launching = std::min(bare, launch);
    gaps.launches = gaps.launches + launching;
    gaps.idle = gaps.idle + (bare - launching);
  };
  Nanos at = begin;
  for (const Activity* kernel : activities) {
    if (kernel->kind != Activity::Kind::kKernel || kernel->span.end <= at) continue;
    if (kernel->span.begin > at) between(at, kernel->span.begin, kernel->run->launch);
    at = kernel->span.end;
  }
  if (end > at) between(at, end, Nanos{});
  return gaps;
}

class ProfileBuilder {
 public:
  ProfileBuilder(const ActivityLog::Record& record, const FindOrigins& origins) : record_(record) {
    begin_ = {std::numeric_limits<double>::infinity()};
    for (const Activity& activity : record.activities) {
      const Nanos launch = activity.run ? activity.run->launch : Nanos();
      begin_ = std::min(begin_, std::max(Nanos(), activity.span.begin - launch));
      end_ = std::max(end_, activity.span.end);
      items_of_.push_back(item_of(activity, origins));
    }
    if (record.activities.empty()) begin_ = {};
  }

  Json facts(const std::string& name) const {
    Json items = Json::array();
    for (const ProfileItem& item : items_) items.push_back(item_json(item));
    Json facts = {{"facts", "spyre-time"}, {"version", 1},
                  {"kind", "run"},         {"name", name},
                  {"items", items},        {"states", timing::state_names()},
                  {"lx", Json::array()},   {"left_out", Json::object()}};
    const auto kernel =
        std::find_if(items_.begin(), items_.end(), [](const ProfileItem& i) { return i.is_kernel(); });
    facts["machine"] = timing::machine_facts(kernel == items_.end() ? spyre_model() : model_of(*kernel->run));
    add_sums(facts);
    add_rows(facts);
    add_programs(facts);
    return facts;
  }

 private:
  using Key = std::tuple<Activity::Kind, std::string, const LoadedProgram*, std::vector<int64_t>>;

  size_t item_of(const Activity& activity, const FindOrigins& origins) {
    Key key = {activity.kind, activity.name, nullptr, {}};
    if (activity.run) {
      std::get<2>(key) = activity.run->program.get();
      std::get<3>(key) = extents_among(activity.run->parameters, *activity.run->program);
    }
    const auto [place, fresh] = positions_.try_emplace(std::move(key), items_.size());
    if (fresh) {
      items_.push_back({.kind = activity.kind, .name = activity.name, .run = activity.run});
      if (activity.run) {
        items_.back().origins = origins(*activity.run);
        items_.back().facts = facts_of(items_.back(), timing::Detail::kExecutes);
      }
    }
    ProfileItem& item = items_[place->second];
    ++item.count;
    item.bytes += activity.size.count();
    item.time = item.time + activity.span.length();
    if (activity.run) item.launch = item.launch + activity.run->launch;
    return place->second;
  }

  void add_sums(Json& facts) const {
    std::map<int, std::vector<const Activity*>> by_card;
    for (const Activity& activity : record_.activities) by_card[activity.card].push_back(&activity);
    const auto cards = static_cast<double>(std::max<size_t>(1, by_card.size()));
    Gaps gaps;
    for (const auto& [card, activities] : by_card) {
      const Gaps of_card = gaps_of(activities, begin_, end_);
      gaps.copies = gaps.copies + of_card.copies / cards;
      gaps.launches = gaps.launches + of_card.launches / cards;
      gaps.idle = gaps.idle + of_card.idle / cards;
    }
    std::map<std::string, double> bounds, totals;
    std::vector<std::pair<std::string, std::string>> steps;
    std::map<std::string, double> step_us;
    double kernels = 0;
    int64_t launches = 0, lx_top = 0;
    for (const ProfileItem& item : items_) {
      if (!item.is_kernel()) continue;
      launches += item.count;
      kernels += item.time.us() / cards;
      if (item.facts.is_null()) {
        bounds["nothing"] += item.time.us() / cards;
        continue;
      }
      const auto count = static_cast<double>(item.count);
      for (const auto& [bound, us] : item.facts["bound"]["us"].items()) {
        if (bound != "launch") bounds[bound] += us.get<double>() * count / cards;
      }
      for (const Json& step : item.facts["waterfall"]) {
        const std::string name = step["step"];
        if (name == "launch") continue;
        if (!step_us.contains(name)) steps.emplace_back(name, step["why"]);
        step_us[name] += step["us"].get<double>() * count / cards;
      }
      for (const char* sum : {"memory_busy_us", "read_bytes", "written_bytes", "compulsory_bytes",
                              "spilled_bytes", "lx_bytes", "ring_bytes", "macs", "elements"})
        totals[sum] += item.facts["totals"][sum].get<double>() * count;
      lx_top = std::max(lx_top, item.facts["totals"]["lx_top_bytes"].get<int64_t>());
    }
    Json waterfall = Json::array();
    if (steps.empty()) waterfall.push_back({{"step", "ideal"}, {"why", "no kernel ran"}, {"us", 0}});
    for (const auto& [step, why] : steps)
      waterfall.push_back({{"step", step}, {"why", why}, {"us", step_us[step]}});
    waterfall.push_back({{"step", "copies"},
                         {"why", "between host and card, while no kernel runs"},
                         {"us", gaps.copies.us()}});
    waterfall.push_back(
        {{"step", "launch"}, {"why", "cores that wait for the host to launch"}, {"us", gaps.launches.us()}});
    waterfall.push_back({{"step", "idle"}, {"why", "nothing is given to the card"}, {"us", gaps.idle.us()}});
    facts["waterfall"] = std::move(waterfall);
    bounds["copy"] = gaps.copies.us();
    bounds["launch"] = gaps.launches.us();
    bounds["idle"] = gaps.idle.us();
    const auto most = std::max_element(bounds.begin(), bounds.end(),
                                       [](const auto& a, const auto& b) { return a.second < b.second; });
    facts["bound"] = {{"by", most->first}, {"us", bounds}};
    Json& sums = facts["totals"] = Json::object();
    for (const char* sum : {"read_bytes", "written_bytes", "compulsory_bytes", "spilled_bytes", "lx_bytes",
                            "ring_bytes", "macs", "elements"})
      sums[sum] = std::llround(totals[sum]);
    sums["memory_busy_us"] = totals["memory_busy_us"];
    sums["total_us"] = (end_ - begin_).us();
    sums["kernel_us"] = kernels;
    sums["launch_us"] = gaps.launches.us();
    sums["copy_us"] = gaps.copies.us();
    sums["idle_us"] = gaps.idle.us();
    sums["launches"] = launches;
    sums["cards"] = by_card.size();
    sums["lx_top_bytes"] = lx_top;
  }

  void add_rows(Json& facts) const {
    std::set<int> cards;
    for (const Activity& activity : record_.activities) cards.insert(activity.card);
    std::map<std::pair<int, int>, Json> rows;
    timing::RateOverTime read, written, ring;
    for (size_t i = 0; i < record_.activities.size(); ++i) {
      const Activity& activity = record_.activities[i];
      const ProfileItem& item = items_[items_of_[i]];
      const Nanos begin = activity.span.begin - begin_, end = activity.span.end - begin_;
      const int64_t from = std::llround(begin.ns), to = std::llround(end.ns);
      const int state = timing::state_of(item.is_kernel()                     ? bound_of_item(item)
                                         : item.kind == Activity::Kind::kFill ? "fill"
                                                                              : "copy");
      Json& row = rows.try_emplace({activity.card, activity.stream}, Json::array()).first->second;
      for (const int64_t value : {int64_t{state}, static_cast<int64_t>(items_of_[i]), from, to - from})
        row.push_back(value);
      if (item.facts.is_null()) continue;
      read.add(begin, end, item.facts["totals"]["read_bytes"].get<double>());
      written.add(begin, end, item.facts["totals"]["written_bytes"].get<double>());
      ring.add(begin, end, item.facts["totals"]["ring_bytes"].get<double>());
    }
    Json& list = facts["rows"] = Json::array();
    for (auto& [place, slices] : rows) {
      const std::string stream = fmt::format("stream {}", place.second);
      list.push_back({{"name", cards.size() > 1 ? fmt::format("card {} {}", place.first, stream) : stream},
                      {"slices", std::move(slices)}});
    }
    facts["counters"] = Json::array();
    for (const auto& [name, rate] :
         {std::pair("HBM read", &read), {"HBM written", &written}, {"ring", &ring}})
      facts["counters"].push_back({{"name", name}, {"unit", "GB/s"}, {"points", timing::points_of(*rate)}});
  }

  void add_programs(Json& facts) const {
    std::vector<size_t> order;
    for (size_t i = 0; i < items_.size(); ++i) {
      if (!items_[i].facts.is_null()) order.push_back(i);
    }
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return items_[a].time > items_[b].time; });
    order.resize(std::min(order.size(), kWhole));
    facts["programs"] = Json::array();
    for (const size_t i : order) {
      facts["items"][i]["program"] = facts["programs"].size();
      facts["programs"].push_back(facts_of(items_[i], timing::Detail::kCores));
    }
  }

  const ActivityLog::Record& record_;
  Nanos begin_, end_;
  std::map<Key, size_t> positions_;
  std::vector<ProfileItem> items_;
  std::vector<size_t> items_of_;  // [activity]
};

}  // namespace

Json profile_facts(const std::string& name, const ActivityLog::Record& record, const FindOrigins& origins) {
  return ProfileBuilder(record, origins).facts(name);
}

}  // namespace spyre
