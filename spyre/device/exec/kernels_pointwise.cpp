#include <bit>
#include <cmath>

#include "spyre/device/exec/kernels.h"
#include "spyre/ops/formulas.h"
#include "spyre/program/element.h"

namespace spyre::exec {
namespace {

template <typename T>
using Function = T (*)(T x, T y, T z, const T* k);

/// The expression of a row, over T.
template <typename T>
Function<T> find_function(OpId op) {
  using namespace formulas;  // NOLINT: rows name formulas unqualified
#define SPYRE_POINTWISE(name, inputs, formats, constants, mask, meaning) \
  if (op == OpId::name) {                                                \
    return [](T x, T y, T z, const T* k) -> T {                          \
      [[maybe_unused]] const T k0 = k[0], k1 = k[1], k2 = k[2];          \
      (void)x, (void)y, (void)z;                                         \
      return static_cast<T>(meaning);                                    \
    };                                                                   \
  }
#include "spyre/ops/table.def"
  return nullptr;
}

std::vector<int> all_dims(const BoundOp& bound) {
  std::vector<int> dims;
  for (int d = 0; d < bound.dims(); ++d) {
    dims.push_back(d);
  }
  return dims;
}

/// T is float, or uint32_t for the 32-bit integer ops, whose sums wrap.
template <typename T>
T read(const BoundOp& bound, Operand& operand, const Coordinate& g) {
  if constexpr (std::is_same_v<T, float>) {
    return masked_value(bound, operand, g);
  } else {
    return static_cast<uint32_t>(operand.raw(g));
  }
}

template <typename T>
void run(const Work& work) {
  const Function<T> function = find_function<T>(work.op().info->id);
  SPYRE_CHECK(function != nullptr, "a pointwise row without an expression");
  T k[3] = {};
  for (size_t i = 0; i < work.op().k.size() && i < 3; ++i) {
    k[i] = static_cast<T>(work.op().k[i]);
  }
  const std::vector<int> dims = all_dims(work.bound);
  const auto inputs = static_cast<int>(work.op().inputs.size());
  for (int core = 0; core < static_cast<int>(work.op().cores.size()); ++core) {
    std::vector<Operand> operands;
    for (int i = 0; i < inputs; ++i) {
      operands.push_back(work.input(i, core));
    }
    Sink sink = work.output(core);
    Coordinate g{};
    for_each_point(work.bound.boxes[core], dims, g, work.fault, [&](const Coordinate& at) {
      T values[3] = {};
      for (int i = 0; i < inputs; ++i) {
        values[i] = read<T>(work.bound, operands[i], at);
      }
      const T result = function(values[0], values[1], values[2], k);
      if constexpr (std::is_same_v<T, float>) {
        sink.value(at, result);
      } else {
        sink.raw(at, result);
      }
    });
  }
}

}  // namespace

PointwiseRow pointwise_row(const ProgramOp& op) {
  PointwiseRow row{.function = find_function<float>(op.info->id)};
  for (size_t i = 0; i < op.k.size() && i < 3; ++i) {
    row.k[i] = op.k[i];
    row.whole_k[i] = static_cast<uint32_t>(op.k[i]);
  }
  return row;
}

void run_pointwise(const Work& work) {
  const DataFormat format = work.bound.output().format;
  if (format == DataFormat::IEEE_INT32 || format == DataFormat::SENUINT32) {
    run<uint32_t>(work);
  } else {
    run<float>(work);
  }
}

}  // namespace spyre::exec
