#include "glue/eager_positions.h"

#include <ATen/ExpandUtils.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/gather.h>
#include <ATen/ops/masked_select.h>
#include <ATen/ops/scatter.h>
#include <ATen/ops/where.h>

#include <algorithm>

#include "spyre/forms/forms.h"

namespace spyre::glue {
namespace {

/// Whether all are positions from `least` on, or the one that means nothing.
bool inside(const at::Tensor& positions, int64_t least, int64_t end,
            std::optional<int64_t> ignored = std::nullopt) {
  const at::Tensor host = positions.to(c10::kCPU).to(c10::kLong).contiguous();
  const auto* first = host.const_data_ptr<int64_t>();
  return std::all_of(first, first + host.numel(),
                     [&](int64_t p) { return (p >= least && p < end) || p == ignored; });
}

/// The positions in x[:, i], and the dimension they are along.
struct OneIndex {
  at::Tensor positions;
  int64_t dim = 0;
};

/// None where there are none, or several: such calls have no form.
std::optional<OneIndex> one_index(const c10::IValue& indices) {
  std::optional<OneIndex> found;
  int64_t dim = 0;
  for (const std::optional<at::Tensor>& index : indices.toOptionalTensorList()) {
    if (index.has_value() && index->defined()) {
      if (found.has_value() || !index->device().is_privateuseone() ||
          (index->scalar_type() != c10::kLong && index->scalar_type() != c10::kInt)) {
        return std::nullopt;
      }
      found = OneIndex{*index, dim};
    }
    ++dim;
  }
  return found;
}

std::optional<at::Tensor> select_by_element(Arguments args) {
  const at::Tensor &x = args[0].toTensor(), &places = args[2].toTensor();
  const int64_t dim = args[1].toInt();
  const bool writes_into_out = args.size() > 3;
  if (writes_into_out || x.dim() == 0 || x.numel() == 0 || x.numel() != x.size(dim) || places.numel() == 0) {
    return std::nullopt;
  }
  std::vector<int64_t> size = x.sizes().vec();
  size[static_cast<size_t>(dim < 0 ? dim + x.dim() : dim)] = places.numel();
  return at::gather(x.flatten(), 0, places.to(c10::kLong)).view(size);
}

}  // namespace

bool positions_fit(const forms::FormRow& form, Arguments args) {
  if (form.form == &forms::index || form.form == &forms::index_put) {
    int64_t dim = 0;
    for (const std::optional<at::Tensor>& index : args[1].toOptionalTensorList()) {
      const int64_t extent = index.has_value() && index->defined() ? args[0].toTensor().size(dim) : 0;
      if (extent > 0 && !inside(*index, -extent, extent)) {
        return false;
      }
      ++dim;
    }
    return true;
  }
  if (form.form == &forms::nll_loss || form.form == &forms::nll_loss_backward) {
    const size_t first = form.form == &forms::nll_loss ? 0 : 1;
    return inside(args[first + 1].toTensor(), 0, args[first].toTensor().size(1), args[first + 4].toInt());
  }
  if (form.form == &forms::one_hot) {
    return inside(args[0].toTensor(), 0, args[1].toInt());
  }
  if (form.form == &forms::embedding_backward) {
    return inside(args[1].toTensor(), 0, args[2].toInt());
  }
  const bool takes_places = form.form == &forms::index_select || form.form == &forms::index_copy ||
                            form.form == &forms::gather || form.form == &forms::scatter ||
                            form.form == &forms::scatter_add || form.form == &forms::index_add;
  if (takes_places) {
    return inside(args[2].toTensor(), 0, args[0].toTensor().size(args[1].toInt()));
  }
  return form.form != &forms::embedding || inside(args[1].toTensor(), 0, args[0].toTensor().size(0));
}

std::optional<at::Tensor> index_by_mask(const forms::FormRow& form, Arguments args) {
  if (form.form != &forms::index || args.size() != 2) {  // not the form that writes into `out`
    return std::nullopt;
  }
  const auto indices = args[1].toOptionalTensorList();
  const at::Tensor mask =
      indices.size() == 1 ? std::optional<at::Tensor>(indices.get(0)).value_or(at::Tensor()) : at::Tensor();
  const at::Tensor& x = args[0].toTensor();
  if (!mask.defined() || !mask.device().is_privateuseone() || mask.scalar_type() != c10::kBool) {
    return std::nullopt;
  }
  if (mask.sizes() == x.sizes()) {
    return at::masked_select(x, mask);
  }
  if (mask.dim() != 1 || x.dim() < 2 || mask.size(0) != x.size(0)) {
    return std::nullopt;
  }
  const at::Tensor rows = at::arange(x.size(0), mask.options().dtype(c10::kLong));
  return x.index_select(0, at::masked_select(rows, mask));
}

std::optional<at::Tensor> by_element(const forms::FormRow& form, Arguments args) {
  if (form.form == &forms::index_select) {
    return select_by_element(args);
  }
  const bool writes = form.form == &forms::index_put;
  const bool reads = form.form == &forms::index && args.size() == 2;  // not the form that writes into `out`
  if (!reads && !writes) {
    return std::nullopt;
  }
  const at::Tensor& x = args[0].toTensor();
  const std::optional<OneIndex> found = one_index(args[1]);
  if (!found || x.numel() == 0 || x.numel() != x.size(found->dim) || found->positions.numel() == 0) {
    return std::nullopt;
  }
  const at::Tensor given = found->positions.to(c10::kLong);
  const at::Tensor places = at::where(given.lt(0), given.add(x.size(found->dim)), given).flatten();
  std::vector<int64_t> size = x.sizes().vec();
  const auto indexed = size.erase(size.begin() + found->dim);
  size.insert(indexed, given.sizes().begin(), given.sizes().end());
  if (!writes) {
    return at::gather(x.flatten(), 0, places).view(size);
  }
  const at::Tensor& values = args[2].toTensor();
  if (args[3].toBool() || values.scalar_type() != x.scalar_type() ||
      !at::is_expandable_to(values.sizes(), size)) {
    return std::nullopt;
  }
  const at::Tensor each = values.to(x.device()).expand(size).flatten();
  x.copy_(at::scatter(x.flatten(), 0, places, each).view(x.sizes()));
  return x;
}

}  // namespace spyre::glue
