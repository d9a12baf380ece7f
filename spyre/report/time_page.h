#pragma once

#include <string>

#include "spyre/base/json_fwd.h"

namespace spyre::report {

/// A report of time as a page (page.h).
///
///     540 us: memory bounds 82 % of it                  the answer: total, what bounds it, the three longest
///     [softmax 120 us] [matmul 80 us] [add 30 us]
///     core 0  |load|vector  |idle|                      rows of slices, rates of memory and ring, LX by address:
///     core 1  |load|vector |idle |                      one axis of time, which zooms and moves together
///     ideal |====|  re-reads |==|  ring |=|  launch |=|
///     roofline, and a table with what would help
std::string time_page(const Json& facts);

/// Two reports beside each other; `comparison` is that of time_comparison.h.
std::string comparison_page(const Json& from, const Json& to, const Json& comparison);

}  // namespace spyre::report
