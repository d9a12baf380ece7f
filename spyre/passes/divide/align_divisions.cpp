#include "spyre/passes/divide/align_divisions.h"

#include <algorithm>

#include "spyre/graph/core_map.h"
#include "spyre/lx/core_view.h"
#include "spyre/lx/graph_access.h"
#include "spyre/passes/divide/divide_work.h"
#include "spyre/passes/divide/division/span_reduction.h"
#include "spyre/passes/divide/division/split_rules.h"

namespace spyre {
namespace {

using lx::access_of;
using lx::core_view;
using lx::CoreView;
using lx::GraphAccess;
using lx::operand_buffer;
using lx::ViewOrReason;

bool splits_a_reduction(const NormalOp& op) {
  return std::any_of(op.access.loops.begin(), op.access.loops.end(),
                     [](const Loop& loop) { return loop.reduced && loop.split > 1; });
}

// The reader's loops, split where and as the writer's are; nothing when the two walk the buffer differently.
std::optional<std::vector<Loop>> loops_like(const NormalOp& writer, const NormalOp& reader,
                                            const DeviceAccess& read) {
  const std::vector<AccessDim>& from = writer.output().dims;
  if (from.size() != read.dims.size()) return std::nullopt;
  const std::vector<int64_t> steps = core_steps(writer);
  std::vector<Loop> loops = reader.access.loops;
  for (Loop& loop : loops) loop.split = 1, loop.step = 0;
  for (size_t d = 0; d < from.size(); ++d) {
    if (from[d].size != read.dims[d].size) return std::nullopt;
    if (from[d].loop < 0) continue;
    const Loop& theirs = writer.access.loops[static_cast<size_t>(from[d].loop)];
    if (theirs.split == 1) continue;
    if (read.dims[d].loop < 0) return std::nullopt;
    Loop& ours = loops[static_cast<size_t>(read.dims[d].loop)];
    if (ours.reduced || ours.split != 1) return std::nullopt;
    ours.split = theirs.split;
    ours.step = steps[static_cast<size_t>(from[d].loop)];
  }
  return loops;
}

class Aligner {
 public:
  Aligner(DeviceGraph& graph, GraphAccess access, int64_t cores)
      : graph_(graph), access_(std::move(access)), cores_(cores), writer_(graph.buffers.size(), -1) {}

  void run() {
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      if (may_change(n)) align(n);
      writer_[static_cast<size_t>(graph_.nodes[n].op.output.buffer)] = static_cast<int>(n);
    }
  }

 private:
  bool may_change(size_t n) const {
    const NormalOp& op = access_.ops[n];
    return !op.op.is_matmul() && op.op.indices.empty() && graph_.nodes[n].hints.empty() &&
           !splits_a_reduction(op) && !is_restickify(op);
  }

  void align(size_t n) {
    for (const size_t operand : candidates(n)) {
      const auto writer =
          static_cast<size_t>(writer_[static_cast<size_t>(operand_buffer(access_.ops[n], operand))]);
      const ViewOrReason held = view(writer, access_.ops[writer].access.operands.size() - 1);
      if (!std::holds_alternative<CoreView>(held)) continue;
      if (held == view(n, operand) || adopt(n, operand, writer, std::get<CoreView>(held))) return;
    }
  }

  // Operands that could be read from LX, the largest first.
  std::vector<size_t> candidates(size_t n) const {
    const NormalOp& op = access_.ops[n];
    std::vector<size_t> operands;
    for (size_t i = op.index_count(); i + 1 < op.access.operands.size(); ++i) {
      const BufferId id = operand_buffer(op, i);
      const int writer = writer_[static_cast<size_t>(id)];
      if (graph_.is_local(id) && writer >= 0 && !splits_a_reduction(access_.ops[static_cast<size_t>(writer)]))
        operands.push_back(i);
    }
    std::stable_sort(operands.begin(), operands.end(),
                     [&](size_t a, size_t b) { return bytes(n, a) > bytes(n, b); });
    return operands;
  }

  int64_t bytes(size_t n, size_t operand) const {
    return access_.layouts[n][operand]->byte_size().value().count();
  }

  ViewOrReason view(size_t n, size_t operand) const {
    return core_view(access_.ops[n], operand, access_.layouts[n]);
  }

  bool adopt(size_t n, size_t operand, size_t writer, const CoreView& held) {
    NormalOp changed = access_.ops[n];
    auto loops = loops_like(access_.ops[writer], changed, changed.access.operands[operand]);
    if (!loops || cores_used(*loops) < cores_used(changed.access.loops)) return false;
    changed.access.loops = *std::move(loops);
    if (core_view(changed, operand, access_.layouts[n]) != ViewOrReason(held) || !legal(n, changed))
      return false;
    access_.ops[n] = std::move(changed);
    write_back(n);
    return true;
  }

  bool legal(size_t n, const NormalOp& op) const {
    const DivisionProblem problem = division_problem(graph_, graph_.nodes[n], op, cores_);
    const auto facts = axis_facts(problem);
    const auto floors = span_floors(problem);
    if (!facts.ok() || !floors.ok()) return false;
    Splits splits;
    for (const Loop& loop : op.access.loops) splits[loop.name] = loop.split;
    return is_legal(problem, facts.value(), floors.value(), splits);
  }

  void write_back(size_t n) {
    for (const Loop& decided : access_.ops[n].access.loops) {
      for (Loop& loop : graph_.nodes[n].loops) {
        if (loop.name == decided.name) loop = decided;
      }
    }
  }

  DeviceGraph& graph_;
  GraphAccess access_;
  const int64_t cores_;
  std::vector<int> writer_;  // by buffer: the last node that wrote it
};

}  // namespace

Status align_divisions(DeviceGraph& graph, int64_t cores) {
  SPYRE_ASSIGN_OR_RETURN(GraphAccess access, access_of(graph));
  Aligner(graph, std::move(access), cores).run();
  return Status();
}

}  // namespace spyre
