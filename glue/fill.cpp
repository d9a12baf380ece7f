#include <ATen/core/Tensor.h>
#include <ATen/ops/_local_scalar_dense.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/scalar_tensor.h>

#include <cstring>

#include "glue/device_state.h"
#include "glue/error.h"
#include "glue/kernels.h"
#include "glue/tensor_access.h"

namespace spyre::glue {
namespace {

/// The value as the bits of one element on the card, by way of the tensor's dtype.
uint64_t encode(const at::Scalar& value, HostType type, DataFormat format) {
  const at::Tensor host = at::scalar_tensor(value, at::dtype(dtype_of(type)).device(c10::kCPU));
  const Convert convert = unwrap(find_conversion(type, format, Direction::kHostToDevice, number_policy()));
  const auto* source = static_cast<const std::byte*>(host.const_data_ptr());
  uint64_t bits = 0;
  if (convert.run(source, reinterpret_cast<std::byte*>(&bits), 1) != 1) {
    raise(convert.misfit(source));
  }
  return bits;
}

}  // namespace

at::Tensor& fill_scalar(at::Tensor& self, const at::Scalar& value) {
  if (self.numel() == 0) {
    return self;
  }
  const TensorAccess to = access(self);
  const uint64_t bits = encode(value, to.type, to.layout.device_dtype);
  check(transfer(
      stream_of(current_stream(to.device)), to.bytes(), TransferDirection::kFill,
      [to, bits](std::span<std::byte> bytes) { return fill(bytes, to.layout, to.view, bits); },
      Blocking::kYes));
  return self;
}

at::Tensor& fill_tensor(at::Tensor& self, const at::Tensor& value) {
  TORCH_CHECK(value.dim() == 0, "fill_ only supports 0-dimension value tensor but got tensor with ",
              value.dim(), " dimensions.");
  return fill_scalar(self, value.item());
}

at::Tensor& zero_(at::Tensor& self) {
  return fill_scalar(self, 0);
}

at::Scalar local_scalar_dense(const at::Tensor& self) {
  const at::Tensor host = at::empty(self.sizes(), self.options().device(c10::kCPU));
  copy_from(self, host, /*non_blocking=*/false);
  return at::_local_scalar_dense(host);
}

void record_stream(at::Tensor& self, c10::Stream stream) {
  // Queued work keeps the memory it uses alive, so there is nothing to remember; the arguments still must fit.
  TORCH_CHECK(stream.device_type() == c10::kPrivateUse1,
              "record_stream of a Spyre tensor takes a Spyre stream, found ", stream);
  (void)self;
}

}  // namespace spyre::glue
