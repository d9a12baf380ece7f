#include "spyre/device/timing/access_pattern.h"

#include <algorithm>
#include <vector>

#include "spyre/cost/memory.h"

namespace spyre::timing {
namespace {

using exec::BoundOp;
using program::Residence;
using program::Tensor;
using program::TensorDim;

/// A curve that was fitted to the card's memory, on another one.
double on(const Rates& rates, double curve) {
  return curve * rates.hbm_one_way / fitted_rates().hbm_one_way;
}

bool in_hbm(const Tensor& tensor) {
  return tensor.residence == Residence::kHbm;
}

/// The tensor as a matrix: columns along its stick, everything else is rows.
struct Matrix {
  int64_t rows = 1, cols = 1;
};

Matrix matrix_of(const BoundOp& bound, const Tensor& tensor) {
  Matrix matrix;
  for (const TensorDim& dim : tensor.dims) {
    if (dim.scale > 0) (dim.per_stick > 1 ? matrix.cols : matrix.rows) *= bound.limit[dim.dim];
  }
  return matrix;
}

/// Dims of more than one step beside the stick, outermost first.
std::vector<int> row_dims(const BoundOp& bound, const Tensor& tensor) {
  std::vector<int> dims;
  for (auto dim = tensor.dims.rbegin(); dim != tensor.dims.rend(); ++dim) {
    if (dim->scale > 0 && dim->per_stick == 1 && bound.limit[dim->dim] > 1) dims.push_back(dim->dim);
  }
  return dims;
}

bool has_gap(const Tensor& tensor, int dim) {
  const TensorDim* found = tensor.find(dim);
  return found != nullptr && found->gap > 0;
}

std::optional<double> copy_rate(const BoundOp& bound, const Rates& rates) {
  const Tensor &from = bound.input(0), &to = bound.output();
  if (from.through || to.through || !in_hbm(from) || !in_hbm(to)) return std::nullopt;
  if (bound.op->info->id == OpId::ReStickifyOpHBM) return rates.stick_swap;
  const std::vector<int> outer = row_dims(bound, to);
  const Matrix matrix = matrix_of(bound, to);
  if (outer.size() == 2 && row_dims(bound, from) == std::vector<int>{outer[1], outer[0]}) {
    return on(rates, swap_outer_rate(bound.limit[outer[1]], bound.limit[outer[0]], matrix.cols));
  }
  for (const int dim : outer) {
    if (!has_gap(to, dim)) continue;
    return on(rates, dim == outer.front() ? concat_partition_rate(matrix.rows, matrix.cols)
                                          : concat_row_rate(matrix.cols));
  }
  return std::nullopt;
}

/// One operand that is whole and one that lacks a dim of the result, both off-chip.
std::optional<double> broadcast_rate(const BoundOp& bound, const Rates& rates) {
  const Tensor& out = bound.output();
  bool whole = false, lacks_rows = false, lacks_columns = false;
  for (const int input : bound.op->inputs) {
    const Tensor& tensor = bound.tensors[input];
    if (!in_hbm(tensor)) continue;
    bool complete = true;
    for (const TensorDim& dim : out.dims) {
      if (dim.scale < 0 || bound.limit[dim.dim] == 1 || tensor.present(dim.dim)) continue;
      complete = false;
      (dim.per_stick > 1 ? lacks_columns : lacks_rows) = true;
    }
    whole |= complete;
  }
  if (!whole || (!lacks_rows && !lacks_columns)) return std::nullopt;
  const Matrix matrix = matrix_of(bound, out);
  return on(rates, lacks_columns ? column_broadcast_rate(matrix.rows, matrix.cols)
                                 : row_broadcast_rate(matrix.rows, matrix.cols));
}

std::optional<double> reduction_rate(const BoundOp& bound, bool alone, const Rates& rates) {
  if (!in_hbm(bound.input(0))) return std::nullopt;
  if (bound.op->nonstick) return rates.outer_reduction;
  if (!alone) return std::nullopt;
  const int64_t rows = matrix_of(bound, bound.input(0)).rows;
  return lone_reduction_rate(rows, static_cast<int>(bound.op->cores.size()), rates);
}

}  // namespace

std::optional<double> pattern_rate(const BoundOp& bound, bool alone, const Rates& rates) {
  switch (bound.op->info->family) {
    case OpFamily::kCopy:
      return copy_rate(bound, rates);
    case OpFamily::kPointwise:
      return broadcast_rate(bound, rates);
    case OpFamily::kReduction:
      return reduction_rate(bound, alone, rates);
    default:
      return std::nullopt;
  }
}

}  // namespace spyre::timing
