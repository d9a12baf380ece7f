#include "spyre/program/device_program.h"

#include <algorithm>

namespace spyre::program {

std::string_view to_string(Residence residence) {
  return residence == Residence::kLx ? "LX" : "HBM";
}

int64_t Tensor::lanes() const {
  int64_t product = 1;
  for (const StickDigit& digit : stick) {
    product *= digit.size;
  }
  return product;
}

const TensorDim* Tensor::find(int dim) const {
  const auto found = std::find_if(dims.begin(), dims.end(), [&](const TensorDim& d) { return d.dim == dim; });
  return found == dims.end() ? nullptr : &*found;
}

bool Tensor::present(int dim) const {
  const TensorDim* found = find(dim);
  return found != nullptr && found->scale > 0;
}

namespace {

int64_t memory_steps(const Tensor& tensor, const TensorDim& dim, const Extents& extents) {
  if (dim.scale < 0 || dim.index_outer) {
    return 1;
  }
  const bool hbm = tensor.residence == Residence::kHbm;
  int64_t elements = hbm ? extents.total[dim.dim] : extents.per_core[dim.dim];
  if (!tensor.own_splits.empty()) {
    elements = extents.total[dim.dim] / tensor.own_splits[dim.dim];
  }
  if (dim.window) {
    const Window& w = *dim.window;
    elements = hbm ? w.input_extent
                   : (elements - 1) * w.stride + (extents.per_core[w.window_dim] - 1) * w.dilation + 1;
  }
  return std::max<int64_t>(ceil_div(elements + dim.gap, dim.per_stick), 1);
}

}  // namespace

void resolve_strides(Tensor& tensor, const Extents& extents) {
  int64_t stride = tensor.lanes();
  for (TensorDim& dim : tensor.dims) {
    dim.extent = memory_steps(tensor, dim, extents);
    dim.stride = dim.scale < 0 || dim.index_outer ? 0 : stride;
    stride *= dim.extent;
  }
}

void resolve_strides(ProgramOp& op) {
  const Extents extents = declared_extents(op);
  for (Tensor& tensor : op.tensors) {
    resolve_strides(tensor, extents);
  }
}

Extents declared_extents(const ProgramOp& op) {
  Extents out;
  for (const ProgramDim& dim : op.dims) {
    out.total.push_back(dim.extent);
    out.per_core.push_back(dim.extent / dim.splits);
  }
  return out;
}

int64_t start_alignment(const Tensor& tensor) {
  return tensor.is_index ? bits_of(tensor.format) / 8 : kStickBytes.count();
}

int64_t allocated_elements(const Tensor& tensor) {
  int64_t product = tensor.lanes();
  for (const TensorDim& dim : tensor.dims) {
    product *= dim.extent;
  }
  return product;
}

}  // namespace spyre::program
