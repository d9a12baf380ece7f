#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "spyre/graph/device_graph.h"
#include "spyre/graph/steps_for_test.h"
#include "spyre/layout/sen169.h"
#include "spyre/ops/formulas.h"

/// What a graph of the card's operations computes, by their rows in ops/table.def: slow, plain, and without a layout.
/// Element values are doubles whatever their type; every operation rounds to float, wraps at 32 bits or keeps nine
/// fraction bits, as the card does.
namespace spyre::test {

using Values = std::vector<double>;

inline double apply(OpId op, const Values& operands, const Values& constants) {
  using namespace formulas;
  using T = float;
  const auto at = [](const Values& values, size_t i) { return i < values.size() ? values[i] : 0.0; };
  const auto word = [&](size_t i) { return static_cast<uint32_t>(static_cast<int64_t>(at(operands, i))); };
  if (op == OpId::addi32toi32) return static_cast<int32_t>(word(0) + word(1));
  if (op == OpId::muli32toi32) return static_cast<int32_t>(word(0) * word(1));
  if (op == OpId::fp32toint32) return std::trunc(std::clamp(operands[0], -0x1p31, 0x1p31 - 1));
  if (op == OpId::fp32todl16) return fp32_from_sen169(sen169_from_fp32(static_cast<float>(operands[0])));
  if (op == OpId::int32tofp32) return static_cast<float>(operands[0]);
  if (op == OpId::dl16tofp32 || op == OpId::identity) return operands[0];
  [[maybe_unused]] const T x = static_cast<T>(at(operands, 0)), y = static_cast<T>(at(operands, 1)),
                           z = static_cast<T>(at(operands, 2));
  [[maybe_unused]] const T k0 = static_cast<T>(at(constants, 0)), k1 = static_cast<T>(at(constants, 1));
#define SPYRE_POINTWISE(name, inputs, formats, names, mask, meaning) \
  if (op == OpId::name) return static_cast<T>(meaning);
#include "spyre/ops/table.def"
  SPYRE_CHECK(false, "no meaning here for '" + std::string(to_string(op)) + "'");
}

inline double fold(OpId op, double so_far, double value) {
  const auto a = static_cast<float>(so_far), x = static_cast<float>(value);
  if (op == OpId::sum || op == OpId::mean || op == OpId::batchmatmul) return a + x;
  if (op == OpId::prod) return a * x;
  SPYRE_CHECK(op == OpId::max || op == OpId::min,
              "no meaning here for the reduction '" + std::string(to_string(op)) + "'");
  return op == OpId::max ? formulas::max(a, x) : formulas::min(a, x);
}

class DeviceRun {
 public:
  /// Runs the graph on its inputs, by name, and answers with its first result.
  static Values of(const DeviceGraph& graph, const std::map<std::string, Values>& inputs) {
    DeviceRun run(graph);
    for (size_t i = 0; i < graph.buffers.size(); ++i) {
      const Buffer& buffer = graph.buffers[i];
      Values& values = run.memory_[i];
      values.resize(static_cast<size_t>(std::max<int64_t>(buffer.reach(), 1)));
      if (buffer.is_input) values = inputs.at(buffer.name);
      if (!buffer.fill) continue;
      for (size_t e = 0; e < values.size(); ++e) {
        values[e] = buffer.fill->start + buffer.fill->step * static_cast<double>(e);
      }
    }
    for (const DeviceNode& node : graph.nodes) run.run(node);
    return run.memory_[static_cast<size_t>(graph.results[0])];
  }

 private:
  explicit DeviceRun(const DeviceGraph& graph) : memory_(graph.buffers.size()) {}

  double& element(const Access& access, const Point& at) {
    return memory_[static_cast<size_t>(access.buffer)]
                  [static_cast<size_t>(access.index.evaluate(at).value())];
  }

  void run(const DeviceNode& node) {
    const DeviceOp& op = node.op;
    Values constants;
    for (const auto& [name, value] : op.constants) constants.push_back(value);
    for_each_step(node.loops, [&](const Step& now) { step(op, constants, now); });
  }

  void step(const DeviceOp& op, const Values& constants, const Step& now) {
    Values operands;
    for (const Access& input : op.inputs) operands.push_back(element(input, now.at));
    double& result = element(op.output, now.at);
    if (!op.reduces) {
      result = apply(op.op, operands, constants);
      return;
    }
    const double value = op.is_matmul() ? operands[0] * operands[1] : operands[0];
    result = now.first ? value : fold(op.op, result, value);
    if (op.op == OpId::mean && now.last) result *= constants[0];
  }

  std::vector<Values> memory_;
};

}  // namespace spyre::test
