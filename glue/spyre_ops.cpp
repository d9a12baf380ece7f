// The operators of the namespace `spyre::` that scripts call by name: ATen's own under other names and
// bounds.
//
// Each is written in ATen's operators and registered without a dispatch key, so that one function serves the
// card, the CPU, tensors without data, autograd and tracing. What runs on the card is what those operators
// run there. Operators that only the compiler knows are in python/torch_spyre/_inductor/customops.py.

#include <ATen/ATen.h>
#include <ATen/WrapDimUtils.h>
#include <torch/library.h>

#include <cmath>
#include <set>

namespace spyre::glue {
namespace {

using at::Tensor;

// ---- norms and activations

Tensor rms_norm(const Tensor& x, c10::SymIntArrayRef normalized_shape, const std::optional<Tensor>& weight,
                double eps) {
  return at::rms_norm_symint(x, normalized_shape, weight, eps);
}

Tensor layer_norm(const Tensor& x, c10::SymIntArrayRef normalized_shape, const std::optional<Tensor>& weight,
                  const std::optional<Tensor>& bias, double eps) {
  return at::layer_norm_symint(x, normalized_shape, weight, bias, eps);
}

Tensor gelu(const Tensor& input, c10::string_view approximate) {
  return at::gelu(input, approximate);
}

Tensor softplus(const Tensor& input, double beta, double threshold) {
  return at::softplus(input, beta, threshold);
}

/// Keeps the dtype of the input, as upstream does; PyTorch's own becomes a float where a bound is one.
Tensor clamp(const Tensor& input, const std::optional<at::Scalar>& min,
             const std::optional<at::Scalar>& max) {
  for (const auto& bound : {min, max}) {
    TORCH_CHECK(!bound || !bound->isFloatingPoint() || input.is_floating_point(),
                "spyre::clamp: found a bound that is a float for an input of ", input.scalar_type(),
                ", allowed: whole numbers, because the result keeps the dtype of the input");
  }
  return at::clamp(input, min, max);
}

/// 1 where the input is 0, in the dtype of the input.
Tensor logical_not(const Tensor& input) {
  return at::logical_not(input).to(input.scalar_type());
}

// ---- the largest

/// Up to where a dtype holds every whole number, on the card and off it.
int64_t exact_up_to(c10::ScalarType dtype) {
  switch (dtype) {
    case at::kBFloat16:
      return 256;
    case at::kHalf:
      return 1024;  // 9 fraction bits on the card
    case at::kFloat:
      return int64_t{1} << 24;
    case at::kByte:
      return 255;
    case at::kChar:
      return 127;
    case at::kShort:
      return 32767;
    default:
      return INT32_MAX;  // what the card stores of the wider ones
  }
}

Tensor topkvalue(const Tensor& x, c10::SymInt k, int64_t dim) {
  return std::get<0>(at::topk_symint(x, k, dim, /*largest=*/true, /*sorted=*/true));
}

/// Positions come in the dtype of the input. A dtype that cannot tell all of them apart is refused.
Tensor topkindex(const Tensor& x, c10::SymInt k, int64_t dim) {
  const c10::SymInt extent = x.dim() == 0 ? c10::SymInt(1) : x.sym_size(dim);
  const int64_t exact = exact_up_to(x.scalar_type());
  TORCH_CHECK(extent <= exact + 1, "spyre::topkindex: found ", extent, " positions for an input of ",
              x.scalar_type(), ", allowed: at most ", exact + 1,
              ", because positions are returned in the dtype of the input; torch.topk "
              "returns them as int64");
  return std::get<1>(at::topk_symint(x, k, dim, /*largest=*/true, /*sorted=*/true)).to(x.scalar_type());
}

// ---- tensors from numbers

Tensor full(c10::SymIntArrayRef size, const at::Scalar& fill_value, c10::Device device,
            std::optional<c10::ScalarType> dtype) {
  return at::full_symint(size, fill_value, dtype, std::nullopt, device, std::nullopt);
}

/// One element, 1.
Tensor ones_scalar(c10::Device device, std::optional<c10::ScalarType> dtype) {
  return at::ones({1}, dtype, std::nullopt, device, std::nullopt);
}

Tensor empty(c10::SymIntArrayRef size, c10::Device device, std::optional<c10::ScalarType> dtype) {
  return at::empty_symint(size, dtype, std::nullopt, device, std::nullopt, std::nullopt);
}

/// Marks a number in a graph; it stays a number, for whichever operator takes it.
at::Scalar constant(const at::Scalar& fill_value, c10::ScalarType dtype, c10::Device /*device*/) {
  TORCH_CHECK(!c10::isIntegralType(dtype, /*includeBool=*/true) || !fill_value.isFloatingPoint() ||
                  fill_value.toDouble() == std::trunc(fill_value.toDouble()),
              "spyre::constant: found ", fill_value.toDouble(), " for ", dtype, ", allowed: whole numbers");
  return fill_value;
}

// ---- copies

/// A copy whose sticks run along the other one of the last two dimensions: sticks follow the dimension that
/// strides call innermost.
Tensor restickify(const Tensor& x) {
  const auto contiguous = c10::MemoryFormat::Contiguous;
  if (x.dim() < 2 || x.sym_stride(-1) > x.sym_stride(-2)) {
    return x.clone(contiguous);
  }
  return x.mT().clone(contiguous).mT();
}

/// The part of `output` that `overwrite` writes: as long as the input along each of `dims`, from the offset
/// on.
Tensor part(const Tensor& input, Tensor output, c10::IntArrayRef dims, c10::SymIntArrayRef offsets) {
  TORCH_CHECK(dims.size() == offsets.size(), "spyre::overwrite: found ", dims.size(), " dims and ",
              offsets.size(), " offsets, allowed: one offset for each dim");
  TORCH_CHECK(input.dim() == output.dim(), "spyre::overwrite: found an input of ", input.dim(),
              " dimensions for an output of ", output.dim(), ", allowed: the same number");
  std::set<int64_t> seen;
  for (size_t i = 0; i < dims.size(); ++i) {
    const int64_t dim = at::maybe_wrap_dim(dims[i], output.dim());
    TORCH_CHECK(seen.insert(dim).second, "spyre::overwrite: dim ", dim, " is named twice");
    TORCH_CHECK(offsets[i] >= 0 && offsets[i] + input.sym_size(dim) <= output.sym_size(dim),
                "spyre::overwrite: found ", input.sym_size(dim), " elements at offset ", offsets[i],
                " of dim ", dim, ", allowed: inside the output's ", output.sym_size(dim));
    output = output.narrow_symint(dim, offsets[i], input.sym_size(dim));
  }
  TORCH_CHECK(input.sym_sizes() == output.sym_sizes(), "spyre::overwrite: found an input of size ",
              input.sym_sizes(), ", allowed: ", output.sym_sizes(),
              ", the output's along the dims without an offset");
  return output;
}

void overwrite(const Tensor& input, const Tensor& output, c10::IntArrayRef dims,
               c10::SymIntArrayRef offsets) {
  part(input, output, dims, offsets).copy_(input);
}

Tensor overwrite_f(const Tensor& input, const Tensor& output, c10::IntArrayRef dims,
                   c10::SymIntArrayRef offsets) {
  Tensor result = output.clone();
  part(input, result, dims, offsets).copy_(input);
  return result;
}

/// The tensor at another place of its storage; 0 stands for where it is.
Tensor moved(const Tensor& tensor, c10::SymInt offset) {
  TORCH_CHECK(offset >= 0, "spyre::copy_from_d2d: found offset ", offset, ", allowed: 0 and up");
  if (offset == 0 || offset == tensor.sym_storage_offset()) {
    return tensor;
  }
  return tensor.as_strided_symint(tensor.sym_sizes(), tensor.sym_strides(), offset);
}

/// Between two tensors of one device. Offsets count elements of the storage.
void copy_from_d2d(const Tensor& src, const Tensor& dst, c10::SymInt src_off, c10::SymInt dst_off) {
  TORCH_CHECK(src.device() == dst.device(), "spyre::copy_from_d2d: found ", src.device(), " and ",
              dst.device(), ", allowed: two tensors of one device; Tensor.copy_ copies between devices");
  TORCH_CHECK(src.sym_sizes() == dst.sym_sizes(), "spyre::copy_from_d2d: found sizes ", src.sym_sizes(),
              " and ", dst.sym_sizes(), ", allowed: the same");
  moved(dst, dst_off).copy_(moved(src, src_off));
}

/// Upstream's is a copy that no pass removes. Here no pass removes one that something reads.
Tensor copy_forced(const Tensor& src, const Tensor& dst) {
  TORCH_CHECK(src.device() == dst.device(), "spyre::copy_forced: found ", src.device(), " and ", dst.device(),
              ", allowed: two tensors of one device");
  return dst.copy_(src);
}

// ---- 8-bit floats: e4m3, whose largest number is 448

constexpr double kLargestFp8 = 448.0;

/// Converts only; scaling and clamping come before.
Tensor qfp8ch(const Tensor& input) {
  TORCH_CHECK(input.is_floating_point(), "spyre::qfp8ch: found ", input.scalar_type(),
              ", allowed: floating point");
  return input.to(at::kFloat8_e4m3fn);
}

Tensor scaled_to_fp8(const char* name, const Tensor& input, const Tensor& scale) {
  TORCH_CHECK(input.is_floating_point() && scale.is_floating_point(), "spyre::", name, ": found ",
              input.scalar_type(), " and a scale of ", scale.scalar_type(), ", allowed: floating point");
  const Tensor scaled = input * scale.reciprocal();
  TORCH_CHECK(scaled.sym_sizes() == input.sym_sizes(), "spyre::", name, ": found a scale of size ",
              scale.sym_sizes(), ", allowed: one that broadcasts to the input's ", input.sym_sizes());
  return qfp8ch(scaled.clamp(-kLargestFp8, kLargestFp8));
}

Tensor quantize_fp8_with_scale(const Tensor& input, const Tensor& scale) {
  return scaled_to_fp8("quantize_fp8_with_scale", input, scale);
}

Tensor quantize_weight_fp8_with_scale(const Tensor& input, const Tensor& scale) {
  return scaled_to_fp8("quantize_weight_fp8_with_scale", input, scale);
}

Tensor dequantize_fp8_with_scale(const Tensor& input, const Tensor& scale) {
  TORCH_CHECK(input.scalar_type() == at::kFloat8_e4m3fn, "spyre::dequantize_fp8_with_scale: found ",
              input.scalar_type(), ", allowed: ", at::kFloat8_e4m3fn);
  TORCH_CHECK(scale.scalar_type() == at::kHalf, "spyre::dequantize_fp8_with_scale: found a scale of ",
              scale.scalar_type(), ", allowed: ", at::kHalf);
  const Tensor scaled = input.to(at::kHalf) * scale;
  TORCH_CHECK(scaled.sym_sizes() == input.sym_sizes(),
              "spyre::dequantize_fp8_with_scale: found a scale of size ", scale.sym_sizes(),
              ", allowed: one that broadcasts to the input's ", input.sym_sizes());
  return scaled;
}

TORCH_LIBRARY(spyre, m) {
  m.def("rms_norm(Tensor x, SymInt[] normalized_shape, Tensor? weight=None, float eps=1e-05) -> Tensor",
        &rms_norm);
  m.def(
      "layer_norm(Tensor x, SymInt[] normalized_shape, Tensor? weight=None, Tensor? bias=None, float "
      "eps=1e-05) -> "
      "Tensor",
      &layer_norm);
  m.def("gelu(Tensor input, str approximate='none') -> Tensor", &gelu);
  m.def("softplus(Tensor input, float beta=1.0, float threshold=20.0) -> Tensor", &softplus);
  m.def("clamp(Tensor input, Scalar? min=None, Scalar? max=None) -> Tensor", &clamp);
  m.def("logical_not(Tensor input) -> Tensor", &logical_not);
  m.def("topkvalue(Tensor x, SymInt k, int dim) -> Tensor", &topkvalue);
  m.def("topkindex(Tensor x, SymInt k, int dim) -> Tensor", &topkindex);

  m.def("full(SymInt[] size, Scalar fill_value, Device device, ScalarType? dtype=None) -> Tensor", &full);
  m.def("ones_scalar(Device device, ScalarType? dtype=None) -> Tensor", &ones_scalar);
  m.def("empty(SymInt[] size, Device device, ScalarType? dtype=None) -> Tensor", &empty);
  m.def("constant(Scalar fill_value, ScalarType dtype, Device device) -> Scalar", &constant);

  m.def("restickify(Tensor x) -> Tensor", &restickify);
  m.def("overwrite(Tensor input, Tensor(a!) output, int[] dims, SymInt[] offsets) -> ()", &overwrite);
  m.def("overwrite_f(Tensor input, Tensor output, int[] dims, SymInt[] offsets) -> Tensor", &overwrite_f);
  m.def("copy_from_d2d(Tensor src, Tensor(a!) dst, SymInt src_off=0, SymInt dst_off=0) -> ()",
        &copy_from_d2d);
  m.def("copy_forced(Tensor src, Tensor(a!) dst) -> Tensor(a!)", &copy_forced);

  m.def("qfp8ch(Tensor input) -> Tensor", &qfp8ch);
  m.def("quantize_fp8_with_scale(Tensor input, Tensor scale) -> Tensor", &quantize_fp8_with_scale);
  m.def("quantize_weight_fp8_with_scale(Tensor input, Tensor scale) -> Tensor",
        &quantize_weight_fp8_with_scale);
  m.def("dequantize_fp8_with_scale(Tensor input, Tensor scale) -> Tensor", &dequantize_fp8_with_scale);
}

}  // namespace
}  // namespace spyre::glue
