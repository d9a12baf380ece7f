#pragma once

#include <string_view>

#include "spyre/base/json_fwd.h"
#include "spyre/base/result.h"

namespace spyre::report {

/// Whether JSON is a report of time as docs/spec/schema/time_facts.schema.json describes it, of a program
/// (device/timing/program_facts.h) or of a run (runtime/profile_facts.h). A refusal names the first field that is
/// missing, or of another type. Everything else here that takes such facts takes only those that pass.
Status check_time(const Json& facts, std::string_view origin);

}  // namespace spyre::report
