#include "spyre/codegen/superdsc/symbols.h"

#include <algorithm>

#include "spyre/codegen/superdsc/physical.h"

namespace spyre::superdsc {
namespace {

int add(OpSymbols& symbols, Symbol symbol) {
  symbols.all.push_back(std::move(symbol));
  return static_cast<int>(symbols.all.size()) - 1;
}

std::vector<int> number_tensor(const SdscPlan& plan, int index, OpSymbols& symbols) {
  const Tensor& tensor = plan.tensors[index];
  const bool pool = tensor.arg->allocation.place == Place::kHbmPool;
  const int64_t slice = slice_offset_bytes(plan, tensor);
  const int64_t base = pool ? tensor.arg->allocation.value : 0;
  const auto add_symbol = [&](SymbolKind kind, int64_t offset,
                              std::map<std::string, int64_t> per_extent = {}) {
    return add(symbols, {.kind = pool ? SymbolKind::kPool : kind,
                         .arg_index = tensor.arg->arg_index(),
                         .offset = offset,
                         .per_extent = std::move(per_extent),
                         .tensor = index});
  };
  int start = add_symbol(SymbolKind::kKernel, base);
  if (slice > 0) start = add_symbol(SymbolKind::kKernelSlice, base + slice);
  std::vector<int> of_core;
  for (int64_t core = 0; core < plan.cores; ++core) {
    const int64_t at = base + slice + core_offset_bytes(plan, tensor, core);
    std::map<std::string, int64_t> per_extent;
    for (const auto& [dim, bytes] : core_bytes_per_extent(plan, tensor, core)) {
      per_extent[plan.dims[dim].dynamic] += bytes;
    }
    if (symbols.all[start].offset == at && symbols.all[start].per_extent == per_extent) {
      of_core.push_back(start);
      continue;
    }
    const auto kind = per_extent.empty() ? SymbolKind::kKernelDerived : SymbolKind::kKernelDerivedSymbolic;
    of_core.push_back(add_symbol(kind, at, std::move(per_extent)));
    if (core == 0) start = of_core.back();
  }
  return of_core;
}

}  // namespace

std::string_view to_string(SymbolKind kind) {
  switch (kind) {
    case SymbolKind::kKernel:
      return "kernel";
    case SymbolKind::kKernelSlice:
      return "kernel_slice";
    case SymbolKind::kKernelDerived:
      return "kernel_derived";
    case SymbolKind::kKernelDerivedSymbolic:
      return "kernel_derived_symbolic";
    case SymbolKind::kPool:
      return "pool";
    case SymbolKind::kDimension:
      return "dimension";
  }
  return "unknown";
}

std::vector<int> OpSymbols::binding_order() const {
  std::vector<int> order;
  const auto bind = [&](int symbol) {
    if (symbol >= 0 && std::find(order.begin(), order.end(), symbol) == order.end()) order.push_back(symbol);
  };
  for (const int symbol : of_dim) bind(symbol);
  for (const auto& cores : of_tensor) {
    for (const int symbol : cores) bind(symbol);
  }
  return order;
}

OpSymbols number_symbols(const SdscPlan& plan) {
  OpSymbols symbols;
  for (const Dim& dim : plan.dims) {
    symbols.of_dim.push_back(
        dim.dynamic.empty() ? -1 : add(symbols, {.kind = SymbolKind::kDimension, .dimension = dim.dynamic}));
  }
  for (size_t i = 0; i < plan.tensors.size(); ++i) {
    symbols.of_tensor.push_back(plan.tensors[i].in_lx() ? std::vector<int>()
                                                        : number_tensor(plan, static_cast<int>(i), symbols));
  }
  return symbols;
}

}  // namespace spyre::superdsc
