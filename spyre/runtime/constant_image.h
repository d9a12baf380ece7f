#pragma once

#include <cstddef>
#include <vector>

#include "spyre/base/result.h"
#include "spyre/program/device_program.h"

namespace spyre {

/// The device memory of a constant as its launch specification describes it: its fill, converted and laid
/// out.
///
/// Refused: an argument without dtype or whole layout, a runtime extent in its shape, more than a core
/// reaches.
Result<std::vector<std::byte>> constant_image(const program::LaunchArg& arg);

}  // namespace spyre
