#pragma once

#include <string_view>

#include "spyre/base/json_fwd.h"
#include "spyre/base/result.h"

namespace spyre::report {

/// Whether JSON says how far a model is off, as docs/spec/schema/compare_facts.schema.json describes it and
/// torch_spyre.compare records it.
Status check_comparison(const Json& facts, std::string_view origin);

}  // namespace spyre::report
