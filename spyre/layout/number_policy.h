#pragma once

#include "spyre/base/result.h"
#include "spyre/layout/sen169.h"

namespace spyre {

/// The rules for the 16-bit format that the setting SPYRE_NUMBER_FORMAT asks for.
Result<Sen169Policy> number_policy_setting();

}  // namespace spyre
