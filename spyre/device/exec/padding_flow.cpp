#include "spyre/device/exec/padding_flow.h"

#include <fmt/format.h>

#include <algorithm>

namespace spyre::exec {
namespace {

bool is_padded(const BoundOp& bound, const PaddedInput& input, int dim) {
  return input[dim].begin < bound.limit[dim];
}

/// The mask that covers the coordinates of a dim from `from` on, if there is one.
const Mask* mask_from(const BoundOp& bound, int dim, int64_t from) {
  for (const Mask& mask : bound.op->masks) {
    if (mask.dim == dim && mask.start <= from && mask.start + mask.count >= bound.limit[dim]) {
      return &mask;
    }
  }
  return nullptr;
}

bool multiplies(const BoundOp& bound) {
  const OpFamily family = bound.op->info->family;
  return family == OpFamily::kMatmul || family == OpFamily::kConv || family == OpFamily::kDepthwise;
}

/// The row whose neutral value decides whether padding matters; none for ops that fold nothing.
std::optional<OpId> folding_row(const BoundOp& bound) {
  const OpInfo& info = *bound.op->info;
  switch (info.family) {
    case OpFamily::kReduction:
      return info.id;
    case OpFamily::kTopK:
      return info.id == OpId::keepbyindex ? std::nullopt : std::optional(OpId::max);
    case OpFamily::kQuantScale:
    case OpFamily::kPool:
      return OpId::sum;
    case OpFamily::kLayerNorm:
      return info.id == OpId::exx2 ? std::optional(OpId::sum) : std::nullopt;
    default:
      return std::nullopt;
  }
}

std::string describe(const BoundOp& bound, int dim, const PaddedInput& input) {
  return fmt::format("'{}' is data up to {}, the op runs to {}; beyond there are {}",
                     bound.op->dims[dim].label, input[dim].begin, bound.limit[dim],
                     to_string(input[dim].value));
}

/// What an input contributes where the result's padding along a dim, from `begin` on, is computed.
PadValue contribution(const BoundOp& bound, const PaddedInput& input, int dim, int64_t begin) {
  if (const Mask* mask = mask_from(bound, dim, begin)) {
    return {.value = mask->value};
  }
  if (is_padded(bound, input, dim)) {
    return input[dim].value;
  }
  if (input[dim].fill && input[dim].fill->step == 0) {
    return {.value = static_cast<float>(input[dim].fill->start)};
  }
  if (input[dim].tail.begin <= begin) {
    return {.value = input[dim].tail.value};
  }
  return {.kind = PadValue::Kind::kVaries};
}

/// From where on the data of a result is one number: what a pointwise op makes of constants, and copies of that.
Tail tail_of_result(const BoundOp& bound, const std::vector<PaddedInput>& inputs, int dim) {
  const OpFamily family = bound.op->info->family;
  if (family == OpFamily::kCopy || family == OpFamily::kShuffle) {
    return inputs.front()[dim].tail;
  }
  const auto is_constant = [&](const PaddedInput& input) { return input[dim].fill.has_value(); };
  if (family != OpFamily::kPointwise || !std::ranges::all_of(inputs, is_constant)) {
    return {};
  }
  Tail tail;
  for (int64_t at = bound.limit[dim] - 1; at >= 0; --at) {
    std::vector<PadValue> values;
    for (const PaddedInput& input : inputs) {
      const Fill& fill = *input[dim].fill;
      values.push_back({.value = static_cast<float>(fill.start + fill.step * static_cast<double>(at))});
    }
    const PadValue value = pointwise_padding(*bound.op, values);
    if (value.kind != PadValue::Kind::kKnown || (tail.begin != kNoPadding && value.value != tail.value)) {
      break;
    }
    tail = {.begin = at, .value = value.value};
  }
  return tail;
}

PadValue product(const std::vector<PadValue>& factors) {
  const auto undefined = std::find_if(factors.begin(), factors.end(),
                                      [](const PadValue& v) { return v.kind == PadValue::Kind::kUndefined; });
  if (undefined != factors.end()) {
    return *undefined;
  }
  const bool zero = std::any_of(factors.begin(), factors.end(), [](const PadValue& v) { return v.is(0); });
  return zero ? PadValue{} : PadValue{.kind = PadValue::Kind::kVaries};
}

PadValue value_of_result(const BoundOp& bound, const std::vector<PadValue>& inputs) {
  const OpInfo& info = *bound.op->info;
  if (multiplies(bound)) {
    return product(inputs);
  }
  const PadValue& first = inputs.front();
  switch (info.family) {
    case OpFamily::kPointwise:
      return pointwise_padding(*bound.op, inputs);
    case OpFamily::kCopy:
    case OpFamily::kShuffle:
      return first;
    case OpFamily::kReduction:
      if (first.is(0) || info.id == OpId::max || info.id == OpId::min) {
        return first;
      }
      break;
    case OpFamily::kConversion:
    case OpFamily::kPool:
      if (first.is(0)) {
        return first;
      }
      break;
    default:
      break;
  }
  return {.kind = first.kind == PadValue::Kind::kUndefined ? first.kind : PadValue::Kind::kVaries};
}

}  // namespace

std::vector<PaddingLeak> padding_leaks(const BoundOp& bound, const std::vector<PaddedInput>& inputs) {
  std::vector<PaddingLeak> leaks;
  const std::optional<OpId> row = folding_row(bound);
  for (int d = 0; d < bound.dims(); ++d) {
    if (bound.output().present(d)) {
      continue;
    }
    std::vector<PadValue> factors;
    for (int i = 0; i < static_cast<int>(inputs.size()); ++i) {
      const PaddedInput& input = inputs[i];
      const bool padded = is_padded(bound, input, d);
      factors.push_back(padded ? input[d].value : PadValue{.kind = PadValue::Kind::kVaries});
      const Mask* mask = mask_from(bound, d, std::min(input[d].begin, bound.limit[d] - 1));
      if (!row || (!padded && mask == nullptr)) {
        continue;
      }
      if (mask == nullptr && !reduces_to_nothing(*row, input[d].value)) {
        leaks.push_back({i, describe(bound, d, input)});
      } else if (mask != nullptr && !reduces_to_nothing(*row, {.value = mask->value})) {
        leaks.push_back({i, fmt::format("'{}' is masked with {}, which is not neutral",
                                        bound.op->dims[d].label, mask->value)});
      }
    }
    for (int i = 0; i < static_cast<int>(inputs.size()) && multiplies(bound); ++i) {
      if (is_padded(bound, inputs[i], d) && !product(factors).is(0)) {
        leaks.push_back({i, describe(bound, d, inputs[i])});
      }
    }
  }
  return leaks;
}

PaddedInput padding_of_result(const BoundOp& bound, const std::vector<PaddedInput>& inputs) {
  PaddedInput result(bound.dims());
  for (int d = 0; d < bound.dims(); ++d) {
    Padding& padding = result[d];
    for (const PaddedInput& input : inputs) {
      if (is_padded(bound, input, d) && bound.output().present(d)) {
        padding.begin = std::min(padding.begin, input[d].begin);
      }
    }
    if (padding.begin != kNoPadding) {
      std::vector<PadValue> values;
      for (const PaddedInput& input : inputs) {
        values.push_back(contribution(bound, input, d, padding.begin));
      }
      padding.value = value_of_result(bound, values);
    }
    padding.tail = tail_of_result(bound, inputs, d);
    // A launch with less than the largest extent leaves the rest of its last stick as it was.
    const TensorDim* dim = bound.output().find(d);
    if (dim != nullptr && dim->scale > 0 && dim->per_stick > 1 && bound.limit[d] < bound.extents.total[d]) {
      padding = {.begin = std::min(padding.begin, bound.limit[d]),
                 .value = {.kind = PadValue::Kind::kUndefined}};  // and no tail
    }
  }
  return result;
}

}  // namespace spyre::exec
