#pragma once

#include <map>

#include "spyre/codegen/superdsc/plan.h"

/// Values that are known only at launch: addresses of arguments and of the pool, runtime extents.
///
/// In the artifact a symbol is a negative number. Numbers run over the whole bundle in file order; inside one
/// file the extents come first, then for every tensor its base, the start of its slice if that differs, and
/// one more for each core that starts elsewhere than core 0. Two files never share a number.
///
///     X on two cores, slice at 512:   -1 base   -2 base + 512   -3 base + 512 + what core 1 skips
namespace spyre::superdsc {

enum class SymbolKind : uint8_t {
  kKernel,
  kKernelSlice,
  kKernelDerived,
  kKernelDerivedSymbolic,
  kPool,
  kDimension
};
std::string_view to_string(SymbolKind kind);

struct Symbol {
  SymbolKind kind = SymbolKind::kKernel;
  int64_t arg_index = -1;                     ///< of the kernel kinds
  int64_t offset = 0;                         ///< bytes from the argument's base, or from the pool's
  std::map<std::string, int64_t> per_extent;  ///< more bytes per unit of a runtime extent
  std::string dimension;                      ///< name of the runtime extent
  int tensor = -1;                            ///< whose address it is

  friend bool operator==(const Symbol&, const Symbol&) = default;
};

/// The symbols of one op, numbered from 0 in the order above.
struct OpSymbols {
  std::vector<Symbol> all;
  std::vector<int> of_dim;                  ///< [dim], -1 when the extent is fixed
  std::vector<std::vector<int>> of_tensor;  ///< [tensor][core], empty for a tensor in LX

  /// What an execution must bind, in binding order: extents, then addresses by tensor and core, each once.
  std::vector<int> binding_order() const;
};

OpSymbols number_symbols(const SdscPlan& plan);

}  // namespace spyre::superdsc
