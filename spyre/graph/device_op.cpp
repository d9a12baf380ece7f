#include "spyre/graph/device_op.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "spyre/base/error.h"

namespace spyre {
namespace {

constexpr std::string_view kReduce = "reduce.";

std::string_view base_name(const Instruction& compute) {
  return std::string_view(compute.op).substr(compute.is_reduction() ? kReduce.size() : 0);
}

}  // namespace

bool is_device_op(const Node& node) {
  const Instruction* compute = nullptr;
  for (const Instruction& instruction : node.body) {
    if (instruction.is_load()) continue;
    if (compute != nullptr) return false;
    compute = &instruction;
  }
  const auto is_load = [&](int value) { return node.body[static_cast<size_t>(value)].is_load(); };
  return compute == nullptr ? !node.body.empty() && is_load(node.result)
                            : op_from_name(base_name(*compute)).has_value() &&
                                  std::all_of(compute->operands.begin(), compute->operands.end(), is_load);
}

DeviceOp device_op(const Node& node) {
  DeviceOp op;
  op.output = {node.target, node.target_index};
  const Instruction* compute = nullptr;
  std::set<std::string> index_values = node.target_index.index_tensors();
  for (const Instruction& instruction : node.body) {
    if (instruction.is_load()) {
      index_values.merge(instruction.index.index_tensors());
      continue;
    }
    SPYRE_CHECK(compute == nullptr, fmt::format("node '{}' has more than one operation", node.name));
    compute = &instruction;
  }
  for (size_t i = 0; i < node.body.size(); ++i) {
    const std::string name = fmt::format("v{}", i);
    if (index_values.contains(name))
      op.indices.emplace_back(name, Access{node.body[i].buffer, node.body[i].index});
  }
  const auto load = [&](int value) {
    const Instruction& source = node.body[static_cast<size_t>(value)];
    SPYRE_CHECK(source.is_load(), fmt::format("node '{}' has more than one operation", node.name));
    return Access{source.buffer, source.index};
  };
  if (compute == nullptr) {
    op.inputs.push_back(load(node.result));
    return op;
  }
  op.reduces = compute->is_reduction();
  const std::optional<OpId> id = op_from_name(base_name(*compute));
  SPYRE_CHECK(id.has_value(),
              fmt::format("node '{}': '{}' is an operation of the card", node.name, compute->op));
  op.op = *id;
  op.constants = compute->attributes;
  for (const int operand : compute->operands) op.inputs.push_back(load(operand));
  return op;
}

void set_device_op(const Graph& graph, Node& node, const DeviceOp& op, HostType dtype) {
  node.body.clear();
  const auto add_load = [&](const Access& access) {
    Instruction load;
    load.op = "load";
    load.buffer = access.buffer;
    load.index = access.index;
    load.dtype = graph.buffers[static_cast<size_t>(access.buffer)].dtype;
    node.body.push_back(std::move(load));
  };
  for (const auto& [name, access] : op.indices) {
    SPYRE_CHECK(name == fmt::format("v{}", node.body.size()), "index tensors are the first values");
    add_load(access);
  }
  Instruction compute;
  compute.op = fmt::format("{}{}", op.reduces ? kReduce : "", to_string(op.op));
  compute.attributes = op.constants;
  compute.dtype = dtype;
  for (const Access& input : op.inputs) {
    compute.operands.push_back(static_cast<int>(node.body.size()));
    add_load(input);
  }
  node.result = static_cast<int>(node.body.size()) - 1;
  if (op.op != OpId::identity || op.inputs.size() != 1) {
    node.result = static_cast<int>(node.body.size());
    node.body.push_back(std::move(compute));
  }
  node.target = op.output.buffer;
  node.target_index = op.output.index;
}

}  // namespace spyre
