#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ranges>
#include <set>

#include "spyre/graph/device_graph.h"
#include "spyre/graph/graph.h"

namespace spyre {
namespace {

class NodeRules {
 public:
  NodeRules(const GraphBuffers& graph, const NodeHead& node, std::set<BufferId>& written)
      : graph_(graph), node_(node), written_(written) {
    for (const Loop& loop : node.loops) loops_.insert(loop.name);
  }

  Status body(const Node& node) const;
  Status indices(const DeviceOp& op) const;
  Status load(BufferId from, const Expr& at) const;
  Status store(BufferId target, const Expr& at);

 private:
  Error refuse(std::string_view message) const {
    return Error(ErrorKind::kInvalidArgument,
                 fmt::format("graph '{}', node '{}': {}", graph_.name, node_.name, message))
        .about(origin_of(node_));
  }
  const Buffer& buffer(BufferId id) const { return graph_.buffers[static_cast<size_t>(id)]; }

  Status known_symbols(const Expr& index, std::string_view what) const;
  Status index(const Expr& index, BufferId id, std::string_view verb) const;

  const GraphBuffers& graph_;
  const NodeHead& node_;
  std::set<BufferId>& written_;
  std::set<std::string> loops_;
};

Status NodeRules::store(BufferId target, const Expr& at) {
  if (buffer(target).fill) return refuse(fmt::format("stores into the constant '{}'", buffer(target).name));
  for (const Loop& loop : node_.loops) {
    if (loop.reduced && at.symbols().contains(loop.name)) {
      return refuse(fmt::format("its store uses '{}', a loop that is reduced", loop.name));
    }
  }
  SPYRE_TRY(index(at, target, "store"));
  written_.insert(graph_.owner(target));
  return Status();
}

Status NodeRules::load(BufferId from, const Expr& at) const {
  const BufferId owner = graph_.owner(from);
  const Buffer& source = buffer(owner);
  if (!source.is_input && !source.fill && !written_.contains(owner)) {
    return refuse(fmt::format("reads '{}' before anything is written there", buffer(from).name));
  }
  return index(at, from, "load");
}

Status NodeRules::body(const Node& node) const {
  bool reduced = false;
  for (const Instruction& instruction : node.body) {
    if (instruction.is_load()) SPYRE_TRY(load(instruction.buffer, instruction.index));
    if (instruction.op == BodyOp::index) {
      SPYRE_TRY(known_symbols(instruction.index, "an index value"));
    }
    if (instruction.is_reduction()) {
      if (reduced) return refuse("has two reductions, at most one is allowed");
      reduced = true;
    }
  }
  return Status();
}

// Text numbers them.
Status NodeRules::indices(const DeviceOp& op) const {
  for (size_t i = 0; i < op.indices.size(); ++i) {
    if (op.indices[i].first != fmt::format("v{}", i))
      return refuse(fmt::format("calls an index tensor '{}', the next one is v{}", op.indices[i].first, i));
  }
  return Status();
}

Status NodeRules::known_symbols(const Expr& index, std::string_view what) const {
  for (const std::string& symbol : index.symbols()) {
    if (!loops_.contains(symbol)) {
      return refuse(fmt::format("{} uses '{}', which is no loop of the node", what, symbol));
    }
  }
  return Status();
}

Status NodeRules::index(const Expr& index, BufferId id, std::string_view verb) const {
  SPYRE_TRY(known_symbols(index, fmt::format("{} of '{}'", verb, buffer(id).name)));
  for (const Loop& loop : node_.loops) {
    if (loop.extent == 0) return Status();  // never runs
  }
  const IndexRange range = range_of(index, node_.loops);
  // An input may be a view into a larger storage; only its own buffer is bounded.
  const bool past_end = !graph_.is_given(id) && range.high >= buffer(id).reach();
  if (range.low < 0 || past_end) {
    return refuse(fmt::format("{} of '{}' reaches elements {} to {}, the buffer has {}", verb,
                              buffer(id).name, range.low, range.high, buffer(id).reach()));
  }
  return Status();
}

/// Words that stand for values among the arguments of a call: no tensor there can have such a name.
constexpr std::string_view kValueWords[] = {"none", "true", "false", "inf", "nan", "dtype"};

class CallRules {
 public:
  CallRules(const GraphBuffers& graph, const Node& node, std::set<BufferId>& written)
      : graph_(graph), node_(node), call_(*node.call), written_(written) {}

