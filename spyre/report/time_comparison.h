#pragma once

#include <string>

#include "spyre/base/json_fwd.h"

namespace spyre::report {

/// Where two reports of time differ, from the first to the second: solvers, machines, commits.
///
///     names     what the two are called: {from, to}
///     totals    for each total of the facts: {from, to}
///     bound     what bounds most of each: {from, to}
///     changes   what takes another time, the largest difference first: {name, aten, source, from_us, to_us, us,
///               from_bound, to_bound, from_bytes, to_bytes}; null for a side that has none of it
///
/// Items are told apart by name and origin, since files are numbered anew by each compilation; several of one name and
/// origin are added up.
Json compare_times(const Json& from, const Json& to);

/// The same for a terminal.
std::string time_comparison_text(const Json& comparison);

}  // namespace spyre::report
