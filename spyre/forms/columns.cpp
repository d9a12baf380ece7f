#include "spyre/forms/columns.h"

namespace spyre::forms {
namespace {

constexpr int64_t kStick = 64;  // 16-bit values

Element on_diagonal(Builder& builder, int64_t n) {
  return equal(row_numbers(builder, n), counting(builder, n, HostType::kFloat32));
}

}  // namespace

// Every lane of a row holds the row's number; folded along the stick, one of them is left, alone in its stick.
TensorView row_numbers(Builder& builder, int64_t n) {
  if (n > kExactIn16Bits) {  // 1030 is 1024 and 6
    const int64_t blocks = (n + kExactIn16Bits - 1) / kExactIn16Bits;
    const TensorView starts =
        compute(builder, Element(row_numbers(builder, blocks)) * static_cast<double>(kExactIn16Bits));
    const TensorView both =
        compute(builder, Element(unsqueeze(starts, 1)) + row_numbers(builder, kExactIn16Bits));
    return narrow(reshape(builder, both, {blocks * kExactIn16Bits, 1}), 0, 0, n);
  }
  const TensorView rows = builder.local({n, kStick}, HostType::kFloat16);
  NodeBuilder node = builder.node(rows, rows.size);
  node.store(node.index(node.loop(0), HostType::kFloat16));
  return fold(builder, "max", as(builder, rows, HostType::kFloat32), {false, true}, /*keepdim=*/true);
}

// x under itself n times, with zeros beside the diagonal: the sum of a row is its one element, exactly (-0 becomes 0), and
// is alone in its stick. For n elements n * n are computed.
TensorView as_column(Builder& builder, const TensorView& x) {
  const size_t rank = x.size.size();
  const Element own =
      where(on_diagonal(builder, x.size.back()), unsqueeze(x, rank - 1), cast(0.0, HostType::kFloat32));
  return fold(builder, "sum", compute(builder, own), only(rank + 1, rank), /*keepdim=*/true);
}

TensorView as_row(Builder& builder, const TensorView& column) {
  const size_t rank = column.size.size();
  const Element own =
      where(on_diagonal(builder, column.size[rank - 2]), column, cast(0.0, HostType::kFloat32));
  return fold(builder, "sum", compute(builder, own), only(rank, rank - 2), /*keepdim=*/false);
}

Digits digits_of(Builder& builder, const TensorView& x) {
  const TensorView high =
      compute(builder, call("floor", {cast(x, HostType::kFloat32) * (1 / Digits::kBase)}));
  const Element rest = Element(x) - cast(high, x.dtype) * Digits::kBase;
  return {.low = compute(builder, cast(rest, HostType::kFloat32)), .high = high};
}

Element number_of(const Element& low, const Element& high, HostType dtype) {
  return cast(low, dtype) + cast(high, dtype) * Digits::kBase;
}

}  // namespace spyre::forms
