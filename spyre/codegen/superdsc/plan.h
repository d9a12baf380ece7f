#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "spyre/arch/machine.h"
#include "spyre/base/result.h"
#include "spyre/ops/ops.h"
#include "spyre/opspec/opspec.h"

/// One op between OpSpec and JSON: every number of the artifact computed, nothing written yet.
///
/// The steps run in this order, one file each; later ones read what earlier ones decided:
///
///     dim_labels     iteration symbols get their labels: mb, x, ..., out
///     tensor_dims    device coordinates become an order of dimensions, innermost first, and a stick
///     injected_dims  dimensions that the artifact needs and the iteration space lacks
///     padding        stick extents are rounded up to whole sticks
///     scales         absent dimensions are listed too, as broadcast, reduced, or one stick each
///     physical       strides, gaps, slice offsets; then every size and alignment rule is checked
///     layout_class   tensors with the same stick and the same set of dimensions share a label
///     constants      op constants and the masking value as bit patterns
///     op_shape       whether the card takes it: the rules its reader has
namespace spyre::superdsc {

/// One dimension of the artifact's iteration space.
struct Dim {
  std::string label;
  std::string symbol;   ///< of the OpSpec; empty for an injected dimension
  int64_t logical = 1;  ///< unpadded extent
  int64_t extent = 1;   ///< padded extent, N_ of the artifact
  int64_t split = 1;
  std::string dynamic;  ///< name of a runtime extent
  SymbolBound bound;    ///< of the runtime extent
  bool window = false;  ///< ki or kj: moves inside a pooling or convolution window

  int64_t per_core() const { return extent / split; }
};

/// Part of a stick along one dimension. Ordinary sticks have one part; fp8 weights have two, innermost first.
struct StickPart {
  int dim = 0;
  int64_t size = 0;

  friend bool operator==(const StickPart&, const StickPart&) = default;
};

/// One dimension of one tensor. Positions are counted in *steps*: elements, or whole stick parts along a
/// dimension of the stick.
struct TensorDim {
  int dim = 0;
  int scale = 1;          ///< 1 present; -1 broadcast or reduced; -2 one stick for the whole dimension
  int64_t steps = 1;      ///< physically there
  int64_t offset = 0;     ///< steps skipped by a slice
  int64_t stride = 0;     ///< elements from one step to the next, in device memory
  int64_t gap = 0;        ///< physical minus iterated extent, in elements
  int64_t max_size = -1;  ///< page size of an indexed dimension, extent of an outer index dimension, else -1
};

enum class Indirection : uint8_t { kNone, kIndex, kValue };

struct Tensor {
  const TensorArg* arg = nullptr;
  int64_t lanes = 0;             ///< elements per stick
  int64_t word_length = 0;       ///< bytes per element
  std::vector<TensorDim> dims;   ///< innermost first
  std::vector<StickPart> stick;  ///< its own, or the op's when it stores one stick per position
  bool own_stick = false;
  Indirection indirection = Indirection::kNone;
  int partner = -1;    ///< the tensor at the other end of an indirection
  std::string layout;  ///< label of the layout class

  const TensorDim* find(int dim) const;
  TensorDim* find(int dim);
  /// Size of the stick part along a dimension, 1 when it is not in the stick.
  int64_t part(int dim) const;
  bool in_lx() const { return arg->allocation.place == Place::kLx; }
};

struct LayoutClass {
  std::string label;
  std::vector<int> dims;
  std::vector<StickPart> stick;
};

struct Constant {
  std::string name;
  uint32_t bits = 0;
};

struct Mask {
  int dim = 0;
  int64_t start = 0;
  int64_t count = 0;
};

struct SdscPlan {
  const OpSpec* op = nullptr;
  const OpInfo* info = nullptr;
  std::string function;                         ///< op function name, `nonstick` included
  DataFormat format = DataFormat::SEN169_FP16;  ///< the op's own
  int64_t cores = 1;
  std::vector<Dim> dims;
  std::vector<std::vector<int64_t>> slices;  ///< [core][dim]
  std::vector<Tensor> tensors;               ///< in argument order
  std::vector<LayoutClass> layouts;
  std::vector<Constant> constants;
  std::optional<Mask> mask;

  const Tensor& output() const { return tensors.back(); }
  bool is(OpFamily family) const { return info->family == family; }
  bool is_conversion() const { return is(OpFamily::kConversion); }
  bool is_restickify() const { return info->id == OpId::ReStickifyOpHBM; }
  bool has_window() const { return is(OpFamily::kPool) || is(OpFamily::kConv) || is(OpFamily::kDepthwise); }
  /// Tensors list only their own dimensions, all present.
  bool lists_own_dims_only() const {
    return is(OpFamily::kMatmul) || is(OpFamily::kConv) || is(OpFamily::kDepthwise) || is(OpFamily::kTopK);
  }
  /// The tensor whose order and stick stand for the whole op: the input of a reduction, else the output.
  const Tensor& reference() const;

  std::optional<int> find_label(std::string_view label) const;
  std::optional<int> find_symbol(std::string_view symbol) const;
  /// Adds an unsplit dimension; returns its index.
  int add_dim(std::string label, int64_t logical);

  Error refuse(std::string_view message) const;
  Error refuse(const Tensor& tensor, std::string_view message) const;
};

/// Takes an op that `validate` accepted.
Result<SdscPlan> plan_sdsc(const OpSpec& op, const Machine& machine);

/// The steps, in order.
Status label_dims(SdscPlan& plan);
Status order_tensor_dims(SdscPlan& plan);
Status inject_dims(SdscPlan& plan);
void pad_extents(SdscPlan& plan);
Status assign_scales(SdscPlan& plan);
Status lay_out(SdscPlan& plan, const Machine& machine);
Status classify_layouts(SdscPlan& plan);
Status collect_constants(SdscPlan& plan);
Status check_shape(const SdscPlan& plan);

/// The next label that no dimension has yet, for an injected one.
Result<std::string> unused_label(const SdscPlan& plan);

}  // namespace spyre::superdsc