  Status check();

 private:
  Error refuse(std::string_view message) const {
    return Error(ErrorKind::kInvalidArgument,
                 fmt::format("graph '{}', call '{}' of {}: {}", graph_.name, node_.name, call_.op, message));
  }
  const Buffer& buffer(const TensorView& view) const {
    return graph_.buffers[static_cast<size_t>(view.buffer)];
  }

  Status view(const TensorView& view) const;
  Status result(const TensorView& view) const;
  Status values() const;

  const GraphBuffers& graph_;
  const Node& node_;
  const Call& call_;
  std::set<BufferId>& written_;
};

Status CallRules::check() {
  if (!node_.loops.empty() || !node_.body.empty()) return refuse("has loops or a body besides the operator");
  const auto is_wanted = [](const TensorView& made) { return made.buffer >= 0; };
  if (std::ranges::none_of(call_.results, is_wanted)) return refuse("has no result");
  SPYRE_TRY(values());
  for (const TensorView& read : operands_of(call_)) {
    SPYRE_TRY(view(read));
    const Buffer& source = buffer(read);
    if (!source.is_input && !source.fill && !written_.contains(read.buffer)) {
      return refuse(fmt::format("reads '{}' before anything is written there", source.name));
    }
  }
  for (const TensorView& made : call_.results | std::views::filter(is_wanted)) SPYRE_TRY(result(made));
  for (const TensorView& made : call_.results | std::views::filter(is_wanted)) written_.insert(made.buffer);
  return Status();
}

Status CallRules::values() const {
  for (const Argument& argument : call_.arguments) {
    if (const auto* number = std::get_if<Number>(&argument)) {
      const bool is_bool = number->value == 0 || number->value == 1;
      const bool is_whole = std::trunc(number->value) == number->value && Number::is_exact(number->whole());
      if ((number->kind == Number::Kind::kBool && !is_bool) ||
          (number->kind == Number::Kind::kInt && !is_whole)) {
        return refuse(fmt::format("{} is no {}", number->value,
                                  number->kind == Number::Kind::kBool ? "boolean" : "exact whole number"));
      }
    }
    const auto* floats = std::get_if<std::vector<double>>(&argument);
    if (floats != nullptr && floats->empty()) return refuse("a list of no numbers is one of integers");
  }
  return Status();
}

Status CallRules::view(const TensorView& view) const {
  const Buffer& seen = buffer(view);
  if (std::ranges::find(kValueWords, seen.name) != std::end(kValueWords)) {
    return refuse(fmt::format("a tensor is called '{}', a word for a value", seen.name));
  }
  if (view.dtype != seen.dtype) {
    return refuse(
        fmt::format("sees '{}' as {}, which is {}", seen.name, to_string(view.dtype), to_string(seen.dtype)));
  }
  if (view.size.size() != view.stride.size()) {
    return refuse(fmt::format("sees '{}' with {} sizes and {} strides", seen.name, view.size.size(),
                              view.stride.size()));
  }
  int64_t low = view.offset, high = view.offset;
  for (size_t d = 0; d < view.size.size(); ++d) {
    if (view.size[d] == 0) return Status();
    const int64_t last = (view.size[d] - 1) * view.stride[d];
    (last < 0 ? low : high) += last;
  }
  // As with loads: an input may be a view into a larger storage.
  if (low < 0 || (!seen.is_input && high >= seen.reach())) {
    return refuse(
        fmt::format("sees elements {} to {} of '{}', which has {}", low, high, seen.name, seen.reach()));
  }
  return Status();
}

Status CallRules::result(const TensorView& made) const {
  SPYRE_TRY(view(made));
  if (buffer(made).fill) return refuse(fmt::format("writes into the constant '{}'", buffer(made).name));
  for (size_t d = 0; d < made.size.size(); ++d) {
    if (made.size[d] > 1 && made.stride[d] == 0) {
      return refuse(fmt::format("writes an element of '{}' several times", buffer(made).name));
    }
  }
  // A form may read its arguments after it has begun to write.
  const std::vector<TensorView> operands = operands_of(call_);
  if (std::ranges::find(operands, made) != operands.end()) {
    return refuse(fmt::format("writes '{}' over what it reads", buffer(made).name));
  }
  return Status();
}

Status check(const GraphBuffers& graph, const Node& node, std::set<BufferId>& written) {
  if (node.call) return CallRules(graph, node, written).check();
  NodeRules rules(graph, node, written);
  SPYRE_TRY(rules.body(node));
  return rules.store(node.target, node.target_index);
}

Status check(const GraphBuffers& graph, const DeviceNode& node, std::set<BufferId>& written) {
  NodeRules rules(graph, node, written);
  SPYRE_TRY(rules.indices(node.op));
  Status reads;
  for_each_read(node.op, [&](const Access& access) {
    if (reads.ok()) reads = rules.load(access.buffer, access.index);
  });
  SPYRE_TRY(reads);
  return rules.store(node.op.output.buffer, node.op.output.index);
}

/// What an extent stands for is its capacity everywhere, and one input holds it.
class ExtentRules {
 public:
  explicit ExtentRules(const GraphBuffers& graph) : graph_(graph), holders_(graph.extents.size(), 0) {}

