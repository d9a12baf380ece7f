#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "spyre/arch/data_format.h"
#include "spyre/layout/fill.h"
#include "spyre/ops/ops.h"

/// A compiled kernel as the card sees it: plain data, every name resolved, nothing left to look up in text.
///
///     bundle directory  --read_program-->  DeviceProgram  --exec-->  bytes in device memory
///
/// A program is a list of `ProgramOp`s (one per sdsc file) and a small tree of steps that executes them, in
/// loops where the bundle has loops. Start addresses and dynamic extents are *symbols* of the op; each
/// execute step binds them to linear forms over launch parameters, the pool and loop counters. The same op
/// may be executed by several steps with different bindings, so symbols are never global.
///
/// Vocabulary. A *dim* is one dimension of an op's iteration space, an index into `ProgramOp::dims`. A
/// *coordinate* is one integer per dim. A *stick* is 128 bytes; the *lane* is the position of an element in
/// it.
namespace spyre::program {

// ---------------------------------------------------------------------------------------------------------
// Values that are known only at launch.

/// What a linear form may depend on.
enum class AtomSource : uint8_t {
  kParameter,  ///< launch parameter `index`, in signature order: an address or a dynamic extent
  kPool,       ///< base address of the bundle's own intermediates pool
  kLoop,       ///< counter of loop `index` (numbered in order of appearance)
};

struct Atom {
  AtomSource kind = AtomSource::kParameter;
  int index = 0;
  friend auto operator<=>(const Atom&, const Atom&) = default;
};

/// constant + sum of coefficient * atom. Everything a bundle computes (constants, additions, affine maps) has
/// this form. Terms are sorted by atom, each atom once, no coefficient zero: equal forms compare equal.
struct LinearForm {
  struct Term {
    Atom atom;
    int64_t coefficient = 0;
    friend bool operator==(const Term&, const Term&) = default;
  };
  int64_t constant = 0;
  std::vector<Term> terms;
  friend bool operator==(const LinearForm&, const LinearForm&) = default;
};

// ---------------------------------------------------------------------------------------------------------
// One op.

/// One dimension of the iteration space.
struct ProgramDim {
  std::string label;              ///< as in the artifact (`mb`, `out`, `c0`); for messages, never for meaning
  int64_t extent = 1;             ///< N_: padded total extent; the maximum where the extent is dynamic
  int64_t splits = 1;             ///< number of core slices; divides `extent`
  std::optional<int64_t> symbol;  ///< id of the symbol that carries the actual extent at launch
  friend bool operator==(const ProgramDim&, const ProgramDim&) = default;
};

enum class Residence : uint8_t {
  kHbm,  ///< device memory, shared by all cores (the label is historical; the memory is LPDDR5)
  kLx,   ///< each core's own scratchpad
};
std::string_view to_string(Residence residence);

/// Sliding window along one dim of an input (pool, conv): input coordinate
/// `g(dim) * stride - pad_front + g(window_dim) * dilation`; coordinates outside [0, input_extent) read as
/// zero.
struct Window {
  int window_dim = -1;
  int64_t stride = 1, dilation = 1;
  int64_t pad_front = 0;
  int64_t input_extent = 0;
  friend bool operator==(const Window&, const Window&) = default;
};

/// One dim of a tensor, in memory order.
struct TensorDim {
  int dim = 0;      ///< index into ProgramOp::dims
  int scale = 1;    ///< 1: present; -1: absent (broadcast or reduced); -2: absent and the op's stick dim
  int64_t gap = 0;  ///< physical extent minus iteration extent, in elements (negative: a shortfall)
  bool gap_declared = false;  ///< the artifact has a gap entry for this dim
  int64_t per_stick = 1;      ///< elements of this dim in one stick; 1 for a non-stick dim
  std::optional<Window> window;
  bool indexed = false;      ///< coordinate comes from the index tensor, see Indirection
  bool index_outer = false;  ///< outer dim of a multi-dimensional index: the index value already covers it

