#include "glue/eager_index.h"

#include <ATen/ATen.h>
#include <ATen/ExpandUtils.h>

#include <algorithm>
#include <numeric>

namespace spyre::glue {
namespace {

/// On the host, where negative ones count from the end. Nothing where there are none, or one does not exist.
std::optional<at::Tensor> from_the_start(const at::Tensor& positions, int64_t extent) {
  if (positions.numel() == 0 ||
      (positions.scalar_type() != c10::kInt && positions.scalar_type() != c10::kLong)) {
    return std::nullopt;
  }
  const at::Tensor given = positions.to(c10::kCPU).to(c10::kLong);
  const at::Tensor host = at::where(given.lt(0), given.add(extent), given);
  const bool exist = host.ge(0).logical_and(host.lt(extent)).all().item<bool>();
  return exist ? std::optional(host) : std::nullopt;
}

/// x at these places of a dimension: a part of it where they count up.
at::Tensor at_places(const at::Tensor& x, int64_t dim, const at::Tensor& places) {
  const auto start = places[0].item<int64_t>();
  if (places.equal(at::arange(start, start + places.numel(), places.options()))) {
    return x.narrow(dim, start, places.numel());
  }
  return x.index_select(dim, places.to(x.device()));
}

/// The axes of `shape` that positions vary along.
std::vector<int64_t> axes_of(const at::Tensor& places, const std::vector<int64_t>& shape) {
  std::vector<int64_t> axes;
  const int64_t before = static_cast<int64_t>(shape.size()) - places.dim();
  for (int64_t d = 0; d < places.dim(); ++d) {
    if (places.size(d) > 1) {
      axes.push_back(before + d);
    }
  }
  return axes;
}

/// x with a dimension for each index from `first` on, as one with the axes of all of them, which `own` lists in the order
/// of the indices.
at::Tensor in_order_of_axes(const at::Tensor& x, int64_t first, int64_t indices,
                            const std::vector<int64_t>& own, const std::vector<int64_t>& shape) {
  const std::vector<int64_t> before = x.sizes().slice(0, static_cast<size_t>(first)).vec();
  const std::vector<int64_t> after = x.sizes().slice(static_cast<size_t>(first + indices)).vec();
  const auto between = [&](const std::vector<int64_t>& sizes) {
    std::vector<int64_t> all = before;
    all.insert(all.end(), sizes.begin(), sizes.end());
    all.insert(all.end(), after.begin(), after.end());
    return all;
  };
  std::vector<int64_t> sizes;
  for (const int64_t axis : own) {
    sizes.push_back(shape[static_cast<size_t>(axis)]);
  }
  std::vector<int64_t> order(own.size());
  std::iota(order.begin(), order.end(), first);
  std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return own[static_cast<size_t>(a - first)] < own[static_cast<size_t>(b - first)];
  });
  const at::Tensor apart = x.reshape(between(sizes));
  std::vector<int64_t> dims(static_cast<size_t>(apart.dim()));
  std::iota(dims.begin(), dims.end(), 0);
  std::copy(order.begin(), order.end(), dims.begin() + first);
  return apart.permute(dims).reshape(between(shape));
}

}  // namespace

std::optional<Tensors> index_by_axes(Arguments args) {
  at::Tensor x = args[0].toTensor();
  std::vector<int64_t> dims, shape;
  Tensors places;
  int64_t dim = 0;
  for (const std::optional<at::Tensor>& index : args[1].toOptionalTensorList()) {
    if (index.has_value() && index->defined()) {
      const std::optional<at::Tensor> found =
          dim < x.dim() ? from_the_start(*index, x.size(dim)) : std::nullopt;
      if (!found) {
        return std::nullopt;
      }
      dims.push_back(dim);
      places.push_back(*found);
      shape = at::infer_size(shape, found->sizes());
    }
    ++dim;
  }
  std::vector<int64_t> own;
  for (const at::Tensor& each : places) {
    const std::vector<int64_t> axes = axes_of(each, shape);
    own.insert(own.end(), axes.begin(), axes.end());
  }
  std::vector<int64_t> once = own;
  std::sort(once.begin(), once.end());
  if (std::adjacent_find(once.begin(), once.end()) != once.end()) {
    return std::nullopt;
  }
  const auto indices = static_cast<int64_t>(dims.size());
  const bool neighbours = dims.back() - dims.front() + 1 == indices;
  const int64_t first = neighbours ? dims.front() : 0;  // PyTorch puts what is indexed in front otherwise
  if (!neighbours) {
    std::vector<int64_t> front(dims.size());
    std::iota(front.begin(), front.end(), 0);
    x = x.movedim(dims, front);
  }
  for (size_t k = 0; k < places.size(); ++k) {
    x = at_places(x, first + static_cast<int64_t>(k), places[k].flatten());
  }
  return Tensors{in_order_of_axes(x, first, indices, own, shape).clone(c10::MemoryFormat::Contiguous)};
}

}  // namespace spyre::glue
