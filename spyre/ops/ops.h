#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "spyre/arch/data_format.h"

namespace spyre {

/// Which op function: one enumerator per row of table.def, in table order, called as the row is. Names are looked up once,
/// where text is read; from then on operations are told apart by this.
enum class OpId : uint8_t {
#define SPYRE_POINTWISE(name, ...) name,
#define SPYRE_REDUCTION(name, ...) name,
#define SPYRE_CONVERSION(name, ...) name,
#define SPYRE_SPECIAL(name, ...) name,
#include "spyre/ops/table.def"
};

/// Ops that share rules of code generation and of execution.
enum class OpFamily : uint8_t {
  kPointwise,   ///< one result per coordinate from the inputs at that coordinate
  kReduction,   ///< folds one dimension; see OpInfo::variants
  kMatmul,      ///< batchmatmul and its fp8 form
  kConversion,  ///< other format, other element order inside the sticks
  kCopy,        ///< identity (also gather and scatter) and restickify
  kLayerNorm,   ///< exx2, layernormscale, layernormnorm
  kTopK,        ///< topkvalue, topkindex, keepbyindex
  kQuantScale,  ///< quantscalepertokenfp8
  kPool,        ///< avgpoolfwd
  kConv,        ///< conv2d
  kDepthwise,   ///< depthwiseconv2dnative
  kShuffle,     ///< LX to LX copy between differently divided tensors
};
std::string_view to_string(OpFamily family);

/// The unit a core runs the op on.
enum class ExUnit : uint8_t {
  kPt,   ///< systolic array, "pt" in the artifact
  kSfp,  ///< vector unit, "sfp" in the artifact
};
std::string_view to_string(ExUnit unit);

/// A set of data formats, one bit each.
class FormatSet {
 public:
  constexpr FormatSet() = default;
  constexpr explicit FormatSet(DataFormat format) : bits_(uint32_t{1} << static_cast<int>(format)) {}
  static constexpr FormatSet all() {
    FormatSet set;
    set.bits_ = (uint32_t{1} << static_cast<int>(DataFormat::INVALID)) - 1;
    return set;
  }

  constexpr bool contains(DataFormat format) const { return ((bits_ >> static_cast<int>(format)) & 1) != 0; }
  friend constexpr FormatSet operator|(FormatSet a, FormatSet b) {
    FormatSet set;
    set.bits_ = a.bits_ | b.bits_;
    return set;
  }
  friend constexpr bool operator==(FormatSet, FormatSet) = default;

  /// `SEN169_FP16, IEEE_FP32`, for messages; `any` for all of them.
  std::string to_string() const;

 private:
  uint32_t bits_ = 0;
};

/// What one op function is: a row of table.def as a value. The *meaning* of pointwise ops and reductions
/// stays in the table, where an executor instantiates it (the head of table.def shows how).
struct OpInfo {
  OpId id;
  std::string_view name;  ///< base name; a reduction over a non-stick dimension appends `nonstick`
  int inputs;             ///< data inputs; index tensors of a gather come on top
  OpFamily family;
  ExUnit unit;
  FormatSet input_formats;
  FormatSet output_formats;
  std::vector<std::string_view> constants;  ///< in the order k0, k1, k2 of the meaning
  std::optional<double> mask;               ///< value of masked lanes; none: never masked
  bool in_place;                            ///< the result may overwrite an input of the same layout
  bool stick_variant;                       ///< reductions: may fold the stick dimension
  bool nonstick_variant;                    ///< reductions: may fold another one, under the longer name
};

/// Every op function, in table order.
std::span<const OpInfo> all_ops();

const OpInfo& info_of(OpId op);

/// The base name: `sum`.
std::string_view to_string(OpId op);

/// The op of a base name, as graphs and OpSpecs say it. None for a name without a row, `sumnonstick` included.
std::optional<OpId> op_from_name(std::string_view base_name);

/// The row of an op, by base name (`sum`, as OpSpecs say) or by op function name (`sumnonstick`, as artifacts
/// say). Null for a name that is not in the table, `exx2nonstick` included.
const OpInfo* find_op(std::string_view name);

/// Whether an op function name asks for the variant over a non-stick dimension.
bool is_nonstick_name(std::string_view op_func_name);

/// The op function name of a variant: `sum` or `sumnonstick`.
std::string op_func_name(const OpInfo& op, bool nonstick);

}  // namespace spyre
