#include "spyre/cost/card_model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "spyre/base/json.h"

namespace spyre {
namespace {

enum class Part : uint8_t { kMemory, kMatrix, kVector, kRing, kLaunch, kLink, kNone };
constexpr std::pair<std::string_view, Part> kParts[] = {{"memory", Part::kMemory}, {"matrix", Part::kMatrix},
                                                        {"vector", Part::kVector}, {"ring", Part::kRing},
                                                        {"launch", Part::kLaunch}, {"link", Part::kLink}};

/// How a rate follows when its part becomes faster.
enum class Follows : uint8_t { kAsSpeed, kAsTime, kNot };

struct RateField {
  std::string_view name;
  double Rates::*rate;
  Part part;
  Follows follows;
};

constexpr RateField kRates[] = {
    {"hbm_one_way", &Rates::hbm_one_way, Part::kMemory, Follows::kAsSpeed},
    {"hbm_peak", &Rates::hbm_peak, Part::kMemory, Follows::kAsSpeed},
    {"turnaround", &Rates::turnaround, Part::kMemory, Follows::kAsTime},
    {"reread_share", &Rates::reread_share, Part::kNone, Follows::kNot},
    {"stick_swap", &Rates::stick_swap, Part::kMemory, Follows::kAsSpeed},
    {"outer_reduction", &Rates::outer_reduction, Part::kMemory, Follows::kAsSpeed},
    {"slice_alone", &Rates::slice_alone, Part::kMemory, Follows::kAsSpeed},
    {"slice_shared", &Rates::slice_shared, Part::kMemory, Follows::kAsSpeed},
    {"slice_one_corelet", &Rates::slice_one_corelet, Part::kNone, Follows::kNot},
    {"slice_few_rows", &Rates::slice_few_rows, Part::kNone, Follows::kNot},
    {"weight_columns_cut", &Rates::weight_columns_cut, Part::kMemory, Follows::kAsSpeed},
    {"weight_columns_whole", &Rates::weight_columns_whole, Part::kMemory, Follows::kAsSpeed},
    {"weight_few_rows", &Rates::weight_few_rows, Part::kNone, Follows::kNot},
    {"mac_peak", &Rates::mac_peak, Part::kMatrix, Follows::kAsSpeed},
    {"mac_sustained", &Rates::mac_sustained, Part::kMatrix, Follows::kAsSpeed},
    {"mac_batched", &Rates::mac_batched, Part::kMatrix, Follows::kAsSpeed},
    {"mac_projection_few", &Rates::mac_projection_few, Part::kMatrix, Follows::kAsSpeed},
    {"mac_projection_many", &Rates::mac_projection_many, Part::kMatrix, Follows::kAsSpeed},
    {"ring", &Rates::ring, Part::kRing, Follows::kAsSpeed},
    {"relayout_row", &Rates::relayout_row, Part::kRing, Follows::kAsTime},
    {"relayout_row_log", &Rates::relayout_row_log, Part::kRing, Follows::kAsTime},
    {"relayout_bytes", &Rates::relayout_bytes, Part::kRing, Follows::kAsSpeed},
    {"replicated_per_core", &Rates::replicated_per_core, Part::kMemory, Follows::kAsSpeed},
    {"vector", &Rates::vector, Part::kVector, Follows::kAsSpeed},
    {"lx", &Rates::lx, Part::kVector, Follows::kAsSpeed},
    {"launch", &Rates::launch, Part::kLaunch, Follows::kAsTime},
    {"launch_operand", &Rates::launch_operand, Part::kLaunch, Follows::kAsTime},
    {"launch_cores", &Rates::launch_cores, Part::kLaunch, Follows::kAsTime},
    {"overlap", &Rates::overlap, Part::kNone, Follows::kNot},
    {"link", &Rates::link, Part::kLink, Follows::kAsSpeed},
    {"link_start", &Rates::link_start, Part::kLink, Follows::kAsTime},
};
static_assert(sizeof(Rates) == sizeof(double) * std::size(kRates) + sizeof(Rates::reduction_share),
              "every rate has a row, but for the table of lone reductions");

/// What an artifact does not fix: the rest of a machine is where its memory lies.
struct MachineField {
  std::string_view name;
  void (*set)(Machine&, int64_t);
};
constexpr MachineField kMachine[] = {
    {"cores", [](Machine& machine, int64_t value) { machine.cores = static_cast<int>(value); }},
    {"lx_per_core", [](Machine& machine, int64_t value) { machine.lx_per_core = Bytes(value); }},
};

class Reader {
 public:
  explicit Reader(std::string_view origin) : origin_(origin) {}

