#pragma once

#include <string>

#include "spyre/base/json.h"

namespace spyre::superdsc {

/// JSON for people and for diffs: what fits on a line stays on a line, the rest has one entry per line. The
/// bytes depend on the value alone.
std::string pretty_json(const Json& value);

}  // namespace spyre::superdsc
