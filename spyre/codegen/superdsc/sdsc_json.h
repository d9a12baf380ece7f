#pragma once

#include "spyre/base/json.h"
#include "spyre/codegen/superdsc/plan.h"
#include "spyre/codegen/superdsc/symbols.h"

namespace spyre::superdsc {

/// Where one file stands in its bundle.
struct SdscPosition {
  int64_t file = 0;          ///< N of sdsc_N.json
  int64_t first_symbol = 0;  ///< symbols numbered before it
  bool with_handle = true;   ///< whether the provenance is written; left out when two ops are compared
};

/// The artifact id of a symbol: negative, counted over the bundle.
constexpr int64_t symbol_id(const SdscPosition& position, int symbol) {
  return -(position.first_symbol + symbol + 1);
}

/// The whole content of one sdsc_N.json.
Json sdsc_json(const SdscPlan& plan, const OpSymbols& symbols, const SdscPosition& position);

}  // namespace spyre::superdsc
