#pragma once

#include <string>
#include <vector>

#include "spyre/base/json.h"
#include "spyre/cost/card_model.h"
#include "spyre/device/timing/timeline.h"
#include "spyre/program/device_program.h"

/// What tools say of time: of programs that one launch runs one after the other.
namespace spyre::tools {

struct TimedProgram {
  const program::DeviceProgram* program = nullptr;
  timing::Timeline timeline;  ///< Detail::kExecutes, or kCores for a trace
};

/// The card in a file (card_model.h), or the Spyre card for an empty name.
Result<CardModel> card_model_of(const std::string& file);

/// Both clocks, and every execute with what bounds it.
Json time_json(const std::vector<TimedProgram>& programs, const CardModel& card);

/// The same for people; of many executes the first.
std::string time_text(const Json& time);

}  // namespace spyre::tools
