#include "spyre/passes/divide/divide_work.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "spyre/base/log.h"
#include "spyre/graph/normal_op.h"
#include "spyre/passes/divide/division/choose_splits.h"
#include "spyre/passes/layout/assign_layouts.h"

namespace spyre {
namespace {

DivisionTensor tensor_of(const DeviceGraph& graph, const Access& access, const DeviceAccess& device,
                         const std::vector<Loop>& loops) {
  const Buffer& buffer = graph.buffers[static_cast<size_t>(access.buffer)];
  return {.name = buffer.name,
          .device_size = device.device_size(),
          .coordinates = device.coordinates(loops),
          .itemsize = bits_of(buffer.layout->device_dtype) / 8};
}

// Loops that a gather or scatter shares between entries: no core may own a part of them.
void keep_tables_whole(const NormalOp& op, DivisionProblem& problem) {
  if (op.op.indices.empty()) return;
  const bool scatters = !op.op.output.index.index_tensors().empty();
  for (size_t i = 0; i < op.access.loops.size(); ++i) {
    const int loop = static_cast<int>(i);
    const bool entry = op.index(0).uses(loop);
    if (scatters || !entry || op.input(0).uses(loop)) problem.blocked.insert(op.access.loops[i].name);
  }
}

// Nothing pads a stick of indices: a core reads whole ones, or a piece that does not run over into the next.
void keep_indices_in_sticks(const NormalOp& op, DivisionProblem& problem) {
  for (size_t i = 0; i < op.op.indices.size(); ++i) {
    const DeviceAccess& index = op.index(i);
    if (index.lane < 0) continue;
    const Loop& loop = op.access.loops[static_cast<size_t>(index.lane)];
    std::vector<int64_t> factors;
    for (int64_t factor = 1; factor <= std::min(loop.extent, problem.cores); ++factor) {
      const int64_t piece = loop.extent / factor;
      const bool fits = piece % index.lanes == 0 || index.lanes % piece == 0;
      if (loop.extent % factor == 0 && (factor == 1 || fits)) factors.push_back(factor);
    }
    problem.allowed[loop.name] = factors;
  }
}

// Turning a stick handles squares of whole sticks; a dimension that ends inside one is done by one core.
void keep_ragged_turns_whole(const NormalOp& op, DivisionProblem& problem) {
  if (!is_restickify(op)) return;
  for (const DeviceAccess* side : {&op.input(0), &op.output()}) {
    if (side->lane < 0) continue;
    const Loop& loop = op.access.loops[static_cast<size_t>(side->lane)];
    if (loop.extent % side->lanes != 0) problem.blocked.insert(loop.name);
  }
}

// The loop along an interleaved stick is cut anew wherever the node is looked at: its parts have no place to keep a
// split.
void keep_woven_whole(const DeviceNode& node, const NormalOp& op, DivisionProblem& problem) {
  if (!op.access.indices.empty()) return;
  for (const Loop& loop : op.access.loops) {
    const bool kept = std::any_of(node.loops.begin(), node.loops.end(),
                                  [&](const Loop& whole) { return whole.name == loop.name; });
    if (!kept) problem.blocked.insert(loop.name);
  }
}

// Widened elements alternate over pairs of sticks; a core owns whole pairs.
void keep_pairs_together(const DeviceGraph& graph, const DeviceNode& node, const NormalOp& op,
                         DivisionProblem& problem) {
  constexpr int64_t kPair = 64;
  const std::vector<const DeviceLayout*> layouts = operand_layouts(graph, node);
  for (size_t i = 0; i < layouts.size(); ++i) {
    const int lane = op.access.operands[i].lane;
    if (lane < 0 || layouts[i]->element_arrangement != ElementArrangement::DL16_TO_FP32) continue;
    const Loop& loop = op.access.loops[static_cast<size_t>(lane)];
    const int64_t pairs = (loop.extent + kPair - 1) / kPair;
    std::vector<int64_t> factors;
    for (int64_t factor = 1; factor <= std::min(pairs, problem.cores); ++factor) {
      if (pairs % factor == 0) factors.push_back(factor);
    }
    problem.allowed[loop.name] = factors;
  }
}

}  // namespace

DivisionProblem division_problem(const DeviceGraph& graph, const DeviceNode& node, const NormalOp& op,
                                 int64_t cores) {
  DivisionProblem problem{.op = fmt::format("{} ({})", node.name, to_string(op.op.op)), .cores = cores};
  problem.role = op.op.is_matmul() ? OpRole::kMatmul
                 : op.op.reduces   ? OpRole::kReduction
                                   : OpRole::kPointwise;
  for (const Loop& loop : op.access.loops)
    problem.axes.push_back({.name = loop.name, .extent = loop.extent, .granularity = {}});
  for (size_t i = 0; i < op.op.indices.size(); ++i) {
    problem.tensors.push_back(tensor_of(graph, op.op.indices[i].second, op.index(i), op.access.loops));
  }
  for (size_t i = 0; i < op.op.inputs.size(); ++i) {
    problem.tensors.push_back(tensor_of(graph, op.op.inputs[i], op.input(i), op.access.loops));
  }
  problem.tensors.push_back(tensor_of(graph, op.op.output, op.output(), op.access.loops));
  for (const auto& hint : node.hints) {
    if (problem.find_axis(hint.first) != nullptr) problem.hints.push_back(hint);
  }
  keep_tables_whole(op, problem);
  keep_indices_in_sticks(op, problem);
  keep_ragged_turns_whole(op, problem);
  keep_woven_whole(node, op, problem);
  keep_pairs_together(graph, node, op, problem);
  return problem;
}

namespace {

// The hint that cannot be followed: the first that is refused by itself, else the last, which the others rule
// out.
size_t culprit_among(const DivisionProblem& problem) {
  for (size_t i = 0; i < problem.hints.size(); ++i) {
    DivisionProblem alone = problem;
    alone.hints = {problem.hints[i]};
    if (!choose_splits(alone).ok()) return i;
  }
  return problem.hints.size() - 1;
}

// The first hint that a division does not follow, because with others it would take more cores than there
// are.
std::optional<size_t> left_out(const DivisionProblem& problem, const Splits& splits) {
  for (size_t i = 0; i < problem.hints.size(); ++i) {
    if (split_of(splits, problem.hints[i].first) != problem.hints[i].second) return i;
  }
  return std::nullopt;
}

// Divides with the hints that can be followed. Those that cannot are noted, and the node forgets them.
Result<Splits> divide_as_hinted(DivisionProblem problem, DeviceNode& node,
                                std::vector<RefusedHint>& refused) {
  while (!problem.hints.empty()) {
    Result<Splits> splits = choose_splits(problem);
    std::optional<size_t> culprit;
    std::string reason;
    if (splits.ok()) {
      culprit = left_out(problem, splits.value());
      if (!culprit) return splits;
      const auto& [axis, split] = problem.hints[*culprit];
      reason = fmt::format("op '{}': work_div hint {}={} would take more than the {} cores", problem.op, axis,
                           split, problem.cores);
    } else {
      culprit = culprit_among(problem);
      const Error& error = splits.error();
      reason = error.message + (error.hint.empty() ? "" : "; try " + error.hint);
    }
    log(LogLevel::kWarning, "passes", fmt::format("{}. The work is divided without this hint", reason));
    const auto hint = problem.hints.begin() + static_cast<std::ptrdiff_t>(*culprit);
    refused.push_back({node.name, hint->first, hint->second, std::move(reason)});
    std::erase(node.hints, *hint);
    problem.hints.erase(hint);
  }
  return choose_splits(problem);
}

}  // namespace

Result<std::vector<RefusedHint>> divide_work(DeviceGraph& graph, int64_t cores) {
  std::vector<RefusedHint> refused;
  for (DeviceNode& node : graph.nodes) {
    if (node.loops.empty()) continue;
    SPYRE_ASSIGN_OR_RETURN(const NormalOp op, normal_form(graph, node));
    const Result<Splits> splits = divide_as_hinted(division_problem(graph, node, op, cores), node, refused);
    if (!splits.ok()) return Error(splits.error()).about(origin_of(node));
    for (Loop& loop : node.loops) loop.split = split_of(splits.value(), loop.name);
  }
  return refused;
}

}  // namespace spyre
