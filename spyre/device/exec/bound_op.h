#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "spyre/arch/data_format.h"
#include "spyre/arch/machine.h"
#include "spyre/base/result.h"
#include "spyre/program/device_program.h"
#include "spyre/program/sdsc_record.h"

namespace spyre::exec {

using namespace program;  // NOLINT: an executor speaks of little else

inline constexpr int64_t kStick = kStickBytes.count();

/// A point of the iteration space: one coordinate per dim of the op, the rest unused.
using Coordinate = std::array<int64_t, kMaxDims>;

/// The coordinates [lower, upper) of one core along every dim.
struct Box {
  Coordinate lower{}, upper{};
  int64_t extent(int dim) const { return upper[dim] - lower[dim]; }
};

/// An op with everything known: what one execute runs. Start addresses are numbers, the work is that of this
/// launch.
///
/// Tensors are laid out for the largest value of a dynamic extent, so strides never depend on the launch; the
/// work is divided at the actual value S, ceil(S / splits) to a slice, and bundles bind start addresses to
/// match. Cores whose slice begins past the end have nothing to do.
struct BoundOp {
  const ProgramOp* op = nullptr;
  int64_t instruction = 0;                  ///< how many executes came before it in this run
  Extents extents;                          ///< as declared; they shape memory
  std::vector<int64_t> limit;               ///< extents of this launch; they bound the work
  std::span<const Tensor> tensors;          ///< of the op
  std::vector<std::vector<int64_t>> start;  ///< [tensor][core position], bytes
  std::vector<Box> boxes;                   ///< [core position]
  /// Cores that share their result, each group in ascending order of the slices of reduced dims. Every core
  /// is in one group; without a split reduced dim each group is one core.
  std::vector<std::vector<int>> groups;

  int dims() const { return static_cast<int>(op->dims.size()); }
  const Tensor& input(int i) const { return tensors[op->inputs[i]]; }
  const Tensor& output() const { return tensors[op->output]; }

  /// What a core holds of a tensor: its box, or its own slice of a relayout's tensor.
  Box held(int tensor, int core) const;
  /// "sdsc_0.json (add), instruction 3", for messages.
  std::string where() const;
};

/// The fault of a card that was driven wrongly.
Error device_fault(const BoundOp& bound, int core, uint64_t address, std::string_view what);

/// Binds symbols to values: `value_of(symbol)` pairs as an execute step evaluates them. Faults on misaligned
/// or negative start addresses and on extents outside [1, declared maximum].
using SymbolValues = std::vector<std::pair<int64_t, int64_t>>;
Result<BoundOp> bind_op(const ProgramOp& op, const SymbolValues& symbols, int64_t instruction);

/// Binds nothing but the declared extents of an op without dynamic ones: what is known before a launch.
BoundOp bind_extents_only(const ProgramOp& op);

}  // namespace spyre::exec
