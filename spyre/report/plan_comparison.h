#pragma once

#include <string>

#include "spyre/base/json.h"

namespace spyre::report {

/// Where two plans of one graph differ, from the first to the second:
///
///     changes         buffers that live elsewhere or move other bytes: {buffer, from, to, saved, moved}, the
///                     last two being the bytes that the second plan saves or moves more; a place of null:
///                     the plan has no such buffer
///     moved_address   how many others lie at another address of LX
///     saved, moved, us, peak   `{from, to}` each
///
/// Buffers are told apart by name, so plans of two graphs compare as far as their names agree.
Json compare_plans(const Json& from, const Json& to);

/// The same for a terminal.
std::string comparison_text(const Json& comparison);

}  // namespace spyre::report
