#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "spyre/layout/host_type.h"

/// A PyTorch operator that a captured graph still holds whole.
///
///     call buf3 aten.native_layer_norm.default(x, [100], none, none, 1e-05) -> (y, m, r) at='model.py:12'
///     call buf4 aten.cat.default({y : [2, 100] offset=200, none}, -1) -> (buf4)
///     call buf5 aten.mul.Tensor(x, 2.0 : float32) -> (buf5)
///
/// In text a view says what differs from its buffer's own size, stride and offset. Numbers with a point or an exponent are
/// floats, others integers; `true` and `false` are booleans; a number with a type is a tensor of the host. `none` is None,
/// `dtype(float16)` a type, `'tanh'` a string, `[1, 2]` integers, `[0.5]` floats, `{x, y}` tensors.
///
/// What it means is said in one place (`spyre/forms`), for eager and for compiled programs alike; the pass
/// `expand-calls` puts the nodes of its form where the call stood. Sizes of results are PyTorch's own rule,
/// asked by whoever made the call; a form fills them and decides nothing about them.
namespace spyre {

using BufferId = int;

/// What a call sees of a buffer: element i lies at `offset + sum(stride[d] * i[d])` of it.
struct TensorView {
  BufferId buffer =
      -1;  ///< of a result: -1 where nobody asks for it (`none`), as for a gradient that is not needed
  HostType dtype = HostType::kFloat16;
  std::vector<int64_t> size, stride;
  int64_t offset = 0;

  friend bool operator==(const TensorView&, const TensorView&) = default;
};

/// A number of the call: Python's own, which takes no part in choosing a type among its kind
/// (`x * 2` keeps the type of x), or a tensor without dimensions on the host, whose type counts.
struct Number {
  /// Integers are exact up to here, in either sign.
  static constexpr int64_t kMostWhole = int64_t{1} << 53;
  /// PyTorch's largest integer, which says that there is no bound: `x[3:]` ends there.
  static constexpr int64_t kUnbounded = std::numeric_limits<int64_t>::max();

  /// Whether a whole number stays the same in `value`.
  static constexpr bool is_exact(int64_t whole) {
    return whole == kUnbounded || (-kMostWhole <= whole && whole <= kMostWhole);
  }

  enum class Kind : uint8_t { kBool, kInt, kFloat };
  double value = 0;
  Kind kind = Kind::kFloat;
  std::optional<HostType> dtype;  ///< of a tensor on the host; none: Python's own

  /// Towards zero, and within the integers there are.
  int64_t whole() const;

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
  // What operators mean also depends on two settings of the program that calls them.
  HostType default_float = HostType::kFloat32;  ///< torch.get_default_dtype()
  int float32_parts =
      3;  ///< of an fp32 value in a product, 16 bits each: torch.get_float32_matmul_precision()

  friend bool operator==(const Call&, const Call&) = default;
};

/// The tensors a call reads, in the order of its arguments.
std::vector<TensorView> operands_of(const Call& call);

}  // namespace spyre
