#pragma once

#include "spyre/graph/graph.h"

namespace spyre::glue {

/// Whose graph is about to be compiled.
enum class Compiles { kProgram, kEagerOperator };

/// Stands before every compilation of this process: counts those of programs (`graphs_compiled` in the metrics; of eager
/// operators, `eager_cache_misses` are), and raises where SPYRE_REQUIRE_PRECOMPILED forbids it. Not a refusal of the compiler: nothing falls back to the CPU.
void note_compilation(const Graph& graph, Compiles what);

}  // namespace spyre::glue
