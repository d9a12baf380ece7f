#include <ATen/EmptyTensor.h>
#include <ATen/InferSize.h>
#include <ATen/TensorUtils.h>
#include <ATen/WrapDimUtils.h>

#include "glue/kernels.h"
#include "glue/storage.h"
#include "glue/tensor_impl.h"

namespace spyre::glue {
namespace {

at::Tensor make_view(const at::Tensor& self, c10::IntArrayRef size, c10::IntArrayRef stride, int64_t offset) {
  auto result = at::detail::make_tensor<SpyreTensorImpl>(c10::TensorImpl::VIEW, c10::Storage(self.storage()),
                                                         self.key_set(), self.dtype());
  auto* impl = static_cast<SpyreTensorImpl*>(result.unsafeGetTensorImpl());
  impl->set_storage_offset(offset);
  impl->set_sizes_and_strides(size, stride);
  if (const auto* base = dynamic_cast<const SpyreTensorImpl*>(self.unsafeGetTensorImpl())) {
    impl->set_own_layout(base->own_layout());
    impl->set_storage_bytes(base->is_storage_bytes());
  }
  return result;
}

/// As PyTorch's own check, but in elements: the bytes of a storage include padding that no view can reach.
void check_in_bounds(const at::Tensor& self, c10::IntArrayRef size, c10::IntArrayRef stride, int64_t offset) {
  if (c10::multiply_integers(size) == 0) {
    return;
  }
  const size_t item = self.dtype().itemsize();
  const auto needed =
      static_cast<int64_t>(at::detail::computeStorageNbytes(size, stride, item, offset) / item);
  const int64_t held =
      element_capacity(*self.storage().unsafeGetStorageImpl(), host_type_of(self.scalar_type()));
  TORCH_CHECK(needed <= held, "as_strided: sizes ", size, ", strides ", stride, ", storage offset ", offset,
              " requiring ", needed, " elements are out of bounds for a storage of ", held, " elements");
}

}  // namespace

at::Tensor as_strided(const at::Tensor& self, c10::IntArrayRef size, c10::IntArrayRef stride,
                      std::optional<int64_t> storage_offset) {
  const int64_t offset = storage_offset.value_or(self.storage_offset());
  TORCH_CHECK(size.size() == stride.size(), "mismatch in length of strides and shape");
  for (const int64_t step : stride) {
    TORCH_CHECK(step >= 0,
                "as_strided: Negative strides are not supported at the moment, got strides: ", stride);
  }
  TORCH_CHECK(offset >= 0, "Tensor: invalid storage offset ", offset);
  check_in_bounds(self, size, stride, offset);
  return make_view(self, size, stride, offset);
}

at::Tensor view(const at::Tensor& self, c10::IntArrayRef size) {
  const at::DimVector inferred = at::infer_size_dv(size, self.numel());
  const auto stride = at::detail::computeStride(self.sizes(), self.strides(), inferred);
  TORCH_CHECK(stride.has_value(),
              "view size is not compatible with input tensor's size and stride (at least one dimension spans "
              "across two "
              "contiguous subspaces). Use .reshape(...) instead.");
  return make_view(self, inferred, *stride, self.storage_offset());
}

at::Tensor reshape_alias(const at::Tensor& self, c10::IntArrayRef size, c10::IntArrayRef stride) {
  return make_view(self, size, stride, self.storage_offset());
}

at::Tensor alias(const at::Tensor& self) {
  return make_view(self, self.sizes(), self.strides(), self.storage_offset());
}

at::Tensor unfold(const at::Tensor& self, int64_t dimension, int64_t size, int64_t step) {
  const int64_t dim = at::maybe_wrap_dim(dimension, self.dim(), /*wrap_scalar=*/true);
  const int64_t extent = self.dim() == 0 ? 1 : self.size(dim);
  TORCH_CHECK(size <= extent, "maximum size for tensor at dimension ", dim, " is ", extent, " but size is ",
              size);
  TORCH_CHECK(size >= 0, "size is ", size, " but must be >= 0");
  TORCH_CHECK(step > 0, "step is ", step, " but must be > 0");
  std::vector<int64_t> sizes = self.sizes().vec();
  std::vector<int64_t> strides = self.strides().vec();
  sizes.push_back(size);
  strides.push_back(self.dim() == 0 ? 1 : self.stride(dim));
  if (self.dim() != 0) {
    sizes[static_cast<size_t>(dim)] = (extent - size) / step + 1;
    strides[static_cast<size_t>(dim)] *= step;
  }
  return make_view(self, sizes, strides, self.storage_offset());
}

at::Tensor view_dtype(const at::Tensor& self, c10::ScalarType dtype) {
  if (dtype == self.scalar_type()) {
    return spyre::glue::alias(self);
  }
  TORCH_CHECK(false, "a Spyre tensor of ", self.scalar_type(), " cannot be viewed as ", dtype,
              ": on the card its elements have the card's own format, not the host's bits",
              "\n  try  .to(dtype) to convert the values, or .cpu().view(dtype) for the host's bits");
}

at::Tensor as_strided_with_layout(const at::Tensor& self, c10::IntArrayRef size, c10::IntArrayRef stride,
                                  int64_t storage_offset, std::optional<DeviceLayout> layout) {
  at::Tensor result = make_view(self, size, stride, storage_offset);
  if (layout.has_value()) {
    static_cast<SpyreTensorImpl*>(result.unsafeGetTensorImpl())->set_own_layout(std::move(layout));
  }
  return result;
}

}  // namespace spyre::glue
