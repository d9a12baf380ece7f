#include "spyre/codegen/superdsc/constants.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>

#include "spyre/codegen/superdsc/plan.h"
#include "spyre/layout/sen169.h"

namespace spyre::superdsc {
namespace {

// The value that stands for "not there" in padding lanes, when the op must not see them.
std::optional<Mask> mask_of(const SdscPlan& plan) {
  const Tensor& output = plan.output();
  for (const TensorDim& d : output.dims) {
    const Dim& dim = plan.dims[d.dim];
    const bool padded = dim.extent != dim.logical;
    const bool reduced = d.scale == -2 && plan.op->is_reduction;
    const bool exponential = plan.info->id == OpId::exp && output.word_length <= 2 && output.part(d.dim) != 1;
    if (padded && (reduced || exponential)) {
      return Mask{.dim = d.dim, .start = dim.logical, .count = dim.extent - dim.logical};
    }
  }
  return std::nullopt;
}

// The published value for extremes is 65504 of either sign. A number beyond it is an ordinary one in either float (a
// mask in bfloat16 is), so padding counts as the end of the format instead.
double mask_value(const SdscPlan& plan) {
  const double value = plan.info->mask.value_or(0.0);
  const bool extreme = plan.info->id == OpId::max || plan.info->id == OpId::min;
  return extreme ? std::copysign(INFINITY, value) : value;
}

// Format of the op: that of its first data input.
DataFormat op_format(const SdscPlan& plan) {
  if (plan.info->id == OpId::fp32toint32 || plan.info->id == OpId::int32tofp32) return DataFormat::IEEE_FP32;
  for (const Tensor& tensor : plan.tensors) {
    if (tensor.indirection == Indirection::kIndex) continue;
    const bool relabelled = plan.info->id == OpId::identity && tensor.arg->format == DataFormat::IEEE_INT32;
    return relabelled ? DataFormat::IEEE_FP32 : tensor.arg->format;
  }
  return plan.format;
}

}  // namespace

Result<uint32_t> encode_constant(double value, DataFormat format) {
  switch (format) {
    case DataFormat::SEN169_FP16:
      return saturated_sen169_from_fp32(static_cast<float>(value));
    case DataFormat::IEEE_FP32:
      return std::bit_cast<uint32_t>(static_cast<float>(value));
    case DataFormat::IEEE_INT32:
      return static_cast<uint32_t>(static_cast<int32_t>(std::lround(value)));
    default:
      return Error(ErrorKind::kUnsupported,
                   fmt::format("constants of format {}, allowed are SEN169_FP16, IEEE_FP32, IEEE_INT32",
                               to_string(format)));
  }
}

Status collect_constants(SdscPlan& plan) {
  plan.format = op_format(plan);
  for (const auto& [name, value] : plan.op->constants) {
    SPYRE_ASSIGN_OR_RETURN(const uint32_t bits, encode_constant(value, plan.format));
    plan.constants.push_back({name, bits});
  }
  plan.mask = mask_of(plan);
  if (plan.mask) {
    SPYRE_ASSIGN_OR_RETURN(const uint32_t bits, encode_constant(mask_value(plan), plan.format));
    plan.constants.push_back({kMaskConstant, bits});
  }
  return Status();
}

}  // namespace spyre::superdsc
