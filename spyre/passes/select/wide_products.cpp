#include "spyre/passes/select/wide_products.h"

#include <fmt/format.h>

#include <cmath>
#include <vector>

#include "spyre/passes/select/integer_steps.h"

namespace spyre {
namespace {

using integer_steps::number;

// The power of two that brings a row (or column) to the upper end of the 16-bit range, which reaches from 2^-31 to 2^33.
struct Scale {
  Operand divisor;  // of the operand; its largest value then lies between 2^28 and 2^32
  Operand root;     // the fourth root of 2^28 times as much
};

Operand fourth_power(OpEmitter& emit, const Operand& x) {
  const Operand square = emit.op(OpId::mul, {x, x});
  return emit.op(OpId::mul, {square, square});
}

// The divisor is q^4. q itself is a power of two that 16 bits hold, so that it can be restickified on its way to the product;
// 32-bit values cannot. It is the unit of the fourth root c of the largest magnitude:
//
//     c - (1 - 2^-24) c    the distance from c to the number below it, a power of two between 2^-24 c and 2^-23 c
//
// A row of zeros, or of values below 2^-88, counts as 2^-88: what it loses then is below 2^-149 times its largest
// partner. An infinity counts as the largest value, and becomes NaN when it is narrowed; NaN stays NaN.
Scale scale_of(OpEmitter& emit, const Operand& value, const std::string& loop) {
  Operand most = emit.op(OpId::abs, {value});
  if (emit.uses(value, loop)) most = emit.reduce(OpId::max, {most}, {loop});
  const Operand root = emit.op(OpId::sqrt, {emit.op(OpId::sqrt, {most})});
  const Operand c = emit.op(OpId::clip, {root}, std::nullopt, {{"clipMin", 0x1p-22}, {"clipMax", 0x1p31}});
  const Operand scaled = emit.op(OpId::mul, {c, number(emit, 0x1p24)});
  const Operand below = emit.op(OpId::mul, {c, number(emit, 0x1p24 - 1)});
  const Operand q = emit.op(OpId::sub, {scaled, below});
  return {.divisor = emit.op(OpId::mul, {fourth_power(emit, q), number(emit, 0x1p-28)}), .root = q};
}

// What the product is multiplied with for one of its operands. Its stick may run along another loop than the operand's.
Operand back(OpEmitter& emit, const Scale& scale) {
  return fourth_power(emit, emit.hold(emit.hold(scale.root, Held::kFp16), Held::kFp32));
}

// The parts of a scaled operand, the largest first.
std::vector<Operand> split(OpEmitter& emit, Operand rest, Parts parts) {
  std::vector<Operand> result = {emit.hold(rest, Held::kFp16)};
  while (result.size() < static_cast<size_t>(parts)) {
    rest = emit.op(OpId::sub, {rest, emit.hold(result.back(), Held::kFp32)});
    result.push_back(emit.hold(rest, Held::kFp16));
  }
  return result;
}

}  // namespace

namespace {

// The product of two parts. A long sum is made of several, or its rounding errors would pile up: that of one chain grows
// with its length, while PyTorch's on the CPU, which adds blocks, hardly grows.
Operand product_of_parts(OpEmitter& emit, const Operand& x, const Operand& w, const std::string& loop) {
  constexpr int64_t kChain = 512, kMostChains = 8;
  const int64_t depth = emit.extent(loop), stick = elems_per_stick(DataFormat::SEN169_FP16);
  const int64_t chain = std::max(kChain, round_up((depth + kMostChains - 1) / kMostChains, stick));
  std::optional<Operand> sum;
  for (int64_t first = 0; first < depth; first += chain) {
    const Operand part =
        emit.reduce_part(OpId::batchmatmul, {x, w}, loop, first, std::min(chain, depth - first), Held::kFp32);
    sum = sum ? emit.op(OpId::add, {*sum, part}) : part;
  }
  return *sum;
}

}  // namespace

Operand wide_product(OpEmitter& emit, const Operand& x, const Operand& w, const std::string& loop,
                     Parts parts) {
  const Scale rows = scale_of(emit, x, loop), columns = scale_of(emit, w, loop);
  const std::vector<Operand> left = split(emit, emit.op(OpId::realdiv, {x, rows.divisor}), parts),
                             right = split(emit, emit.op(OpId::realdiv, {w, columns.divisor}), parts);
  std::optional<Operand> sum;
  for (int order = static_cast<int>(parts) - 1; order >= 0; --order) {
    for (int i = order; i >= 0; --i) {
      const Operand &a = left[static_cast<size_t>(i)], &b = right[static_cast<size_t>(order - i)];
      // Only the largest terms decide about the error.
      const Operand product = order == 0 && parts == Parts::kThree
                                  ? product_of_parts(emit, a, b, loop)
                                  : emit.reduce(OpId::batchmatmul, {a, b}, {loop}, {}, Held::kFp32);
      sum = sum ? emit.op(OpId::add, {*sum, product}) : product;
    }
  }
  // The scales first: what their product cannot hold, the result cannot.
  const Operand scales = emit.op(OpId::mul, {back(emit, rows), back(emit, columns)});
  return emit.op(OpId::mul, {emit.op(OpId::mul, {*sum, number(emit, 0x1p-56)}), scales});
}

namespace {

constexpr double kDigit = 256;
// The largest magnitude of a digit: half of 256, and one more where a 32-bit integer was rounded on its way to fp32.
constexpr double kMostOfDigit = kDigit / 2 + 1;

struct DigitPair {
  Operand high, low;  // fp32; the value is base * high + low
};

DigitPair digit_pair_of(OpEmitter& emit, const Operand& integer, double base) {
  const Operand ratio = emit.op(OpId::mul, {emit.hold(integer, Held::kFp32), number(emit, 1 / base)});
  const Operand high = emit.op(OpId::floor, {emit.op(OpId::add, {ratio, number(emit, 0.5)})});
  const Operand whole = emit.op(OpId::muli32toi32, {emit.op(OpId::fp32toint32, {high}, Held::kInt32),
                                                    emit.constant(-base, HostType::kInt32)});
  return {.high = high, .low = emit.hold(emit.op(OpId::addi32toi32, {integer, whole}), Held::kFp32)};
}

// In 16 bits, the lowest first; as few as hold what the operand is known not to exceed.
std::vector<Operand> short_digits_of(OpEmitter& emit, const Operand& integer) {
  const auto pair = [&](const Operand& x) {
    const Operand ratio = emit.op(OpId::mul, {x, number(emit, 1 / kDigit)});
    const Operand high = emit.op(OpId::floor, {emit.op(OpId::add, {ratio, number(emit, 0.5)})});
    const Operand low = emit.op(OpId::sub, {x, emit.op(OpId::mul, {high, number(emit, kDigit)})});
    return std::vector{emit.hold(low, Held::kFp16), emit.hold(high, Held::kFp16)};
  };
  if (integer.most <= kMostOfDigit) return {emit.hold(emit.hold(integer, Held::kFp32), Held::kFp16)};
  if (integer.most <= kDigit * kDigit / 2) return pair(emit.hold(integer, Held::kFp32));
  const DigitPair of_16_bits = digit_pair_of(emit, integer, kDigit * kDigit);
  std::vector<Operand> digits = pair(of_16_bits.low);
  for (Operand& digit : pair(of_16_bits.high)) digits.push_back(std::move(digit));
  return digits;
}

}  // namespace

Result<Operand> integer_product(OpEmitter& emit, const Operand& x, const Operand& w,
                                const std::string& loop) {
  constexpr size_t kDigits = 4;  // beyond 32 bits nothing is left of a product
  if (static_cast<double>(emit.extent(loop)) * kMostOfDigit * kMostOfDigit > integer_steps::kExactInFp32) {
    return emit.refuse(fmt::format("a matmul that sums {} products of integers; {:.0f} are exact",
                                   emit.extent(loop),
                                   std::floor(integer_steps::kExactInFp32 / kMostOfDigit / kMostOfDigit)));
  }
  const std::vector<Operand> left = short_digits_of(emit, x), right = short_digits_of(emit, w);
  std::optional<Operand> sum;
  for (size_t i = 0; i < left.size(); ++i) {
    for (size_t j = 0; j < right.size() && i + j < kDigits; ++j) {
      const Operand product = emit.reduce(OpId::batchmatmul, {left[i], right[j]}, {loop}, {}, Held::kFp32);
      const Operand whole = emit.op(OpId::fp32toint32, {product}, Held::kInt32);
      // 2^24 is the largest weight.
      const Operand weight = emit.constant(std::pow(kDigit, static_cast<double>(i + j)), HostType::kInt32);
      const Operand term = i + j == 0 ? whole : emit.op(OpId::muli32toi32, {whole, weight});
      sum = sum ? emit.op(OpId::addi32toi32, {*sum, term}) : term;
    }
  }
  return *sum;
}

}  // namespace spyre
