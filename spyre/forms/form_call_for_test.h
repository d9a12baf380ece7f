#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "spyre/forms/expand.h"
#include "spyre/graph/steps_for_test.h"
#include "spyre/layout/device_layout.h"

/// What the nodes of a form compute, in doubles: for tests that state a result one can check by eye.
///
///     FormCall call("aten.cumsum.default");
///     EXPECT_EQ(call.run({call.input({3}, {3, 1, 4}), 0}, {3})[0], (std::vector<double>{3, 4, 8}));
///
/// Values do not round; what a form owes to 16 bits is for the tests on the card.
namespace spyre::forms {

class FormCall {
 public:
  explicit FormCall(std::string op) : op_(std::move(op)) {}

  TensorView input(std::vector<int64_t> size, std::vector<double> values,
                   HostType dtype = HostType::kFloat16) {
    const TensorView view = add(std::move(size), dtype, /*is_input=*/true);
    values_[view.buffer] = std::move(values);
    return view;
  }
  TensorView output(std::vector<int64_t> size, HostType dtype = HostType::kFloat16) {
    const TensorView view = add(std::move(size), dtype, /*is_input=*/false);
    graph_.results.push_back(view.buffer);
    return view;
  }
  static Argument number(double value) {
    const bool whole = value == std::floor(value);
    return Number{.value = value, .kind = whole ? Number::Kind::kInt : Number::Kind::kFloat};
  }

  /// The results, or why there are none.
  Result<std::vector<std::vector<double>>> run(std::vector<Argument> arguments,
                                               std::vector<TensorView> results) {
    const Call call{.op = op_, .arguments = std::move(arguments), .results = results};
    SPYRE_TRY(expand_call(graph_, call, "y", ""));
    SPYRE_TRY(verify(graph_));
    for (const Node& node : graph_.nodes) {
      evaluate(node);
    }
    std::vector<std::vector<double>> found;
    for (const TensorView& result : results) {
      found.push_back(values_[result.buffer]);
    }
    return found;
  }

 private:
  TensorView add(std::vector<int64_t> size, HostType dtype, bool is_input) {
    Buffer made{
        .name = is_input ? "x" : "y", .dtype = dtype, .size = size, .stride = contiguous_strides(size)};
    made.is_input = is_input;
    TensorView view{.dtype = dtype, .size = size, .stride = made.stride};
    view.buffer = graph_.add_buffer(std::move(made));
    return view;
  }

  std::vector<double>& memory(BufferId id) {
    std::vector<double>& found = values_[id];
    found.resize(static_cast<size_t>(graph_.buffers[static_cast<size_t>(id)].reach()));
    return found;
  }

  static double as_type(double value, HostType type) {
    if (type == HostType::kBool) {
      return value != 0 ? 1 : 0;
    }
    return type == HostType::kInt64 || type == HostType::kInt32 ? std::trunc(value) : value;
  }

