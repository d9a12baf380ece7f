#pragma once

#include <string>

#include "spyre/base/json_fwd.h"
#include "spyre/base/result.h"
#include "spyre/program/device_program.h"

namespace spyre::program {

/// Reads launch_spec.json: what the caller must pass, and how those tensors lie in device memory. Version 1;
/// a newer one is refused, because its meaning is not known here.
Result<LaunchSpec> read_launch_spec(const Json& json, const std::string& file);

}  // namespace spyre::program
