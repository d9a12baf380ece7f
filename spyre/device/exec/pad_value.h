#pragma once

#include <span>

#include "spyre/device/exec/bound_op.h"

/// What the padding of a buffer holds, as far as it can be told without looking at values.
///
/// Rows of 100 lie in two sticks of 64, so 28 lanes hold no data. The host leaves them zero; each op computes
/// on them as on everything else; a reduction that runs over them unmasked adds them to its result. Whether
/// that matters depends on what they are, so their value is carried along with each buffer:
///
///     x        (host)        0
///     x - m    (m varies)    varies        exp of it, masked with -10000: 0
///     relu(x)                0             its sum needs no mask, its max does
namespace spyre::exec {

struct PadValue {
  enum class Kind : uint8_t {
    kKnown,      ///< `value`, everywhere
    kVaries,     ///< computed from data
    kUndefined,  ///< never written
  };
  Kind kind = Kind::kKnown;
  float value = 0;

  bool is(float v) const { return kind == Kind::kKnown && value == v; }
  friend bool operator==(const PadValue&, const PadValue&) = default;
};
std::string to_string(const PadValue& value);

/// One value that stands for both.
PadValue join(const PadValue& a, const PadValue& b);

/// What a pointwise op makes of its inputs' padding; `inputs` as the op has them, data counts as `kVaries`.
/// An input that varies is tried with a few numbers: 0 / s is 0 whatever s is, 0 - m is not.
PadValue pointwise_padding(const ProgramOp& op, std::span<const PadValue> inputs);

/// Whether padding of this value leaves the result of a reduction as it is.
bool reduces_to_nothing(OpId reduction, const PadValue& value);

}  // namespace spyre::exec
