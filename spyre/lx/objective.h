#pragma once

#include <cstdint>
#include <string_view>

namespace spyre::lx {

/// What joint planning makes small (SPYRE_PLAN_OBJECTIVE).
enum class Objective : uint8_t {
  kTraffic,  ///< time, if device memory is charged for every byte that the card counts
  kTime,     ///< time, if one passage serves all cores that need the same part, as measured kernels show
};

/// `traffic`, or `time`.
constexpr Objective objective_of(std::string_view name) {
  return name == "time" ? Objective::kTime : Objective::kTraffic;
}
constexpr std::string_view to_string(Objective objective) {
  return objective == Objective::kTime ? "time" : "traffic";
}

}  // namespace spyre::lx
