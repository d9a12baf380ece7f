#include "spyre/passes/select/probe_extents.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>
#include <span>
#include <variant>

#include "spyre/forms/expand.h"

namespace spyre {
namespace {

bool is_open(const Buffer& buffer) {
  return std::ranges::any_of(buffer.bounds, [](ExtentId bound) { return bound != kFixed; });
}

// The graph with another capacity for one extent, and the views of a call in it.
class Probe {
 public:
  Probe(const Graph& graph, ExtentId other) : given_(graph) {
    probe_.name = graph.name;
    probe_.extents = graph.extents;
    probe_.extents[static_cast<size_t>(other)].capacity += kStep;
    for (const Buffer& buffer : graph.buffers) probe_.buffers.push_back(stretched(buffer));
  }

  Call call(Call call) const {
    for (Argument& argument : call.arguments) {
      if (auto* view = std::get_if<TensorView>(&argument)) *view = stretched(*view);
      if (auto* list = std::get_if<TensorList>(&argument)) {
        for (std::optional<TensorView>& view : *list) {
          if (view) *view = stretched(*view);
        }
      }
    }
    for (TensorView& view : call.results) view = stretched(view);
    return call;
  }

  Graph& graph() { return probe_; }

 private:
  static constexpr int64_t kStep = 64;  // capacities are whole sticks

  Buffer stretched(Buffer buffer) const {
    if (!is_open(buffer)) return buffer;
    const std::vector<int64_t> size = buffer.size, stride = buffer.stride;
    for (size_t d = 0; d < size.size(); ++d) {
      if (buffer.bound(d) != kFixed)
        buffer.size[d] = probe_.extents[static_cast<size_t>(buffer.bounds[d])].capacity;
    }
    for (size_t d = 0; d < size.size(); ++d) {
      int64_t inner = 1, stretched = 1;  // elements of the dimensions inside this one, before and now
      for (size_t i = 0; i < size.size(); ++i) {
        if (stride[i] < stride[d] || (stride[i] == stride[d] && size[i] == 1)) {
          inner *= size[i];
          stretched *= buffer.size[i];
        }
      }
      if (stride[d] == inner) buffer.stride[d] = stretched;
    }
    buffer.storage = 0;
    buffer.layout.reset();
    return buffer;
  }

  // A dimension of a view is one of the buffer's, a part of it, or several steps of it.
  TensorView stretched(TensorView view) const {
    if (view.buffer < 0) return view;
    const Buffer& before = given_.buffers[static_cast<size_t>(view.buffer)];
    const Buffer& now = probe_.buffers[static_cast<size_t>(view.buffer)];
    if (!is_open(before)) return view;
    view.offset = stretched_offset(view.offset - before.offset, before, now);
    for (size_t v = 0; v < view.size.size(); ++v) {
      size_t dim = before.size.size();
      for (size_t d = 0; d < before.size.size(); ++d) {
        const bool steps =
            before.size[d] > 1 && before.stride[d] > 0 && view.stride[v] % before.stride[d] == 0;
        if (steps && (dim == before.size.size() || before.stride[d] > before.stride[dim])) dim = d;
      }
      if (dim == before.size.size()) continue;
      if (view.size[v] == before.size[dim] && view.stride[v] == before.stride[dim])
        view.size[v] = now.size[dim];
      view.stride[v] = view.stride[v] / before.stride[dim] * now.stride[dim];
    }
    return view;
  }

  // Where a view begins: as many steps along each dimension as before.
  static int64_t stretched_offset(int64_t offset, const Buffer& before, const Buffer& now) {
    std::vector<size_t> dims;
    for (size_t d = 0; d < before.size.size(); ++d) {
      if (before.size[d] > 1 && before.stride[d] > 0) dims.push_back(d);
    }
    std::ranges::sort(dims, std::greater<>(), [&](size_t d) { return before.stride[d]; });
    int64_t found = now.offset;
    for (const size_t d : dims) {
      found += offset / before.stride[d] * now.stride[d];
      offset %= before.stride[d];
    }
    return found + offset;
  }

  const Graph& given_;
  Graph probe_;
};

// What must not know an extent.
bool same_numbers(const Instruction& a, const Instruction& b) {
  if (a.op != b.op || a.operands != b.operands || a.dtype != b.dtype) return false;
  if (a.op == BodyOp::constant) return a.value == b.value;
  if (a.op == BodyOp::index) return a.index == b.index;
  return a.op == BodyOp::mean || a.attributes == b.attributes;
}

bool same_numbers(const Node& a, const Node& b) {
  return a.loops.size() == b.loops.size() && a.body.size() == b.body.size() &&
         std::ranges::equal(a.body, b.body, [](const auto& x, const auto& y) { return same_numbers(x, y); });
}

}  // namespace

Status probe_extents(const Graph& graph, const Node& call, size_t first) {
  std::set<ExtentId> met;
  const auto meet = [&](const TensorView& view) {
    if (view.buffer < 0) return;
    const std::vector<ExtentId>& bounds = graph.buffers[static_cast<size_t>(view.buffer)].bounds;
    met.insert(bounds.begin(), bounds.end());
  };
  std::ranges::for_each(operands_of(*call.call), meet);
  std::ranges::for_each(call.call->results, meet);
  met.erase(kFixed);
  const auto steps = std::span(graph.nodes).subspan(first);
  Error refused(ErrorKind::kUnsupported,
                "its sizes change from call to call, and its steps depend on them as numbers");
  for (const ExtentId extent : met) {
    Probe probe(graph, extent);
    const Status expanded = forms::expand_call(
        probe.graph(), probe.call(*call.call), call.name, call.source,
        {.default_float = call.call->default_float, .float32_parts = call.call->float32_parts});
    const auto same = [](const Node& a, const Node& b) { return same_numbers(a, b); };
    if (!expanded.ok() || !std::ranges::equal(steps, probe.graph().nodes, same))
      refused.extents.push_back(graph.extents[static_cast<size_t>(extent)].source);
  }
  return refused.extents.empty() ? Status() : Status(std::move(refused));
}

}  // namespace spyre
