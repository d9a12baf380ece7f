#include "spyre/passes/select/select_ops.h"

#include <fmt/format.h>

#include <cmath>

#include "spyre/layout/small_float.h"
#include "spyre/passes/select/eliminate_dead_code.h"
#include "spyre/passes/select/op_emitter.h"
#include "spyre/passes/select/op_recipes.h"

namespace spyre {
namespace {

// A number as a tensor of this type holds it: true is 1, integers have no fraction, and narrow ones wrap.
double as_integer(double value, HostType type) {
  const auto whole =
      std::abs(value) < 0x1p62 ? static_cast<int64_t>(value) : 0;  // of NaN and infinities: nothing
  switch (type) {
    case HostType::kBool:
      return value != 0 ? 1 : 0;
    case HostType::kInt8:
      return static_cast<int8_t>(whole);
    case HostType::kUInt8:
      return static_cast<uint8_t>(whole);
    case HostType::kInt16:
      return static_cast<int16_t>(whole);
    case HostType::kInt32:
    case HostType::kInt64:
      return std::trunc(value);
    default:
      return value;
  }
}

// Likewise for 16-bit numbers: what is stored was rounded to them, not to the card's format alone; what is computed with
// was not.
double as_stored(double value, HostType type) {
  const auto number = static_cast<float>(value);
  if (type == HostType::kFloat16) return fp32_from_fp16(fp16_from_fp32(number));
  if (type == HostType::kBFloat16) return fp32_from_bf16(bf16_from_fp32(number));
  return value;
}

// Rewrites one node.
class NodeSelector {
 public:
  NodeSelector(GraphBuffers& graph, const Node& node, std::vector<DeviceNode>& out)
      : node_(node), emit_(graph, node, out) {}

  Status run() {
    const std::vector<bool> stored = reach_the_store();
    for (size_t i = 0; i < node_.body.size(); ++i) {
      SPYRE_ASSIGN_OR_RETURN(Operand value, evaluate(node_.body[i], stored[i]));
      emit_.define(std::move(value));
    }
    return emit_.store(emit_.value(node_.result));
  }

 private:
  // Which values become elements of the result as they are: what is stored, and what a choice between such values chooses.
  std::vector<bool> reach_the_store() const {
    std::vector<bool> reaches(node_.body.size());
    reaches[static_cast<size_t>(node_.result)] = true;
    for (size_t i = node_.body.size(); i-- > 0;) {
      const Instruction& choice = node_.body[i];
      const bool chooses =
          choice.op == BodyOp::where || choice.op == BodyOp::maximum || choice.op == BodyOp::minimum;
      if (!reaches[i] || !chooses) continue;
      for (size_t k = choice.op == BodyOp::where ? 1 : 0; k < choice.operands.size(); ++k) {
        reaches[static_cast<size_t>(choice.operands[k])] = true;
      }
    }
    return reaches;
  }

  Result<Operand> evaluate(const Instruction& instruction, bool stored) {
    if (instruction.is_load()) return emit_.load(instruction);
    if (instruction.op == BodyOp::constant) {
      const HostType type = instruction.dtype;
      const double value = as_integer(instruction.value, type);
      return constant(stored ? as_stored(value, type) : value, type);
    }
    if (instruction.op == BodyOp::index) return emit_.ramp(instruction.index, instruction.dtype);
    if (instruction.op == BodyOp::checked_index) return index_below(instruction);
    std::vector<Operand> operands;
    for (const int operand : instruction.operands) operands.push_back(emit_.value(operand));
    return instruction.is_reduction() ? select_reduction(emit_, instruction, operands)
                                      : select_pointwise(emit_, instruction, operands);
  }

  // Checked where it is used: of an address the card may do so itself.
  Result<Operand> index_below(const Instruction& instruction) {
    if (instruction.operands.size() != 1)
      return emit_.refuse(
          fmt::format("'checked_index' takes one operand, found {}", instruction.operands.size()));
    Operand index = emit_.value(instruction.operands[0]);
    for (const auto& [name, value] : instruction.attributes) {
      if (name == "size") index.below = static_cast<int64_t>(value);
    }
    return index.below
               ? index
               : Result<Operand>(emit_.refuse(
                     "'checked_index' without its attribute size, the number of positions that exist"));
  }

  Result<Operand> constant(double value, HostType type) {
    const Operand number = emit_.constant(value, type);
    if (number.held == Held::kInt32 && (value < -0x1p31 || value > 0x1p31 - 1))
      return emit_.refuse(fmt::format("{:.0f} does not fit the card's 32-bit integers", value));
    return number;
  }

  const Node& node_;
  OpEmitter emit_;
};

}  // namespace

Result<DeviceGraph> select_ops(Graph graph) {
  DeviceGraph selected{static_cast<GraphBuffers&&>(graph), {}};
  for (const Node& node : graph.nodes) SPYRE_TRY(NodeSelector(selected, node, selected.nodes).run());
  // An integer that recipes also have as a float, and of which only that is read.
  eliminate_dead_code(selected);
  return selected;
}

}  // namespace spyre
