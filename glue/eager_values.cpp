// Operators whose results are as long as values say: the card counts, the host reads one number, as on any device, and
// the rest is the card's again. Where an element goes is the number of those kept before it; the moves are those of
// scatter and gather.

#include <ATen/ATen.h>

#include "glue/eager_steps.h"

namespace spyre::glue {
namespace {

std::optional<Tensors> bincount_by_values(Arguments args) {
  const at::Tensor& x = args[0].toTensor();
  const bool weighted = args[1].isTensor() && args[1].toTensor().defined();
  if (weighted || x.dim() != 1 || x.numel() == 0 || x.is_floating_point() || x.min().item<int64_t>() < 0) {
    return std::nullopt;
  }
  const int64_t bins = std::max(x.max().item<int64_t>() + 1, args[2].toInt());
  const auto end = static_cast<double>(bins) - 0.5;
  return Tensors{at::histc(x.to(c10::kFloat), bins, -0.5, end).to(c10::kLong)};
}

/// [no, yes, no, yes] -> [-1, 0, 0, 1]
at::Tensor places_of(const at::Tensor& kept) {
  return kept.cumsum(0).sub(1);
}

/// Of one dimension.
at::Tensor kept_of(const at::Tensor& x, const at::Tensor& kept) {
  const auto count = x.numel() == 0 ? 0 : kept.sum().item<int64_t>();
  if (count == 0) {
    return at::empty({0}, x.options());
  }
  // What is not kept goes behind the end, each element to a place of its own.
  const at::Tensor before = places_of(kept), numbers = at::arange(x.numel(), before.options());
  const at::Tensor places = at::where(kept, before, numbers.sub(before).add(count - 1));
  return at::scatter(at::zeros_like(x), 0, places, x).narrow(0, 0, count).clone();
}

std::optional<Tensors> masked_select_by_values(Arguments args) {
  if (args[1].toTensor().scalar_type() != c10::kBool) {
    return std::nullopt;
  }
  const Tensors both = at::broadcast_tensors({args[0].toTensor(), args[1].toTensor()});
  return Tensors{kept_of(both[0].reshape(-1), both[1].reshape(-1))};
}

std::optional<Tensors> masked_scatter_by_values(Arguments args) {
  const at::Tensor &x = args[0].toTensor(), mask = args[1].toTensor().expand(x.sizes()),
                   source = args[2].toTensor().reshape(-1);
  if (mask.scalar_type() != c10::kBool || x.dim() == 0 || x.numel() == 0 ||
      source.scalar_type() != x.scalar_type() || mask.sum().item<int64_t>() > source.numel()) {
    return std::nullopt;
  }
  const int64_t width = x.size(-1);
  const bool whole_rows = mask.stride(-1) == 0 && width > 1;
  const at::Tensor replaced = whole_rows ? mask.select(-1, 0) : mask;
  const at::Tensor places = places_of(replaced.reshape(-1)).clamp_min(0);
  const at::Tensor taken =
      whole_rows
          ? source.narrow(0, 0, source.numel() / width * width).view({-1, width}).index_select(0, places)
          : at::gather(source, 0, places);
  return Tensors{at::where(mask, taken.view(x.sizes()), x)};
}

/// Sorted elements that differ from the one before them.
std::optional<Tensors> unique_by_values(Arguments args) {
  const at::Tensor& x = args[0].toTensor();
  const at::Tensor flat = x.reshape(-1);
  const int64_t count = flat.numel();
  if (count == 0) {
    return std::nullopt;
  }
  const auto [values, order] = at::sort(flat, /*stable=*/true, /*dim=*/-1, /*descending=*/false);
  at::Tensor first = at::ones({1}, x.options().dtype(c10::kBool));
  if (count > 1) {
    first = at::cat({first, values.narrow(0, 1, count - 1).ne(values.narrow(0, 0, count - 1))});
  }
  const auto whole = x.options().dtype(c10::kLong);
  Tensors results = {kept_of(values, first), at::empty({0}, whole), at::empty({0}, whole)};
  if (args[2].toBool() || args[3].toBool()) {
    const at::Tensor number = places_of(first).clone();  // side by side again, where sums left one to a stick
    const at::Tensor back =
        std::get<1>(at::sort(order.clone(), /*stable=*/true, /*dim=*/-1, /*descending=*/false));
    results[1] = at::gather(number, 0, back).view(x.sizes());
    const at::Tensor starts = kept_of(at::arange(count, whole), first);
    const at::Tensor ends = at::cat({starts.narrow(0, 1, starts.numel() - 1), at::full({1}, count, whole)});
    results[2] = ends.sub(starts);
  }
  return results;
}

/// The boxed kernel of an operator that is written in others for every call.
class OperatorInSteps final : public c10::OperatorKernel {
 public:
  explicit OperatorInSteps(Steps steps) : steps_(steps) {}

  void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet /*keys*/, torch::jit::Stack* stack) {
    const size_t count = op.schema().arguments().size();
    const Arguments arguments(stack->data() + (stack->size() - count), count);
    const StepsTaken taken = take_steps([&] { return steps_(arguments); });
    if (taken.results) {
      finish_steps(op, stack, *taken.results);
    } else {
      cpu_fallback(op, stack, taken.refusal, taken.cause);
    }
  }

 private:
  const Steps steps_;
};

}  // namespace

std::optional<Tensors> histogram_between_extremes(Arguments args) {
  const at::Tensor& x = args[0].toTensor();
  if (!args[2].toScalar().equal(args[3].toScalar().toDouble()) || x.numel() == 0) {
    return std::nullopt;
  }
  const auto low = x.min().item<double>(), high = x.max().item<double>();
  const double margin = low < high ? 0 : 1;
  return Tensors{at::histc(x, args[1].toInt(), low - margin, high + margin)};
}

void register_values(torch::Library& library) {
  const std::pair<const char*, Steps> rows[] = {
      {"_unique2", &unique_by_values},
      {"bincount", &bincount_by_values},
      {"masked_scatter", &masked_scatter_by_values},
      {"masked_scatter_", &masked_scatter_by_values},
      {"masked_select", &masked_select_by_values},
      {"masked_select.out", &masked_select_by_values},
  };
  for (const auto& [name, steps] : rows) {
    library.impl(name, torch::CppFunction::makeFromBoxedFunctor(std::make_unique<OperatorInSteps>(steps)));
  }
}

}  // namespace spyre::glue
