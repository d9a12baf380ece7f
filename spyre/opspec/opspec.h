#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "spyre/arch/data_format.h"
#include "spyre/graph/expr.h"
#include "spyre/layout/fill.h"
#include "spyre/ops/ops.h"

/// A kernel in which everything is decided: which op functions run in which order, over which extents, cut
/// into how many slices, on which core, with every tensor's device layout and place. Code generators only
/// translate.
///
///     Kernel ─┬─ LaunchArgument*   what the caller passes
///             └─ OpSpec | LoopSpec, in execution order
///                  └─ TensorArg*   inputs in operand order, the output last
///
/// All of these are plain values; text.h prints them and reads them back, validate.h says what is allowed.
namespace spyre {

/// One loop of an op's iteration space.
struct IterationDim {
  std::string symbol;   ///< the name coordinates use, e.g. `c0`
  int64_t extent = 0;   ///< elements, unpadded; the largest value when the extent is dynamic
  int64_t split = 1;    ///< into how many slices the cores cut it
  std::string dynamic;  ///< name of a runtime extent (`s0`), empty when fixed

  friend bool operator==(const IterationDim&, const IterationDim&) = default;
};

/// Where a tensor lives. Its value depends on the kind:
///  - kHbm:     index of the launch argument that brings the address,
///  - kLx:      byte address in every core's scratchpad,
///  - kHbmPool: byte offset in the kernel's pool of intermediates.
enum class Place : uint8_t { kHbm, kLx, kHbmPool };
std::string_view to_string(Place place);

struct Allocation {
  Place place = Place::kHbm;
  int64_t value = 0;

  friend bool operator==(const Allocation&, const Allocation&) = default;
};

/// Which slice of one dimension a core holds: slice `owner(core_id)` of `split`.
struct WorkDivision {
  std::string symbol;
  int64_t split = 1;
  Expr owner;

  friend bool operator==(const WorkDivision&, const WorkDivision&) = default;
};

/// One operand. `device_size` and `device_coordinates` are parallel, outermost first; the last entry is the
/// lane inside a stick:
///
///     X(4, 128) fp16, stick on columns:   size [2, 4, 64]   coordinates [floor(c1/64), c0, Mod(c1, 64)]
///
/// A stick dimension appears twice, as a tile coordinate and as the lane. A constant term is a slice offset,
/// a coordinate 0 a collapsed or broadcast dimension, IndirectAccess('i') a value read from index tensor `i`.
struct TensorArg {
  std::string name;
  bool is_input = true;
  DataFormat format = DataFormat::SEN169_FP16;
  std::vector<int64_t> device_size;
  std::vector<Expr> device_coordinates;
  Allocation allocation;
  ElementArrangement arrangement = ElementArrangement::STANDARD;
  std::optional<Expr> tile_advance;  ///< device elements per step of each tiled symbol; none outside loops
  std::vector<WorkDivision> work_division;  ///< own core ownership, only for `shuffle`
  bool kernel_local = false;                ///< nothing outside this kernel reads it

  /// Position among the launch arguments, -1 for a tensor in LX or in the pool.
  int64_t arg_index() const { return allocation.place == Place::kHbm ? allocation.value : -1; }

  friend bool operator==(const TensorArg&, const TensorArg&) = default;
};

/// Geometry of a window op (pool, conv). `i` is the vertical direction, `j` the horizontal one.
struct WindowParams {
  int64_t stride_i = 1, stride_j = 1;
  int64_t kernel_h = 1, kernel_w = 1;
  int64_t pad_i = 0, pad_j = 0;  ///< zero rows / columns on each side
  int64_t dilation_i = 1, dilation_j = 1;

  friend bool operator==(const WindowParams&, const WindowParams&) = default;
};

/// Largest value and step of something known only at run time.
struct SymbolBound {
  int64_t max = 0;
  int64_t granularity = 1;

  friend bool operator==(const SymbolBound&, const SymbolBound&) = default;
};

/// Where an op comes from. Carried through to the artifact, never interpreted.
struct DebugHandle {
  int64_t id = 0;
  std::string file;
  int64_t start_line = 0, start_col = 0, end_line = 0, end_col = 0;
  std::string aten_op;
  std::vector<std::string> ir_chain, fused_from, transform_history;

