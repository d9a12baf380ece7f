#pragma once

#include <array>
#include <span>

#include "spyre/device/exec/access.h"
#include "spyre/device/exec/interpreter.h"

/// What each family of ops does, one function each. `interpret_op` picks one by the op's row.
namespace spyre::exec {

/// What a kernel works with: the op, the memory it reads, the buffer its results go to.
struct Work {
  const BoundOp& bound;
  CardMemory& memory;
  Fault& fault;
  WriteBuffer& writes;
  Sums sums = Sums::kInOrder;

  const ProgramOp& op() const { return *bound.op; }
  Operand input(int i, int core) const { return {bound, op().inputs[i], core, memory, fault}; }
  Sink output(int core) const { return {bound, core, memory, fault, writes}; }
};

void run_pointwise(const Work& work);    ///< one value per point, from the row's expression
void run_reduction(const Work& work);    ///< folds the dims the result does not have
void run_contraction(const Work& work);  ///< matmul and convolutions: sum of products over those dims
void run_pool(const Work& work);         ///< mean over a window
void run_copy(const Work& work);         ///< identity, gather, scatter, restickify: bits, not values
void run_conversion(const Work& work);   ///< other format, other order in the sticks
void run_layernorm(const Work& work);    ///< exx2, layernormscale, layernormnorm
void run_topk(const Work& work);         ///< topkvalue, topkindex, keepbyindex
void run_quant_scale(const Work& work);  ///< quantscalepertokenfp8
void run_shuffle(const Work& work);      ///< LX to LX between cores

/// The expression of a pointwise row over fp32, with its constants: what `run_pointwise` evaluates per point.
struct PointwiseRow {
  float (*function)(float x, float y, float z, const float* k) = nullptr;
  std::array<float, 3> k{};
  std::array<uint32_t, 3> whole_k{};  ///< the constants of the 32-bit integer ops
};
PointwiseRow pointwise_row(const ProgramOp& op);

/// A reduction row: where a fold starts and how it takes in one more value. A mean's result is multiplied by
/// `reduction_factor`, any other's by 1.
template <typename T>
struct ReducerOf {
  T start = 0;
  T (*fold)(T acc, T x) = nullptr;
};
using Reducer = ReducerOf<float>;
Reducer find_reducer(OpId op);
float reduction_factor(const ProgramOp& op);

/// Dims of the op that the result has, and those it does not.
struct DimRoles {
  std::vector<int> kept, reduced;
};
DimRoles roles_by_result(const BoundOp& bound);

/// Where widening puts the element at position `c` along a 16-bit stick: 64p + 8g + 4s + e -> 64p + 32s + 4g + e. One
/// stick becomes two, whose groups of 4 alternate. Conversions and products with an fp32 result leave this order.
constexpr int64_t widened_position(int64_t c) {
  return c / 64 * 64 + c / 4 % 2 * 32 + c % 64 / 8 * 4 + c % 4;
}

/// Where a conversion puts the element at position `c` along the stick dim. Elements move in groups of 4 or 8:
///
///     dl16tofp32   64p + 8g + 4s + e    ->  64p + 32s + 4g + e      one stick becomes two
///     fp32todl16   the way back
///     qfp8ch       128t + 64h + 8g + e  ->  128t + 16g + 8h + e     two sticks become one
///     fp8todl16    the way back
///
/// The other conversions keep positions; what order their sticks have is in the layouts (qfp8wt, qfp8mb).
int64_t converted_position(OpId op, int64_t c);
/// What a conversion stores. Into fp8 it saturates: a finite value beyond the range becomes the largest one, not NaN.
uint32_t converted_code(DataFormat format, float value);

/// The value of an input at a point, masks applied.
float masked_value(const BoundOp& bound, Operand& operand, const Coordinate& g);

/// Calls `visit(g)` for every point of `box` along `dims`, the last dim fastest; other coordinates of `g`
/// stay. Stops early once the fault is raised.
template <typename Visit>
void for_each_point(const Box& box, std::span<const int> dims, Coordinate& g, const Fault& fault,
                    Visit&& visit) {
  if (fault.raised()) {
    return;
  }
  if (dims.empty()) {
    visit(g);
    return;
  }
  const int dim = dims.front();
  for (g[dim] = box.lower[dim]; g[dim] < box.upper[dim]; ++g[dim]) {
    for_each_point(box, dims.subspan(1), g, fault, visit);
  }
}

/// The position of the core that gives `core` the element at `g` of a relayout: itself if it holds it, else
/// the lowest one that does; -1 if none.
int holder_of(const BoundOp& bound, int tensor, int core, const Coordinate& g);

/// Cores that must write a group's result: the last one where the result is in HBM, each one where it is in
/// LX.
std::span<const int> writers(const BoundOp& bound, const std::vector<int>& group);

}  // namespace spyre::exec
