#pragma once

#include <nlohmann/json_fwd.hpp>

namespace spyre {

/// JSON that keeps the order in which keys were written, so that equal values print to equal bytes. Headers that only name
/// it include this one: the class itself (json.h) is long.
using Json = nlohmann::ordered_json;

}  // namespace spyre