  // Resolved for the declared extents by `resolve_strides`.
  int64_t extent = 1;  ///< steps along this dim in memory: sticks for a stick dim, 1 if absent
  int64_t stride = 0;  ///< elements from one step to the next, 0 if absent
  friend bool operator==(const TensorDim&, const TensorDim&) = default;
};

/// One digit of the lane number, innermost first. Normally a stick is one entry {dim, 64}. Weights of an fp8
/// matmul have {in, 2}, {out, 64}: lane = 2 * (out mod 64) + in mod 2. A dim may appear twice.
struct StickDigit {
  int dim = 0;
  int64_t size = 1;
  int64_t divisor =
      1;  ///< elements of the dim that inner digits already count; the digit is c / divisor mod size
  bool present = true;  ///< false: the dim is absent from the tensor, the digit is 0
  friend bool operator==(const StickDigit&, const StickDigit&) = default;
};

/// Where a tensor starts for one core: a byte address, or a symbol bound by the execute step.
struct CoreStart {
  bool symbolic = false;
  int64_t value = 0;  ///< byte address, or (negative) symbol id
  friend bool operator==(const CoreStart&, const CoreStart&) = default;
};

/// How a value tensor is addressed through an index tensor: the coordinate along its indexed dim is
/// `index * page + g mod page`.
struct Indirection {
  int index_tensor = 0;  ///< position in ProgramOp::tensors
  int64_t page = 1;
  friend bool operator==(const Indirection&, const Indirection&) = default;
};

/// One tensor operand.
///
/// The element at coordinate g, for the core that owns g (l = g minus the first coordinate of its slice):
///
///     step(d) = l(d) div per_stick(d)          0 where scale(d) < 0
///     lane    = digits of l along the stick     0 for digits of absent dims; then lane_of[lane] if given
///     element = lane + sum over dims step(d) * stride(d)
///     address = start(core) + element * bits / 8
///
/// Strides come from the total extents for HBM tensors and from the per-core extents for LX tensors.
struct Tensor {
  std::string name;
  DataFormat format = DataFormat::INVALID;
  Residence residence = Residence::kHbm;
  std::vector<TensorDim> dims;    ///< innermost first; the lanes of the stick come before the first
  std::vector<StickDigit> stick;  ///< innermost first
  std::vector<int32_t> lane_of;   ///< order inside the stick where it is not the standard one; else empty
  std::vector<CoreStart> start;   ///< one per entry of ProgramOp::cores
  std::optional<Indirection> through;  ///< set on the value tensor of a gather or scatter
  bool is_index = false;               ///< read only to find elements of another tensor
  /// For a relayout only: slice[core position][dim], what each core holds of this tensor, and the number of
  /// slices per dim. Empty: as the op itself.
  std::vector<std::vector<int64_t>> own_slices;
  std::vector<int64_t> own_splits;

  int64_t lanes() const;  ///< elements in one stick
  const TensorDim* find(int dim) const;
  bool present(int dim) const;  ///< has the dim with scale 1
  friend bool operator==(const Tensor&, const Tensor&) = default;
};

/// A constant of the op, decoded.
struct Constant {
  std::string name;
  DataFormat format = DataFormat::INVALID;
  uint32_t bits = 0;
  float value = 0;
  friend bool operator==(const Constant&, const Constant&) = default;
};

/// Coordinates [start, start + count) of `dim` read as `value`, whatever memory holds.
struct Mask {
  int dim = 0;
  int64_t start = 0, count = 0;
  float value = 0;
  friend bool operator==(const Mask&, const Mask&) = default;
};

/// One core's share: its id and its slice index along every dim.
struct CoreWork {
  int core = 0;
  std::vector<int64_t> slice;
  friend bool operator==(const CoreWork&, const CoreWork&) = default;
};

/// One device operation: what `sdsc_N.json` says.
struct ProgramOp {
  std::string file;                         ///< where it came from, for messages
  std::string name;                         ///< op function name, `sumnonstick`
  const OpInfo* info = nullptr;             ///< its row; never null in a program that was read
  bool nonstick = false;                    ///< the variant of a reduction over a non-stick dim
  DataFormat format = DataFormat::INVALID;  ///< of the op; the format of its constants
  std::vector<ProgramDim> dims;
  std::vector<CoreWork> cores;
  std::vector<Tensor> tensors;
  std::vector<int> inputs;  ///< data inputs in operand order; a reduction's accumulator slot is left out
  int output = 0;
  std::vector<Constant> constants;
  std::vector<float> k;  ///< the constants the row names, in the row's order
  std::vector<Mask> masks;

