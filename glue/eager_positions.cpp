#include "glue/eager_positions.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/masked_select.h>

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
    const at::Tensor& x = args[0].toTensor();
    return inside(args[2].toTensor(), 0, x.dim() == 0 ? 1 : x.size(args[1].toInt()));
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

}  // namespace spyre::glue
