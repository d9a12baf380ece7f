#pragma once

#include <string>

#include "spyre/base/json.h"

namespace spyre::report {

/// A scratchpad plan for a terminal: one line per buffer, then what it all comes to.
///
///     buffer  nodes  B per core  place          B saved  B moved  remark
///     x        0..1         128  LX 128            1024     1024  clone of the input
///     y        4..4        1024  device memory        0     1024  graph output
///
/// A buffer in device memory says in its remark why, and under `B moved` what that costs.
std::string plan_text(const Json& plan);

}  // namespace spyre::report
