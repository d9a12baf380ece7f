#pragma once

#include <string>

#include "spyre/base/json_fwd.h"

namespace spyre::report {

/// A report of time for a terminal: the answer, the steps from the ideal, the longest items with what would help.
std::string time_report_text(const Json& facts);

}  // namespace spyre::report