  static double apply(const Instruction& instruction, const std::vector<double>& v) {
    const BodyOp op = instruction.op;
    static const std::map<BodyOp, std::function<double(double, double)>> kBinary = {
        {BodyOp::add, std::plus<>()},
        {BodyOp::sub, std::minus<>()},
        {BodyOp::mul, std::multiplies<>()},
        {BodyOp::truediv, std::divides<>()},
        {BodyOp::floordiv, [](double a, double b) { return std::floor(a / b); }},
        {BodyOp::remainder, [](double a, double b) { return a - b * std::floor(a / b); }},
        {BodyOp::maximum, [](double a, double b) { return std::max(a, b); }},
        {BodyOp::eq, std::equal_to<>()},
        {BodyOp::ne, std::not_equal_to<>()},
        {BodyOp::lt, std::less<>()},
        {BodyOp::le, std::less_equal<>()},
        {BodyOp::gt, std::greater<>()},
        {BodyOp::ge, std::greater_equal<>()},
        {BodyOp::logical_and, [](double a, double b) { return a != 0 && b != 0 ? 1.0 : 0.0; }},
        {BodyOp::logical_or, [](double a, double b) { return a != 0 || b != 0 ? 1.0 : 0.0; }}};
    if (const auto binary = kBinary.find(op); binary != kBinary.end()) {
      return binary->second(v[0], v[1]);
    }
    if (op == BodyOp::where) {
      return v[0] != 0 ? v[1] : v[2];
    }
    if (op == BodyOp::logical_not) {
      return v[0] == 0 ? 1 : 0;
    }
    if (op == BodyOp::floor) {
      return std::floor(v[0]);
    }
    if (op == BodyOp::neg) {
      return -v[0];
    }
    if (op == BodyOp::exp) {
      return std::exp(v[0]);
    }
    if (op == BodyOp::clamp) {
      double value = v[0];
      for (const auto& [name, bound] : instruction.attributes) {
        value = name == "min" ? std::max(value, bound) : std::min(value, bound);
      }
      return value;
    }
    if (op == BodyOp::checked_index) {
      const double size = instruction.attributes.at(0).second;
      return v[0] >= 0 && v[0] < size ? v[0] : std::numeric_limits<double>::quiet_NaN();
    }
    ADD_FAILURE() << "the tests' evaluator does not know " << to_string(op);
    return 0;
  }

  static double combine(BodyOp fold, double sum, double value) {
    if (fold == BodyOp::max) {
      return std::max(sum, value);
    }
    if (fold == BodyOp::min) {
      return std::min(sum, value);
    }
    return fold == BodyOp::any ? (sum != 0 || value != 0 ? 1 : 0) : sum + value;
  }

  static double start_of(BodyOp fold) {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    return fold == BodyOp::max ? -kInfinity : fold == BodyOp::min ? kInfinity : 0;
  }

  void evaluate(const Node& node) {
    const test::Point* point = nullptr;
    const auto fold = std::find_if(node.body.begin(), node.body.end(),
                                   [](const Instruction& i) { return i.is_reduction(); });
    const auto split = static_cast<size_t>(fold - node.body.begin());
    std::vector<double> v(node.body.size());
    const auto step = [&](size_t i) {
      const Instruction& instruction = node.body[i];
      std::vector<double> operands;
      for (const int operand : instruction.operands) {
        operands.push_back(v[static_cast<size_t>(operand)]);
      }
      if (instruction.is_load()) {
        v[i] = memory(instruction.buffer)[static_cast<size_t>(instruction.index.evaluate(*point).value())];
      } else if (instruction.op == BodyOp::constant) {
        v[i] = instruction.value;
      } else if (instruction.op == BodyOp::index) {
        v[i] = static_cast<double>(instruction.index.evaluate(*point).value());
      } else {
        const double value = instruction.op == BodyOp::to_dtype ? operands[0] : apply(instruction, operands);
        v[i] = as_type(value, instruction.dtype);
      }
    };
    double sum = 0;
    test::for_each_step(node.loops, [&](const test::Step& now) {
      point = &now.at;
      if (fold != node.body.end()) {
        double term = fold->op == BodyOp::dot ? 1 : 0;
        for (size_t i = 0; i < split; ++i) {
          step(i);
        }
        for (const int operand : fold->operands) {
          const double value = v[static_cast<size_t>(operand)];
          term = fold->op == BodyOp::dot ? term * value : value;
        }
        sum = combine(fold->op, now.first ? start_of(fold->op) : sum, term);
        if (!now.last) {
          return;
        }
        v[split] = sum;
        for (const auto& [name, factor] : fold->attributes) {
          v[split] *= name == "scaling_factor" ? factor : 1;
        }
      }
      for (size_t i = fold == node.body.end() ? 0 : split + 1; i < v.size(); ++i) {
        step(i);
      }
      memory(node.target)[static_cast<size_t>(node.target_index.evaluate(now.at).value())] =
          v[static_cast<size_t>(node.result)];
    });
  }

  std::string op_;
  Graph graph_;
  std::map<BufferId, std::vector<double>> values_;
};

}  // namespace spyre::forms
