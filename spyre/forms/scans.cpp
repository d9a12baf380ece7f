// Sums of all elements up to each one: every sum has its own row of what it adds up. No sum passes through fewer bits
// than its type has: a product with a triangle of ones, in 16 bits, is for counts that 16 bits hold.

#include "spyre/forms/columns.h"
#include "spyre/forms/forms.h"

namespace spyre::forms {
namespace {

constexpr int64_t kBlock = Digits::kExactSums;  // summed pair by pair; the sums of blocks follow in steps
constexpr int64_t kPairsOfScan = int64_t{1} << 27;

bool is_half(HostType type) {
  return type == HostType::kFloat16 || type == HostType::kBFloat16;
}

/// [a, b, c, d] -> [a, a+b, b+c, c+d] -> [a, a+b, a+b+c, a+b+c+d]
TensorView sums_along_rows(Builder& builder, TensorView x, size_t dim) {
  const int64_t n = x.size[dim];
  for (int64_t step = 1; step < n; step *= 2) {
    const TensorView next = builder.local(x.size, x.dtype);
    fill(builder, narrow(next, dim, 0, step), narrow(x, dim, 0, step));
    fill(builder, narrow(next, dim, step, n - step),
         Element(narrow(x, dim, step, n - step)) + narrow(x, dim, 0, n - step));
    x = next;
  }
  return x;
}

/// A sum for every row of a triangle, of float32.
TensorView sums_of_pairs(Builder& builder, const TensorView& x) {
  const size_t rank = x.size.size();
  const int64_t n = x.size.back();
  const Element inside = Element(row_numbers(builder, n)) >= counting(builder, n, HostType::kFloat32);
  const Element term = where(inside, unsqueeze(x, rank - 1), 0.0);
  return as_row(builder, fold(builder, "sum", compute(builder, term), only(rank + 1, rank), true));
}

/// Of 16-bit values, which are folded in 32 bits.
void sum_halves(Builder& builder, const TensorView& target, const TensorView& rows) {
  const size_t rank = rows.size.size();
  const TensorView steps = counting(builder, rows.size.back(), HostType::kFloat16);
  const Element term = where(Element(unsqueeze(steps, 1)) >= steps, unsqueeze(rows, rank - 1), 0.0);
  fold_into(builder, target, "sum", compute(builder, term), only(rank + 1, rank), false);
}

/// How many of truth values up to each one.
TensorView counted(Builder& builder, const TensorView& x) {
  const int64_t n = x.size.back();
  const TensorView steps = counting(builder, n, HostType::kFloat16);
  const TensorView triangle =
      compute(builder, cast(Element(unsqueeze(steps, 1)) <= steps, HostType::kFloat16));
  const TensorView rows = reshape(builder, as(builder, x, HostType::kFloat16), {element_count(x) / n, n});
  return reshape(builder, product(builder, rows, triangle, HostType::kFloat16), x.size);
}

/// Along the last dimension, of numbers that are given as floats: one, or two digits. What is behind the last whole
/// block is a part of its own: it begins with a stick, and nothing is padded.
void sum_along_last(Builder& builder, const TensorView& target, const std::vector<TensorView>& parts,
                    HostType dtype) {
  const size_t last = target.size.size() - 1;
  const int64_t n = target.size.back(), blocks = n / kBlock, rest = n % kBlock;
  const auto of_each = [&](auto&& step) {
    const TensorView sum = step(parts[0]);
    return parts.size() == 1 ? sum : compute(builder, number_of(sum, step(parts[1]), dtype));
  };
  const auto in_pairs = [&](const TensorView& part) { return sums_of_pairs(builder, part); };
  if (blocks == 0) {
    fill(builder, target, of_each(in_pairs));
    return;
  }
  const TensorView whole = narrow(target, last, 0, blocks * kBlock);
  std::vector<int64_t> by_block = whole.size;
  by_block.back() = blocks;
  by_block.push_back(kBlock);
  const auto blocks_of = [&](const TensorView& part) {
    return reshape(builder, narrow(part, last, 0, blocks * kBlock), by_block);
  };
  const TensorView sums = of_each([&](const TensorView& part) {
    return fold(builder, "sum", blocks_of(part), only(last + 2, last + 1), /*keepdim=*/true);
  });
  const TensorView before = sums_along_rows(builder, padded(builder, sums, last, 1, 0), last);
  const TensorView inside = of_each([&](const TensorView& part) { return in_pairs(blocks_of(part)); });
  const TensorView found = compute(builder, Element(inside) + narrow(before, last, 0, blocks));
  fill(builder, whole, reshape(builder, found, whole.size));
  if (rest > 0) {
    const auto behind = [&](const TensorView& part) { return narrow(part, last, blocks * kBlock, rest); };
    const TensorView own = of_each([&](const TensorView& part) { return in_pairs(behind(part)); });
    fill(builder, behind(target), Element(own) + squeeze(narrow(before, last, blocks, 1), last));
  }
}

}  // namespace

Status cumulative_sum(Builder& builder, Arguments args, std::string_view /*op*/) {
  const TensorView& x = tensor(args[0]);
  SPYRE_TRY(arithmetic_type(x.dtype));
  const size_t rank = x.size.size();
  const HostType dtype = builder.result().dtype;
  if (rank == 0) {
    fill(builder, 0, x);
    return Status();
  }
  SPYRE_ASSIGN_OR_RETURN(const size_t dim, dimension(integer(args[1]), rank));
  const bool whole = !is_float(x.dtype);
  if (whole ? !is_integer(dtype) : dtype != x.dtype && dtype != HostType::kFloat32) {
    return refuse("sums of another kind than their terms");
  }
  const int64_t n = x.size[dim], count = element_count(x);
  if (count == 0 || count > kPairsOfScan / kBlock) {
    return refuse("running sums of nothing, or of too many elements to be put in pairs");
  }
  const size_t last = rank - 1;
  if (is_half(x.dtype) && dtype == x.dtype && n <= kExactIn16Bits && count * n <= (1 << 24)) {
    sum_halves(builder, move_dim(builder.result(), dim, last), move_dim(x, dim, last));
  } else if (dim != last) {
    fill(builder, 0, sums_along_rows(builder, as(builder, x, whole ? dtype : HostType::kFloat32), dim));
  } else if (x.dtype == HostType::kBool && n <= kExactIn16Bits) {
    fill(builder, 0, counted(builder, x));
  } else if (whole) {
    const Digits digits = digits_of(builder, as(builder, x, HostType::kInt64));
    sum_along_last(builder, builder.result(), {digits.low, digits.high}, dtype);
  } else {
    sum_along_last(builder, builder.result(), {as(builder, x, HostType::kFloat32)}, HostType::kFloat32);
  }
  return Status();
}

}  // namespace spyre::forms
