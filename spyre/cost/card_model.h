#pragma once

#include <string>

#include "spyre/arch/machine.h"
#include "spyre/base/result.h"
#include "spyre/cost/rates.h"

namespace spyre {

/// A card to plan for or to time: what it has, and how fast that is. For cards that do not exist ("twice the
/// LX, another memory") it is a preset with changes, as text:
///
///     {"like": "spyre",                          // or "toy"; "spyre" if left out
///      "name": "twice the memory",               // for reports
///      "machine": {"cores": 64, "lx_per_core": 4194304},
///      "times": {"memory": 2},                   // all rates of: memory, matrix, vector, ring, launch, link
///      "rates": {"hbm_peak": 500}}               // single rates, by their names in rates.h
///
/// `times` 2 is twice as fast: launches take half as long.
struct CardModel {
  std::string name;
  Machine machine;
  Rates rates;
};

/// The Spyre card at the rates fitted to the device.
CardModel spyre_model();

/// Reads the text above. `origin`, a file name, starts the message of a refusal: unknown names, values that
/// are no positive numbers.
Result<CardModel> read_card_model(std::string_view text, std::string_view origin);

}  // namespace spyre