  Status buffers() {
    for (const Buffer& buffer : graph_.buffers) {
      for (size_t d = 0; d < buffer.size.size(); ++d)
        SPYRE_TRY(length(buffer.bound(d), buffer.size[d], buffer.name));
      if (buffer.value_of == kFixed) continue;
      if (!buffer.is_input || buffer.dtype != HostType::kFloat32 || !buffer.size.empty()) {
        return refuse(
            fmt::format("'{}' holds an extent; allowed is a float32 input without dimensions", buffer.name));
      }
      ++holders_[static_cast<size_t>(buffer.value_of)];
    }
    for (size_t i = 0; i < holders_.size(); ++i) {
      if (holders_[i] != 1) {
        return refuse(
            fmt::format("{} inputs hold extent '{}', allowed is one", holders_[i], graph_.extents[i].name));
      }
    }
    return Status();
  }

  Status loops(const NodeHead& node) const {
    for (const Loop& loop : node.loops) SPYRE_TRY(length(loop.bound, loop.extent, node.name));
    return Status();
  }

 private:
  Error refuse(std::string_view message) const {
    return {ErrorKind::kInvalidArgument, fmt::format("graph '{}': {}", graph_.name, message)};
  }
  Status length(ExtentId bound, int64_t length, std::string_view of) const {
    if (bound == kFixed) return Status();
    const Extent& extent = graph_.extents[static_cast<size_t>(bound)];
    if (length == extent.capacity) return Status();
    return refuse(fmt::format("'{}' has {} positions along extent '{}', whose capacity is {}", of, length,
                              extent.name, extent.capacity));
  }

  const GraphBuffers& graph_;
  std::vector<int> holders_;
};

template <class Nodes>
Status verify_nodes(const GraphBuffers& graph, const Nodes& nodes) {
  std::set<std::string_view> names;
  for (const Buffer& buffer : graph.buffers) {
    if (!names.insert(buffer.name).second) {
      return Error(ErrorKind::kInvalidArgument,
                   fmt::format("graph '{}': buffer '{}' appears twice", graph.name, buffer.name));
    }
  }
  ExtentRules extents(graph);
  SPYRE_TRY(extents.buffers());
  std::set<BufferId> written;
  int64_t bundle = 0;
  for (const auto& node : nodes) {
    SPYRE_TRY(extents.loops(node));
    SPYRE_TRY(check(graph, node, written));
    if (node.bundle != bundle && (&node == &nodes.front() || node.bundle != bundle + 1)) {
      return Error(
                 ErrorKind::kInvalidArgument,
                 fmt::format("graph '{}', node '{}': is in bundle {} after bundle {}: bundles count up from "
                             "0, one by one",
                             graph.name, node.name, node.bundle, bundle))
          .about(origin_of(node));
    }
    bundle = node.bundle;
  }
  for (const BufferId id : graph.results) {
    const Buffer& buffer = graph.buffers[static_cast<size_t>(id)];
    if (!buffer.is_input && !buffer.fill && !written.contains(id)) {
      return Error(ErrorKind::kInvalidArgument,
                   fmt::format("graph '{}': returns '{}', which nothing writes", graph.name, buffer.name));
    }
  }
  return Status();
}

}  // namespace

Status verify(const Graph& graph) {
  return verify_nodes(graph, graph.nodes);
}

Status verify(const DeviceGraph& graph) {
  return verify_nodes(graph, graph.nodes);
}

}  // namespace spyre
