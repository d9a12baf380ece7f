#include "spyre/passes/select_ops.h"

#include "spyre/passes/op_emitter.h"
#include "spyre/passes/op_recipes.h"

namespace spyre {
namespace {

// Rewrites one node.
class NodeSelector {
 public:
  NodeSelector(Graph& graph, const Node& node, std::vector<Node>& out)
      : node_(node), emit_(graph, node, out) {}

  Status run() {
    for (const Instruction& instruction : node_.body) {
      SPYRE_ASSIGN_OR_RETURN(Operand value, evaluate(instruction));
      emit_.define(std::move(value));
    }
    return emit_.store(emit_.value(node_.result));
  }

 private:
  Result<Operand> evaluate(const Instruction& instruction) {
    if (instruction.is_load()) return emit_.load(instruction);
    if (instruction.op == "constant") return emit_.constant(instruction.value, instruction.dtype);
    if (instruction.op == "index") return emit_.ramp(instruction.index, instruction.dtype);
    std::vector<Operand> operands;
    for (const int operand : instruction.operands) operands.push_back(emit_.value(operand));
    return instruction.is_reduction() ? select_reduction(emit_, instruction, operands)
                                      : select_pointwise(emit_, instruction, operands);
  }

  const Node& node_;
  OpEmitter emit_;
};

}  // namespace

Status select_ops(Graph& graph) {
  std::vector<Node> nodes = std::move(graph.nodes);
  graph.nodes.clear();
  std::vector<Node> selected;
  for (const Node& node : nodes) SPYRE_TRY(NodeSelector(graph, node, selected).run());
  graph.nodes = std::move(selected);
  return Status();
}

}  // namespace spyre