  friend bool operator==(const DebugHandle&, const DebugHandle&) = default;
};

/// One device operation.
struct OpSpec {
  OpId op = OpId::identity;
  bool is_reduction = false;  ///< true for reductions, matmul, conv, pool, topk
  /// Order matters, dimension labels are positional. Pointwise: output loops. Reduction: output loops, then
  /// the reduced one. Matmul: batch, M, N, K.
  std::vector<IterationDim> iteration_space;
  /// Which slice of each dimension core `core_id` works on.
  std::vector<std::pair<std::string, Expr>> core_id_to_work_slice;
  std::vector<TensorArg> args;  ///< index tensors, inputs, output
  std::vector<std::pair<std::string, double>> constants;
  std::optional<WindowParams> window;
  /// Symbols advanced by each enclosing loop, innermost loop first; one entry per loop, empty: invariant.
  std::vector<std::vector<std::string>> tiled_symbols;
  std::vector<std::pair<std::string, int64_t>> tiled_symbol_trip_counts;
  std::vector<std::pair<std::string, SymbolBound>> symbolic_dim_bounds;
  std::vector<int64_t> node_output_ranges;  ///< full NCHW output, pool and conv only
  /// Of a shuffle, the cores that hold its input, and how many hold its result afterwards; none, 0: those
  /// that work.
  std::vector<int64_t> completed_producer_cores;
  int64_t receiving_cores = 0;
  std::optional<DebugHandle> debug_handle;

  const TensorArg& output() const { return args.back(); }

  friend bool operator==(const OpSpec&, const OpSpec&) = default;
};

struct LoopSpec;
using KernelItem = std::variant<OpSpec, LoopSpec>;

/// A counted loop around part of a kernel. The count is fixed, or a runtime extent divided by its
/// granularity.
struct LoopSpec {
  int64_t count = 0;         ///< trips; for a runtime count the largest
  std::string count_symbol;  ///< name of the runtime extent, empty when fixed
  SymbolBound bound;         ///< of the runtime extent
  std::vector<KernelItem> body;

  friend bool operator==(const LoopSpec& a, const LoopSpec& b);
};

/// What the kernel does with a launch argument. A constant is not passed at all: whoever loads the kernel makes
/// it, from its fill.
enum class ArgumentRole : uint8_t { kInput, kOutput, kInputOutput, kConstant };
std::string_view to_string(ArgumentRole role);

/// A size that is either a number or the name of a runtime extent.
using SizeOrSymbol = std::variant<int64_t, std::string>;

/// What is at one position of a launch: the host view and the device layout behind it.
struct LaunchArgument {
  int64_t index = 0;
  ArgumentRole role = ArgumentRole::kInput;
  std::string dtype;  ///< host type, e.g. `float16`
  std::vector<SizeOrSymbol> shape;
  std::vector<int64_t> stride;  ///< of the host view, in elements; empty: row by row
  int64_t offset = 0;           ///< of its first element in the storage that the layout describes
  int64_t storage = 0;          ///< elements of that storage; 0: as many as the view reaches
  std::optional<Fill> fill;     ///< of a constant
  std::vector<int64_t> device_size;
  std::vector<int64_t> stride_map;  ///< host stride behind each device dimension, -1: none
  DataFormat format = DataFormat::SEN169_FP16;
  ElementArrangement arrangement = ElementArrangement::STANDARD;

  friend bool operator==(const LaunchArgument&, const LaunchArgument&) = default;
};

/// One launchable unit.
struct Kernel {
  std::string name;
  int64_t pool_bytes = 0;  ///< intermediates that live in device memory
  std::vector<LaunchArgument> arguments;
  std::vector<KernelItem> body;

  friend bool operator==(const Kernel&, const Kernel&) = default;
};

/// The core map upstream uses: dimensions in iteration order, the first varying fastest with the core number;
/// for a matmul the last one (K) comes first, so that cores which share a sum are neighbours on the ring.
///
///     {m: 2, n: 1, k: 2}, matmul   ->   {m: Mod(floor(core_id/2), 2), n: 0, k: Mod(core_id, 2)}
std::vector<std::pair<std::string, Expr>> default_core_map(const std::vector<IterationDim>& space,
                                                           bool matmul);

/// The slice of a core when neighbouring slices are `step` cores apart.
Expr work_slice(int64_t step, int64_t split);

/// Cores that take part: the product of all splits.
int64_t cores_used(const OpSpec& op);

}  // namespace spyre
