#pragma once

#include <string>

#include "spyre/base/json_fwd.h"

namespace spyre::report {

/// How far a model is off, as a page (page.h); the facts are those that compare_facts.h takes.
///
///     first operator out of bound: aten.silu in layers.3.mlp           the answer
///     [result off by] [operators] [nearest to its bound]
///     error ^        x                                                  modules in the order they ran: how far
///           |  . o o x x x                                              each is off, and rounding alone
///           +-------------> modules
///     tables of modules and of operators
std::string compare_page(const Json& facts);

}  // namespace spyre::report
