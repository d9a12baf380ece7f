#pragma once

#include <string>
#include <string_view>

#include "spyre/graph/device_graph.h"
#include "spyre/lx/residency.h"
#include "spyre/lx/test_programs.h"

/// Graphs as they are when planning starts, without the passes that make them so.
namespace spyre::test {

/// A graph of card operations, each loop divided as the text says, with standard layouts.
inline DeviceGraph laid_out(std::string_view text) {
  DeviceGraph graph = parse_device_graph(text).value();
  for (Buffer& buffer : graph.buffers) {
    if (!buffer.layout)
      buffer.layout = DeviceLayout::standard(buffer.size, info_of(buffer.dtype).device_format).value();
  }
  return graph;
}

/// A graph and what planning knows of it, which refers to it.
struct Analysed {
  explicit Analysed(DeviceGraph given, lx::MoveSet moves = lx::MoveSet::all())
      : graph(std::move(given)), analysis(lx::Analysis::of(graph, moves).value()) {}
  Analysed(const Analysed&) = delete;

  BufferId id(std::string_view name) const { return graph.find(name).value(); }
  lx::Residency residency(std::string_view name, const lx::HoldRequest& request = {}) const {
    return lx::residency_of(analysis, id(name), analysis.views(id(name)), request);
  }
  lx::Holding holding(std::string_view name) const { return {id(name), {}, residency(name)}; }

  DeviceGraph graph;
  lx::Analysis analysis;
};

/// a = exp x by rows, then b = neg a by columns: 64 x 256, four cores each, who disagree about a.
inline constexpr std::string_view kRowsThenColumns = R"(graph g {
  input x : float16[64, 256] stride=[256, 1]
  buffer a : float16[64, 256] stride=[256, 1]
  buffer b : float16[64, 256] stride=[256, 1]
  node a (p0: 64/4, p1: 256) {
    v0 = load x[256*p0 + p1]
    v1 = exp v0
    store a[256*p0 + p1] v1
  }
  node b (p0: 64, p1: 256/4) {
    v0 = load a[256*p0 + p1]
    v1 = neg v0
    store b[256*p0 + p1] v1
  }
  return b
})";

/// The same, and then c = abs a by rows again.
inline std::string rows_columns_rows() {
  std::string text(kRowsThenColumns);
  return text.replace(text.find("  return b"), std::string::npos,
                      R"(  buffer c : float16[64, 256] stride=[256, 1]
  node c (p0: 64/4, p1: 256) {
    v0 = load a[256*p0 + p1]
    v1 = abs v0
    store c[256*p0 + p1] v1
  }
  return b, c
})");
}

/// a = exp of the left half of x, 64 x 128.
inline constexpr std::string_view kLeftHalf = R"(graph g {
  input x : float16[64, 128] stride=[128, 1]
  buffer a : float16[64, 64] stride=[64, 1]
  node a (p0: 64, p1: 64) {
    v0 = load x[128*p0 + p1]
    v1 = exp v0
    store a[64*p0 + p1] v1
  }
  return a
})";

}  // namespace spyre::test
