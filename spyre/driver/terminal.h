#pragma once

#include <optional>

#include "spyre/base/result.h"
#include "spyre/driver/progress_line.h"

namespace spyre {

/// Where the progress of compilations is shown, on this file descriptor, as SPYRE_PROGRESS says: written over on a
/// terminal, in lines if that was asked for, else not at all.
Result<std::optional<ProgressLine::Screen>> progress_screen(int descriptor);

}  // namespace spyre
