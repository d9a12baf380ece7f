#include "spyre/device/exec/pad_value.h"

#include <fmt/format.h>

#include <cmath>

#include "spyre/device/exec/kernels.h"

namespace spyre::exec {
namespace {

// Ordinary numbers of both signs, none of them special to any formula.
constexpr float kProbes[] = {0.71f, -1.93f, 2.6f, -0.27f};

/// Largest magnitude that stands for "not there" in max and min; masks use 65504, the largest fp16.
constexpr float kExtreme = 60000.0f;

}  // namespace

std::string to_string(const PadValue& value) {
  switch (value.kind) {
    case PadValue::Kind::kKnown:
      return fmt::format("{}", value.value);
    case PadValue::Kind::kVaries:
      return "values computed from data";
    case PadValue::Kind::kUndefined:
      return "bytes that were never written";
  }
  return "";
}

PadValue join(const PadValue& a, const PadValue& b) {
  if (a == b) {
    return a;
  }
  const bool undefined = a.kind == PadValue::Kind::kUndefined || b.kind == PadValue::Kind::kUndefined;
  return {.kind = undefined ? PadValue::Kind::kUndefined : PadValue::Kind::kVaries};
}

PadValue pointwise_padding(const ProgramOp& op, std::span<const PadValue> inputs) {
  if (op.info->id == OpId::where3 && inputs.front().kind == PadValue::Kind::kKnown) {
    return inputs[inputs.front().value != 0 ? 1 : 2];  // what is not chosen may be anything
  }
  const PointwiseRow row = pointwise_row(op);
  for (const PadValue& input : inputs) {
    if (input.kind == PadValue::Kind::kUndefined) {
      return input;
    }
  }
  if (row.function == nullptr || inputs.size() > 3) {
    return {.kind = PadValue::Kind::kVaries};
  }
  PadValue result;
  for (size_t probe = 0; probe < std::size(kProbes); ++probe) {
    float x[3] = {};
    for (size_t i = 0; i < inputs.size(); ++i) {
      const bool known = inputs[i].kind == PadValue::Kind::kKnown;
      x[i] = known ? inputs[i].value : kProbes[(probe + i) % std::size(kProbes)];
    }
    const float value = row.function(x[0], x[1], x[2], row.k.data());
    if (std::isnan(value) || (probe > 0 && value != result.value)) {
      return {.kind = PadValue::Kind::kVaries};
    }
    result.value = value;
  }
  return result;
}

bool reduces_to_nothing(OpId reduction, const PadValue& value) {
  if (value.kind != PadValue::Kind::kKnown) {
    return false;
  }
  if (reduction == OpId::max) {
    return value.value <= -kExtreme;
  }
  if (reduction == OpId::min) {
    return value.value >= kExtreme;
  }
  return value.value == (reduction == OpId::prod ? 1.0f : 0.0f);
}

}  // namespace spyre::exec
