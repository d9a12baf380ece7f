#include "spyre/forms/steps.h"

#include "spyre/layout/device_layout.h"

namespace spyre::forms {

bool is_contiguous(const TensorView& x) {
  const std::vector<int64_t> stride = contiguous_strides(x.size);
  for (size_t d = 0; d < x.size.size(); ++d) {
    if (x.size[d] != 1 && x.stride[d] != stride[d]) {
      return false;
    }
  }
  return true;
}

TensorView narrow(TensorView x, size_t dim, int64_t start, int64_t length) {
  x.offset += x.stride[dim] * start;
  x.size[dim] = length;
  return x;
}

TensorView unsqueeze(TensorView x, size_t dim) {
  const auto at = static_cast<std::ptrdiff_t>(dim);
  x.size.insert(x.size.begin() + at, 1);
  x.stride.insert(x.stride.begin() + at, 1);
  return x;
}

TensorView reshape(Builder& builder, const TensorView& x, std::vector<int64_t> size) {
  if (element_count(size) != element_count(x)) {
    builder.fail("a tensor with another number of elements than it is seen as");
    return builder.local(std::move(size), x.dtype);
  }
  TensorView rows = is_contiguous(x) ? x : compute(builder, x);
  rows.stride = contiguous_strides(size);
  rows.size = std::move(size);
  return rows;
}

TensorView wide(Builder& builder, const TensorView& x) {
  const bool half = x.dtype == HostType::kFloat16 || x.dtype == HostType::kBFloat16;
  return half ? compute(builder, cast(x, HostType::kFloat32)) : x;
}

TensorView centred(Builder& builder, const TensorView& x, const std::vector<bool>& folded) {
  const TensorView mean = fold(builder, "mean", x, folded, /*keepdim=*/true);
  return compute(builder, Element(x) - mean);
}

std::vector<bool> all_but(size_t rank, size_t dim) {
  std::vector<bool> chosen(rank, true);
  chosen[dim] = false;
  return chosen;
}

std::vector<bool> dims_before(size_t rank, size_t count) {
  std::vector<bool> chosen(rank, false);
  std::fill_n(chosen.begin(), std::min(count, rank), true);
  return chosen;
}

std::vector<bool> dims_from(size_t rank, size_t count) {
  std::vector<bool> chosen = dims_before(rank, count);
  chosen.flip();
  return chosen;
}

}  // namespace spyre::forms
