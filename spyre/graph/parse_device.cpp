#include <fmt/format.h>

#include <set>

#include "spyre/graph/device_graph.h"
#include "spyre/graph/graph_parser.h"

namespace spyre {
namespace {

constexpr std::string_view kReduce = "reduce.";

class DeviceParser : public GraphParser {
 public:
  DeviceParser(Lexer lexer, DeviceGraph& graph) : GraphParser(std::move(lexer), graph), graph_(graph) {}

 private:
  // The body of one node. Values are loads, and at most one operation behind them.
  struct Body {
    std::vector<Access> loads;
    std::vector<int> operands;  // of the operation
    std::optional<HostType> dtype;
    bool computes = false;
  };

  Status node() override;
  Status call() override { return not_selected("a call"); }
  Status read(DeviceNode& node);
  Status instruction(DeviceNode& node, Body& body);
  Status operation(DeviceNode& node, Body& body, std::string_view name);
  Status store(DeviceNode& node, Body& body);
  Status take_indices(DeviceNode& node, Body& body);

  Error not_selected(std::string_view found) const {
    return lex_
        .error_here(fmt::format("found {}, a node of a device graph is one operation of the card", found))
        .note("'select-ops' makes a device graph of a captured one");
  }

  DeviceGraph& graph_;
};

Status DeviceParser::node() {
  DeviceNode node;
  const Status whole = read(node);
  if (!whole.ok()) return Error(whole.error()).about(origin_of(node));
  graph_.nodes.push_back(std::move(node));
  return Status();
}

Status DeviceParser::read(DeviceNode& node) {
  SPYRE_TRY(head(node));
  Body body;
  while (true) {
    SPYRE_ASSIGN_OR_RETURN(const std::string word, lex_.word("a value or 'store'"));
    if (word == "store") return store(node, body);
    SPYRE_TRY(next_value(word, static_cast<int>(body.loads.size()) + (body.computes ? 1 : 0)));
    SPYRE_TRY(instruction(node, body));
  }
}

Status DeviceParser::instruction(DeviceNode& node, Body& body) {
  SPYRE_ASSIGN_OR_RETURN(const std::string name, lex_.word("an operation"));
  if (body.computes) return not_selected(fmt::format("'{}' behind another operation", name));
  if (name != "load") return operation(node, body, name);
  Access access;
  SPYRE_ASSIGN_OR_RETURN(access.buffer, buffer_name());
  SPYRE_ASSIGN_OR_RETURN(access.index, bracketed());
  body.loads.push_back(std::move(access));
  return Status();
}

Status DeviceParser::operation(DeviceNode& node, Body& body, std::string_view name) {
  node.op.reduces = name.starts_with(kReduce);
  const std::optional<OpId> op = op_from_name(name.substr(node.op.reduces ? kReduce.size() : 0));
  if (!op) return not_selected(fmt::format("'{}'", name));
  node.op.op = *op;
  body.computes = true;
  while (!lex_.sees(":") && !lex_.sees("{") && !lex_.sees("store")) {
    // The next value's definition ends this one: `v3 =`.
    const int count = static_cast<int>(body.loads.size());
    if (lex_.sees(fmt::format("v{}", count + 1))) break;
    SPYRE_ASSIGN_OR_RETURN(const int operand, value(count, node.name));
    body.operands.push_back(operand);
  }
  if (lex_.take(":")) {
    SPYRE_ASSIGN_OR_RETURN(body.dtype, dtype());
  }
  return attributes(node.op.constants);
}

Status DeviceParser::store(DeviceNode& node, Body& body) {
  DeviceOp& op = node.op;
  SPYRE_ASSIGN_OR_RETURN(op.output.buffer, buffer_name());
  SPYRE_ASSIGN_OR_RETURN(op.output.index, bracketed());
  const int loads = static_cast<int>(body.loads.size());
  SPYRE_ASSIGN_OR_RETURN(const int stored, value(loads + (body.computes ? 1 : 0), node.name));
  if (body.computes && stored != loads)
    return lex_.error_here(fmt::format("stores v{}, its operation makes v{}", stored, loads));
  const Buffer& target = buffer(op.output.buffer);
  if (body.dtype && *body.dtype != target.dtype) {
    return lex_.error_here(fmt::format("stores {} into '{}', which is {}", to_string(*body.dtype),
                                       target.name, to_string(target.dtype)));
  }
  SPYRE_TRY(take_indices(node, body));
  for (const int operand : body.computes ? body.operands : std::vector<int>{stored}) {
    op.inputs.push_back(body.loads[static_cast<size_t>(operand)]);
  }
  return lex_.expect("}");
}

// Values that are read for positions become index tensors, named in the order they are loaded.
Status DeviceParser::take_indices(DeviceNode& node, Body& body) {
  std::set<std::string> named;
  for (const Access& load : body.loads) named.merge(load.index.index_tensors());
  named.merge(node.op.output.index.index_tensors());
  std::vector<size_t> taken;
  for (size_t i = 0; i < body.loads.size(); ++i) {
    const std::string name = fmt::format("v{}", i);
    if (named.erase(name) == 0) continue;
    const std::string renamed = fmt::format("v{}", taken.size());
    for (Access& load : body.loads) load.index = rename_index_tensor(load.index, name, renamed);
    node.op.output.index = rename_index_tensor(node.op.output.index, name, renamed);
    taken.push_back(i);
  }
  for (size_t i = 0; i < taken.size(); ++i)
    node.op.indices.emplace_back(fmt::format("v{}", i), body.loads[taken[i]]);
  if (named.empty()) return Status();
  return lex_.error_here(
      fmt::format("positions come from '{}', which is no load of node '{}'", *named.begin(), node.name));
}

}  // namespace

Result<DeviceGraph> parse_device_graph(std::string_view text, std::string_view origin) {
  SPYRE_ASSIGN_OR_RETURN(Lexer lexer, Lexer::read(text, origin));
  DeviceGraph graph;
  SPYRE_TRY(DeviceParser(std::move(lexer), graph).graph());
  SPYRE_TRY(check_sizes(graph));
  SPYRE_TRY(verify(graph));
  return graph;
}

}  // namespace spyre
