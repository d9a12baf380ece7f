#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "spyre/layout/host_type.h"

/// A PyTorch operator that a captured graph still holds whole.
///
///     call aten.native_layer_norm.default(x : [4, 100], [100], none, none, 1e-05) -> (y : [4, 100], m : [4, 1], r : [4, 1])
///
/// What it means is said in one place (`spyre/forms`), for eager and for compiled programs alike; the pass
/// `expand-calls` puts the nodes of its form where the call stood. Sizes of results are PyTorch's own rule,
/// asked by whoever made the call; a form fills them and decides nothing about them.
namespace spyre {

using BufferId = int;

/// What a call sees of a buffer: element i lies at `offset + sum(stride[d] * i[d])` of it.
struct TensorView {
  BufferId buffer = -1;
  HostType dtype = HostType::kFloat16;
  std::vector<int64_t> size, stride;
  int64_t offset = 0;

  friend bool operator==(const TensorView&, const TensorView&) = default;
};

/// A number of the call: Python's own, which takes no part in choosing a type among its kind
/// (`x * 2` keeps the type of x), or a tensor without dimensions on the host, whose type counts.
struct Number {
  enum class Kind : uint8_t { kBool, kInt, kFloat };
  double value = 0;
  Kind kind = Kind::kFloat;
  std::optional<HostType> dtype;  ///< of a tensor on the host; none: Python's own

  friend bool operator==(const Number&, const Number&) = default;
};

using TensorList = std::vector<std::optional<TensorView>>;

/// One argument, in the order of the operator's schema. `std::monostate` is None.
using Argument = std::variant<std::monostate, TensorView, Number, std::string, HostType, std::vector<int64_t>,
                              std::vector<double>, TensorList>;

struct Call {
  std::string op;  ///< with its overload: aten.native_layer_norm.default
  std::vector<Argument> arguments;
  std::vector<TensorView> results;

  friend bool operator==(const Call&, const Call&) = default;
};

}  // namespace spyre
