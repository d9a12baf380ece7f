#include "spyre/passes/select/mask_extents.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>

namespace spyre {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

bool is_whole(HostType type) {
  return type != HostType::kFloat16 && type != HostType::kBFloat16 && type != HostType::kFloat32;
}

// What a fold over it leaves as it was; none where there is no such number.
std::optional<double> neutral(BodyOp fold, HostType type) {
  switch (fold) {
    case BodyOp::sum:
    case BodyOp::mean:
    case BodyOp::dot:
    case BodyOp::any:
      return 0;
    case BodyOp::prod:
    case BodyOp::all:
      return 1;
    case BodyOp::max:
    case BodyOp::argmax:
      return type == HostType::kBool ? 0 : is_whole(type) ? -0x1p31 : -kInfinity;
    case BodyOp::min:
    case BodyOp::argmin:
      return type == HostType::kBool ? 1 : is_whole(type) ? 0x1p31 - 1 : kInfinity;
    default:
      return std::nullopt;
  }
}

// Writes the body of one node anew.
class Masker {
 public:
  Masker(const Graph& graph, Node& node) : graph_(graph), node_(node) {}

  Status run() {
    std::vector<Instruction> given = std::move(node_.body);
    node_.body.clear();
    std::vector<int> now;  // where each given instruction is
    for (Instruction& instruction : given) {
      for (int& operand : instruction.operands) operand = now[static_cast<size_t>(operand)];
      for (size_t i = now.size(); i-- > 0;) {
        instruction.index =
            rename_index_tensor(instruction.index, fmt::format("v{}", i), fmt::format("w{}", now[i]));
      }
      instruction.index = unprimed(instruction.index);
      SPYRE_ASSIGN_OR_RETURN(const int at, write(std::move(instruction)));
      now.push_back(at);
    }
    for (size_t i = now.size(); i-- > 0;) {
      node_.target_index =
          rename_index_tensor(node_.target_index, fmt::format("v{}", i), fmt::format("w{}", now[i]));
    }
    node_.target_index = unprimed(node_.target_index);
    node_.result = now[static_cast<size_t>(node_.result)];
    return Status();
  }

 private:
  Result<int> write(Instruction instruction) {
    if (instruction.op == BodyOp::checked_index) {
      for (int& operand : instruction.operands) operand = inside(operand, 0, /*reduced=*/false);
      return append(std::move(instruction));
    }
    if (!instruction.is_reduction() || !folds_extent()) return append(std::move(instruction));
    for (int& operand : instruction.operands) {
      const std::optional<double> other = neutral(instruction.op, type(operand));
      if (!other) {
        return Error(
                   ErrorKind::kUnsupported,
                   fmt::format("mask-extents: node '{}': '{}' along an extent that changes from call to call",
                               node_.name, to_string(instruction.op)))
            .about(origin_of(node_));
      }
      operand = inside(operand, *other, /*reduced=*/true);
    }
    return instruction.op == BodyOp::mean ? mean(std::move(instruction)) : append(std::move(instruction));
  }

  // A sum divided by as many elements as there are: of those the form counted, what is not the extent stays.
  int mean(Instruction instruction) {
    double factor = 1;
    for (const auto& [name, value] : instruction.attributes) factor = value;
    for (const Loop& loop : node_.loops) {
      if (loop.reduced && loop.bound != kFixed) factor *= static_cast<double>(loop.extent);
    }
    const HostType wanted = instruction.dtype;
    instruction.op = BodyOp::sum;
    instruction.attributes.clear();
    int value = as(append(std::move(instruction)), HostType::kFloat32);
    for (const Loop& loop : node_.loops) {
      if (loop.reduced && loop.bound != kFixed)
        value = append(
            {.op = BodyOp::truediv, .operands = {value, extent(loop.bound)}, .dtype = HostType::kFloat32});
    }
    if (factor != 1) {
      const int constant = append({.op = BodyOp::constant, .value = factor, .dtype = HostType::kFloat32});
      value = append({.op = BodyOp::mul, .operands = {value, constant}, .dtype = HostType::kFloat32});
    }
    return as(value, wanted);
  }

  // The value, or the other one behind the extents of the folded or of the other loops.
  int inside(int value, double otherwise, bool reduced) {
    for (const Loop& loop : node_.loops) {
      if (loop.reduced != reduced || loop.bound == kFixed || !moves(value, loop.name)) continue;
      const int before = inside_of(loop);
      const HostType held = type(value);
      const int other = append({.op = BodyOp::constant, .value = otherwise, .dtype = held});
      value = append({.op = BodyOp::where, .operands = {before, value, other}, .dtype = held});
    }
    return value;
  }

  // Whether a position of a loop is before its extent; once for each loop.
  int inside_of(const Loop& loop) {
    const auto known = inside_.find(loop.name);
    if (known != inside_.end()) return known->second;
    const int position =
        append({.op = BodyOp::index, .index = Expr::symbol(loop.name), .dtype = HostType::kFloat32});
    const int before =
        append({.op = BodyOp::lt, .operands = {position, extent(loop.bound)}, .dtype = HostType::kBool});
    return inside_[loop.name] = before;
  }

  // Whether a value depends on a loop. What does not is the same behind the extent, but a fold would count it.
  bool moves(int value, const std::string& loop) const {
    const Instruction& instruction = node_.body[static_cast<size_t>(value)];
    const bool is_folded =
        std::ranges::any_of(node_.loops, [&](const Loop& l) { return l.reduced && l.name == loop; });
    if (is_folded || instruction.index.symbols().contains(loop)) return true;
    return std::ranges::any_of(instruction.operands, [&](int operand) { return moves(operand, loop); });
  }

  bool folds_extent() const {
    return std::ranges::any_of(node_.loops, [](const Loop& l) { return l.reduced && l.bound != kFixed; });
  }
  HostType type(int value) const { return node_.body[static_cast<size_t>(value)].dtype; }
  int append(Instruction instruction) {
    node_.body.push_back(std::move(instruction));
    return static_cast<int>(node_.body.size()) - 1;
  }
  int extent(ExtentId id) {
    return append({.op = BodyOp::load, .buffer = graph_.value_of(id), .dtype = HostType::kFloat32});
  }
  int as(int value, HostType wanted) {
    if (type(value) == wanted) return value;
    return append({.op = BodyOp::to_dtype, .operands = {value}, .dtype = wanted});
  }
  Expr unprimed(Expr index) const {
    for (const std::string& name : index.index_tensors()) {
      if (name.starts_with('w')) index = rename_index_tensor(index, name, "v" + name.substr(1));
    }
    return index;
  }

  const Graph& graph_;
  Node& node_;
  std::map<std::string, int> inside_;
};

}  // namespace

Status mask_extents(Graph& graph) {
  for (Node& node : graph.nodes) {
    if (std::ranges::none_of(node.loops, [](const Loop& loop) { return loop.bound != kFixed; })) continue;
    SPYRE_TRY(Masker(graph, node).run());
  }
  return Status();
}

}  // namespace spyre
