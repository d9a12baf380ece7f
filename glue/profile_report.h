#pragma once

#include "spyre/runtime/activity_log.h"

namespace spyre::glue {

/// Keeps what a profile recorded until a report was made of it, if somebody asked for that before. Nothing is computed
/// here: a profile that ends costs no more than without.
void keep_for_report(ActivityLog::Record record);

}  // namespace spyre::glue
