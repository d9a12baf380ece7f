#include "spyre/passes/select/mask_extents.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

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
    const auto renamed = [&](const Expr& index) {
      return rename_index_tensors(index,
                                  [&](const std::string& value) { return name_of(now[position_of(value)]); });
    };
    const std::set<std::string> scattered = node_.target_index.index_tensors();
    for (Instruction& instruction : given) {
      for (int& operand : instruction.operands) operand = now[static_cast<size_t>(operand)];
      instruction.index = renamed(instruction.index);
      const bool is_target = scattered.contains(name_of(static_cast<int>(now.size())));
      SPYRE_ASSIGN_OR_RETURN(const int at, write(std::move(instruction), is_target));
      now.push_back(at);
    }
    node_.target_index = renamed(node_.target_index);
    node_.result = now[static_cast<size_t>(node_.result)];
    for (const Loop* loop : scattering_) node_.result = or_first(node_.result, *loop);
    return Status();
  }

 private:
  // The name that index expressions know the value of an instruction by, and back.
  static std::string name_of(int value) { return fmt::format("v{}", value); }
  static size_t position_of(const std::string& value) { return std::stoul(value.substr(1)); }

  Result<int> write(Instruction instruction, bool is_target) {
    if (instruction.op == BodyOp::checked_index) {
      for (int& operand : instruction.operands)
        operand = is_target ? repeating_first(operand) : inside(operand, 0, /*reduced=*/false);
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

  // Positions of a scatter; behind the extents the first one.
  int repeating_first(int value) {
    for (const Loop& loop : node_.loops) {
      if (loop.reduced || loop.bound == kFixed || !moves(value, loop.name)) continue;
      if (std::ranges::find(scattering_, &loop) == scattering_.end()) scattering_.push_back(&loop);
      value = or_first(value, loop);
    }
    return value;
  }

  // The value, or behind the extent of a loop the one of its first iteration.
  int or_first(int value, const Loop& loop) {
    if (!moves(value, loop.name)) return value;
    const int before = inside_of(loop), first = at_first(value, loop.name);
    return append({.op = BodyOp::where, .operands = {before, value, first}, .dtype = type(value)});
  }

  // The value in the first iteration of a loop, computed again as far as it depends on it; once for each loop.
  int at_first(int value, const std::string& loop) {
    if (!moves(value, loop)) return value;
    const auto known = first_.find({value, loop});
    if (known != first_.end()) return known->second;
    Instruction instruction = node_.body[static_cast<size_t>(value)];
    for (int& operand : instruction.operands) operand = at_first(operand, loop);
    instruction.index =
        rename_index_tensors(at_zero(instruction.index, {loop}), [&](const std::string& name) {
          return name_of(at_first(static_cast<int>(position_of(name)), loop));
        });
    return first_[{value, loop}] = append(std::move(instruction));
  }

  // A sum times the reciprocal of how many elements there are, as a mean of one length has it: of those the form counted,
  // what is not an extent stays.
  Result<int> mean(Instruction instruction) {
    double counted = 1;  // besides extents
    for (const auto& [name, value] : instruction.attributes) counted /= value;
    for (const Loop& loop : node_.loops) {
      if (loop.reduced && loop.bound != kFixed) counted /= static_cast<double>(loop.extent);
    }
    const double others = std::round(counted);
    if (others < 1 || std::abs(counted - others) > 1e-6 * others) {
      return Error(ErrorKind::kUnsupported,
                   fmt::format("mask-extents: node '{}': a mean of {} times its elements", node_.name,
                               others / counted))
          .about(origin_of(node_));
    }
    const HostType wanted = instruction.dtype;
    instruction.op = BodyOp::sum;
    instruction.attributes.clear();
    const int sum = as(append(std::move(instruction)), HostType::kFloat32);
    int count = -1;
    const auto times = [&](int factor) {
      count = count < 0 ? factor : in_float32(BodyOp::mul, count, factor);
    };
    for (const Loop& loop : node_.loops) {
      if (loop.reduced && loop.bound != kFixed) times(extent(loop.bound));
    }
    if (others != 1) times(constant(others));
    return as(in_float32(BodyOp::mul, sum, in_float32(BodyOp::truediv, constant(1), count)), wanted);
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
    const auto depends = [&](int operand) { return moves(operand, loop); };
    return std::ranges::any_of(instruction.operands, depends) ||
           std::ranges::any_of(instruction.index.index_tensors(), [&](const std::string& name) {
             return depends(static_cast<int>(position_of(name)));
           });
  }

  bool folds_extent() const {
    return std::ranges::any_of(node_.loops, [](const Loop& l) { return l.reduced && l.bound != kFixed; });
  }
  HostType type(int value) const { return node_.body[static_cast<size_t>(value)].dtype; }
  int append(Instruction instruction) {
    node_.body.push_back(std::move(instruction));
    return static_cast<int>(node_.body.size()) - 1;
  }
  int constant(double value) {
    return append({.op = BodyOp::constant, .value = value, .dtype = HostType::kFloat32});
  }
  int in_float32(BodyOp op, int left, int right) {
    return append({.op = op, .operands = {left, right}, .dtype = HostType::kFloat32});
  }
  int extent(ExtentId id) {
    return append({.op = BodyOp::load, .buffer = graph_.value_of(id), .dtype = HostType::kFloat32});
  }
  int as(int value, HostType wanted) {
    if (type(value) == wanted) return value;
    return append({.op = BodyOp::to_dtype, .operands = {value}, .dtype = wanted});
  }

  const Graph& graph_;
  Node& node_;
  std::map<std::string, int> inside_;
  std::map<std::pair<int, std::string>, int> first_;
  std::vector<const Loop*>
      scattering_;  // open loops that move what the positions of the target are read from
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