  Result<CardModel> read(std::string_view text) {
    SPYRE_ASSIGN_OR_RETURN(const Json json, parse_json(text, origin_));
    SPYRE_TRY(check_names(json, "", {"like", "name", "machine", "times", "rates"}));
    SPYRE_ASSIGN_OR_RETURN(const std::string like, text_of(json, "like", "spyre"));
    if (like != "spyre" && like != "toy") {
      return refusal(fmt::format("like: found '{}', allowed: spyre, toy", like));
    }
    CardModel model = {like, like == "toy" ? toy_card() : spyre_card(),
                       like == "toy" ? toy_rates() : fitted_rates()};
    SPYRE_ASSIGN_OR_RETURN(model.name, text_of(json, "name", like + " with changes"));
    SPYRE_TRY(change_machine(json, model.machine));
    SPYRE_TRY(multiply(json, model.rates));
    SPYRE_TRY(set_rates(json, model.rates));
    return model;
  }

 private:
  Error refusal(std::string_view what) const {
    return Error(ErrorKind::kInvalidArgument, fmt::format("{}: {}", origin_, what));
  }

  Status check_names(const Json& json, std::string_view where, std::vector<std::string_view> allowed) const {
    if (!json.is_object()) {
      return refusal(fmt::format("{}found {}, allowed: an object", where, json.type_name()));
    }
    for (const auto& [name, value] : json.items()) {
      if (std::find(allowed.begin(), allowed.end(), name) == allowed.end()) {
        return refusal(
            fmt::format("{}found the name '{}', allowed: {}", where, name, fmt::join(allowed, ", ")));
      }
    }
    return Status();
  }

  Result<std::string> text_of(const Json& json, const std::string& name, std::string fallback) const {
    if (!json.contains(name)) return fallback;
    if (!json[name].is_string()) {
      return refusal(fmt::format("{}: found {}, allowed: a string", name, json[name].type_name()));
    }
    return json[name].get<std::string>();
  }

  /// The numbers of one group, by name.
  Result<std::vector<std::pair<std::string, double>>> numbers(
      const Json& json, const std::string& group, const std::vector<std::string_view>& allowed) const {
    std::vector<std::pair<std::string, double>> found;
    if (!json.contains(group)) return found;
    SPYRE_TRY(check_names(json[group], group + ": ", allowed));
    for (const auto& [name, value] : json[group].items()) {
      if (!value.is_number() || !(value.get<double>() > 0) || !std::isfinite(value.get<double>())) {
        return refusal(fmt::format("{}: {}: found {}, allowed: a number above 0", group, name, value.dump()));
      }
      found.emplace_back(name, value.get<double>());
    }
    return found;
  }

  template <typename Rows>
  static std::vector<std::string_view> names_of(const Rows& rows) {
    std::vector<std::string_view> names;
    for (const auto& row : rows) names.push_back(row.name);
    return names;
  }

  Status change_machine(const Json& json, Machine& machine) const {
    SPYRE_ASSIGN_OR_RETURN(const auto values, numbers(json, "machine", names_of(kMachine)));
    for (const auto& [name, value] : values) {
      if (value != std::floor(value) || value > 1e12) {
        return refusal(fmt::format("machine: {}: found {}, allowed: a whole number", name, value));
      }
      for (const MachineField& field : kMachine) {
        if (field.name == name) field.set(machine, static_cast<int64_t>(value));
      }
    }
    return Status();
  }

  Status multiply(const Json& json, Rates& rates) const {
    std::vector<std::string_view> names;
    for (const auto& [name, part] : kParts) names.push_back(name);
    SPYRE_ASSIGN_OR_RETURN(const auto values, numbers(json, "times", names));
    for (const auto& [name, factor] : values) {
      for (const auto& [part_name, part] : kParts) {
        for (const RateField& field : kRates) {
          if (part_name != name || field.part != part) continue;
          rates.*field.rate *= field.follows == Follows::kAsSpeed ? factor : 1 / factor;
        }
      }
    }
    return Status();
  }

  Status set_rates(const Json& json, Rates& rates) const {
    SPYRE_ASSIGN_OR_RETURN(const auto values, numbers(json, "rates", names_of(kRates)));
    for (const auto& [name, value] : values) {
      for (const RateField& field : kRates) {
        if (field.name == name) rates.*field.rate = value;
      }
    }
    return Status();
  }

  std::string_view origin_;
};

}  // namespace

CardModel spyre_model() {
  return {"spyre", spyre_card(), fitted_rates()};
}

Result<CardModel> read_card_model(std::string_view text, std::string_view origin) {
  return Reader(origin).read(text);
}

}  // namespace spyre
