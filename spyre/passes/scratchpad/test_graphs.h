#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

#include "spyre/base/text.h"
#include "spyre/graph/graph.h"
#include "spyre/passes/assign_layouts.h"
#include "spyre/passes/cut_loops.h"
#include "spyre/passes/divide_work.h"
#include "spyre/passes/eliminate_dead_code.h"
#include "spyre/passes/plan_scratchpad.h"
#include "spyre/passes/scratchpad/test_programs.h"
#include "spyre/passes/select_ops.h"

/// Graphs as they are when scratchpad planning starts.
namespace spyre::test {

inline const ScratchpadPlan::Entry& entry(const ScratchpadPlan& plan, std::string_view buffer) {
  for (const ScratchpadPlan::Entry& e : plan.entries) {
    if (e.buffer == buffer) return e;
  }
  throw std::out_of_range(std::string(buffer));
}

/// Text to a graph with one operation a node, layouts, and work divided over the cores.
inline Graph divided(std::string_view text, int64_t cores) {
  Graph graph = parse_graph(text).value();
  eliminate_dead_code(graph);
  for (const Status& status : {select_ops(graph), assign_layouts(graph), cut_loops(graph)}) {
    if (!status.ok()) throw std::runtime_error(status.error().message);
  }
  if (const auto status = divide_work(graph, cores); !status.ok())
    throw std::runtime_error(status.error().message);
  return graph;
}

/// max, sub, exp, sum, div over the rows (axis 0) of an m x n matrix.
inline std::string column_softmax(int64_t m, int64_t n) {
  const std::string M = std::to_string(m), N = std::to_string(n);
  const std::string matrix = " : float16[" + M + ", " + N + "] stride=[" + N + ", 1]\n";
  const std::string vector = " : float16[1, " + N + "] stride=[" + N + ", 1]\n";
  const std::string over_rows = " (p1: " + N + "; r0: " + M + ") {\n";
  const std::string over_all = " (p0: " + M + ", p1: " + N + ") {\n";
  const std::string row_element = "[" + N + "*r0 + p1]\n", element = "[" + N + "*p0 + p1]";
  return "graph softmax {\n  input x" + matrix + "  buffer m" + vector + "  buffer d" + matrix +
         "  buffer e" + matrix + "  buffer s" + vector + "  buffer y" + matrix +  //
         "  node m" + over_rows + "v0 = load x" + row_element + "v1 = reduce.max v0\nstore m[p1] v1\n}\n" +
         "  node d" + over_all + "v0 = load x" + element + "\nv1 = load m[p1]\nv2 = sub v0 v1\nstore d" +
         element + " v2\n}\n" +  //
         "  node e" + over_all + "v0 = load d" + element + "\nv1 = exp v0\nstore e" + element + " v1\n}\n" +
         "  node s" + over_rows + "v0 = load e" + row_element + "v1 = reduce.sum v0\nstore s[p1] v1\n}\n" +
         "  node y" + over_all + "v0 = load e" + element + "\nv1 = load s[p1]\nv2 = truediv v0 v1\nstore y" +
         element + " v2\n}\n" + "  return y\n}\n";
}

}  // namespace spyre::test
