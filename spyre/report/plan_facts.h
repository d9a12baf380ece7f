#pragma once

#include <string>
#include <string_view>

#include "spyre/base/json.h"
#include "spyre/base/result.h"

namespace spyre::report {

/// Whether JSON is a scratchpad plan as driver/explain.h describes it. `origin` (a file name, say) starts the
/// message, which names the first field that is missing or of another type:
///
///     old.json: buffers[3].moves is missing: expected a number
///
/// Everything else in report/ takes only facts that pass.
Status check_plan(const Json& plan, std::string_view origin);

/// `LX 98304` or `device memory`.
std::string place_text(const Json& buffer);

}  // namespace spyre::report
