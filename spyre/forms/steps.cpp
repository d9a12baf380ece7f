#include "spyre/forms/steps.h"

#include <algorithm>
#include <limits>

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

TensorView squeeze(TensorView x, size_t dim) {
  const auto at = static_cast<std::ptrdiff_t>(dim);
  x.size.erase(x.size.begin() + at);
  x.stride.erase(x.stride.begin() + at);
  return x;
}

TensorView permute(const TensorView& x, const std::vector<size_t>& order) {
  TensorView seen = x;
  for (size_t d = 0; d < order.size(); ++d) {
    seen.size[d] = x.size[order[d]];
    seen.stride[d] = x.stride[order[d]];
  }
  return seen;
}

TensorView move_dim(const TensorView& x, size_t from, size_t to) {
  TensorView seen = squeeze(x, from);
  seen = unsqueeze(std::move(seen), to);
  seen.size[to] = x.size[from];
  seen.stride[to] = x.stride[from];
  return seen;
}

TensorView expand(Builder& builder, TensorView x, const std::vector<int64_t>& size) {
  while (x.size.size() < size.size()) {
    x = unsqueeze(std::move(x), 0);
  }
  for (size_t d = 0; d < x.size.size(); ++d) {
    if (d >= size.size() || (x.size[d] != 1 && x.size[d] != size[d])) {
      builder.fail("a tensor that is repeated to a size that is not its own");
      return x;
    }
    if (x.size[d] != size[d]) {
      x.stride[d] = 0;
      x.size[d] = size[d];
    }
  }
  return x;
}

TensorView reshape(Builder& builder, const TensorView& x, std::vector<int64_t> size) {
  if (element_count(size) != element_count(x)) {
    builder.fail("a tensor with another number of elements than it is seen as");
    return builder.local(std::move(size), x.dtype);
  }
  TensorView rows = in_rows(builder, x);
  rows.stride = contiguous_strides(size);
  rows.size = std::move(size);
  return rows;
}

TensorView in_rows(Builder& builder, const TensorView& x) {
  return is_contiguous(x) ? x : compute(builder, x);
}

TensorView as(Builder& builder, const TensorView& x, HostType dtype) {
  return x.dtype == dtype ? x : compute(builder, cast(x, dtype));
}

TensorView counting(Builder& builder, int64_t count, HostType dtype) {
  const TensorView numbers = builder.local({count}, dtype);
  NodeBuilder node = builder.node(numbers, numbers.size);
  node.store(node.index(node.loop(0), dtype));
  return numbers;
}

TensorView existing(Builder& builder, const TensorView& index, int64_t size) {
  return compute(builder, call("checked_index", {index}, {{"size", static_cast<double>(size)}}));
}

void join(Builder& builder, const TensorView& target, size_t dim, std::span<const TensorView> parts) {
  int64_t start = 0;
  for (const TensorView& part : parts) {
    if (element_count(part) > 0) {
      NodeBuilder node = builder.node(target, part.size);
      std::vector<Expr> position = node.loops(0, target.size.size());
      position[dim] = position[dim] + Expr::constant(start);
      node.store(node.load(part), position);
    }
    start += part.size[dim];
  }
}

TensorView joined(Builder& builder, size_t dim, std::span<const TensorView> parts) {
  std::vector<int64_t> size = parts[0].size;
  size[dim] = 0;
  for (const TensorView& part : parts) {
    size[dim] += part.size[dim];
  }
  const TensorView target = builder.local(std::move(size), parts[0].dtype);
  join(builder, target, dim, parts);
  return target;
}

void put(Builder& builder, const TensorView& part, const TensorView& place) {
  bool is_there = part.buffer == place.buffer && part.offset == place.offset && part.size == place.size;
  for (size_t d = 0; is_there && d < part.size.size(); ++d) {
    is_there = part.size[d] == 1 || part.stride[d] == place.stride[d];
  }
  if (!is_there && element_count(place) > 0) {
    NodeBuilder node = builder.node(place, place.size);
    node.store(node.load(part));
  }
}

void pad_into(Builder& builder, const TensorView& target, const TensorView& x, size_t dim, int64_t before,
              double value) {
  const auto outside = [&](int64_t first, int64_t count) {
    const TensorView place = narrow(target, dim, first, count);
    if (count > 0 && element_count(place) > 0) {
      fill(builder, place, cast(value, x.dtype));
    }
  };
  const int64_t end = before + x.size[dim];
  outside(0, before);
  put(builder, x, narrow(target, dim, before, x.size[dim]));
  outside(end, target.size[dim] - end);
}

TensorView padded(Builder& builder, const TensorView& x, size_t dim, int64_t before, int64_t after,
                  double value) {
  const int64_t cut = std::max<int64_t>(-before, 0), start = std::max<int64_t>(before, 0);
  const int64_t kept = x.size[dim] - cut + std::min<int64_t>(after, 0);
  if (kept < 0) {
    builder.fail("more is cut from a tensor than it has");
    return x;
  }
  const TensorView inner = narrow(x, dim, cut, kept);
  if (before <= 0 && after <= 0) {
    return inner;
  }
  std::vector<int64_t> size = x.size;
  size[dim] = start + kept + std::max<int64_t>(after, 0);
  const TensorView target = builder.local(std::move(size), x.dtype);
  pad_into(builder, target, inner, dim, start, value);
  return target;
}

double lowest_of(HostType type) {
  switch (type) {
    case HostType::kFloat16:
      return -65504;
    case HostType::kBFloat16:
      return -0x1.fep127;
    default:
      return -static_cast<double>(std::numeric_limits<float>::max());
  }
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

std::vector<bool> only(size_t rank, size_t dim) {
  std::vector<bool> chosen(rank, false);
  chosen[dim] = true;
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