  /// Coordinates of one slice along a dim.
  int64_t slice_extent(int dim) const { return dims[dim].extent / dims[dim].splits; }
  friend bool operator==(const ProgramOp&, const ProgramOp&) = default;
};

/// Extents of the iteration space, one entry per dim.
struct Extents {
  std::vector<int64_t> total;
  std::vector<int64_t> per_core;  ///< of one slice
  friend bool operator==(const Extents&, const Extents&) = default;
};

/// The extents the artifact states: the maximum for dynamic dims.
Extents declared_extents(const ProgramOp& op);

/// Fills `extent` and `stride` of the tensor's dims: from the total extents in HBM, from one slice in LX.
void resolve_strides(Tensor& tensor, const Extents& extents);
/// The same for every tensor, for the declared extents.
void resolve_strides(ProgramOp& op);

/// What start addresses are multiples of: a stick; one element for index tensors, of which a core may have
/// less than a stick.
int64_t start_alignment(const Tensor& tensor);

/// Elements from the first to past the last of the tensor (in LX: of one core's part), padding and gaps
/// included.
int64_t allocated_elements(const Tensor& tensor);

// ---------------------------------------------------------------------------------------------------------
// The bundle.

struct Step;

/// Runs one op with its symbols bound.
struct Execute {
  struct Binding {
    int64_t symbol = 0;  ///< negative id as in the artifact
    LinearForm value;
    friend bool operator==(const Binding&, const Binding&) = default;
  };
  int op = 0;  ///< index into DeviceProgram::ops
  std::vector<Binding> bindings;
  friend bool operator==(const Execute&, const Execute&) = default;
};

/// for counter = lower; counter < upper; counter += step: body.
struct ProgramLoop {
  int counter = 0;
  LinearForm lower, upper, step;
  std::vector<Step> body;
  friend bool operator==(const ProgramLoop&, const ProgramLoop&) = default;
};

struct Step {
  std::variant<Execute, ProgramLoop> what;
  friend bool operator==(const Step&, const Step&) = default;
};

enum class ParameterKind : uint8_t {
  kAddress,  ///< byte address of a tensor, or of the pool
  kExtent,   ///< a dynamic extent or trip count
};

/// One value the caller passes, in signature order.
struct Parameter {
  std::string name;  ///< as in the signature, without the %
  ParameterKind kind = ParameterKind::kAddress;
  std::optional<int> arg_index;  ///< of `%arg_<i>_base_addr`; none for the pool and for extents
  bool is_pool = false;          ///< the caller's own pool
  std::optional<int64_t> granularity, max_value;
  friend bool operator==(const Parameter&, const Parameter&) = default;
};

/// What launch_spec.json says about one tensor argument.
struct LaunchArg {
  int arg_index = 0;
  std::string role;                                       ///< input, output, input_output, constant
  std::vector<std::variant<int64_t, std::string>> shape;  ///< sizes, or names of dynamic ones
  std::string dtype;
  std::vector<int64_t> stride;       ///< of the host view, in elements; empty: row by row
  int64_t offset = 0;                ///< of its first element in the storage that the layout describes
  int64_t storage = 0;               ///< elements of that storage; 0: as many as the view reaches
  std::optional<Fill> fill;          ///< of a constant, which no caller passes
  std::vector<int64_t> device_size;  ///< outermost first, lanes last; empty if not stated
  std::vector<int64_t> stride_map;   ///< host elements per step along each, -1: none; empty if not stated
  std::optional<DataFormat> device_format;
  ElementArrangement arrangement = ElementArrangement::STANDARD;

  bool is_constant() const { return fill.has_value(); }
  friend bool operator==(const LaunchArg&, const LaunchArg&) = default;
};

struct LaunchSpec {
  std::string kernel_name;
  int64_t pool_size = 0;
  std::vector<LaunchArg> args;
  friend bool operator==(const LaunchSpec&, const LaunchSpec&) = default;
};

struct DeviceProgram {
  std::vector<Parameter> parameters;
  int64_t pool_bytes = 0;  ///< of the pool the bundle asks for itself; 0: none, or passed by the caller
  int loop_count = 0;      ///< loops are numbered 0 .. loop_count - 1
  std::vector<ProgramOp> ops;
  std::vector<Step> steps;
  std::optional<LaunchSpec> launch;
  friend bool operator==(const DeviceProgram&, const DeviceProgram&) = default;
};

}  // namespace spyre::program
