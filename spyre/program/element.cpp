#include "spyre/program/element.h"

#include <bit>
#include <cmath>

#include "spyre/base/error.h"
#include "spyre/layout/sen169.h"
#include "spyre/layout/small_float.h"

namespace spyre::program {
namespace {

uint32_t saturated(float value, double low, double high) {
  if (std::isnan(value)) {
    return 0;
  }
  const double whole = std::trunc(static_cast<double>(value));
  return static_cast<uint32_t>(static_cast<int64_t>(std::fmin(std::fmax(whole, low), high)));
}

}  // namespace

bool is_arithmetic(DataFormat format) {
  switch (format) {
    case DataFormat::SEN169_FP16:
    case DataFormat::IEEE_FP32:
    case DataFormat::SEN143_FP8:
    case DataFormat::SEN152_FP8:
    case DataFormat::IEEE_INT32:
    case DataFormat::SENUINT32:
    case DataFormat::SENINT8:
      return true;
    default:
      return false;
  }
}

float decode_element(DataFormat format, uint32_t bits) {
  switch (format) {
    case DataFormat::SEN169_FP16:
      return fp32_from_sen169(static_cast<uint16_t>(bits));
    case DataFormat::IEEE_FP32:
      return std::bit_cast<float>(bits);
    case DataFormat::SEN143_FP8:
      return fp32_from_e4m3fn(static_cast<uint8_t>(bits));
    case DataFormat::SEN152_FP8:
      return fp32_from_e5m2fnuz(static_cast<uint8_t>(bits));
    case DataFormat::IEEE_INT32:
      return static_cast<float>(static_cast<int32_t>(bits));
    case DataFormat::SENUINT32:
      return static_cast<float>(bits);
    case DataFormat::SENINT8:
      return static_cast<float>(static_cast<int8_t>(bits));
    default:
      SPYRE_CHECK(false, "decode_element of a format without arithmetic");
      return 0;
  }
}

uint32_t encode_element(DataFormat format, float value) {
  switch (format) {
    case DataFormat::SEN169_FP16:
      return sen169_from_fp32(value);
    case DataFormat::IEEE_FP32:
      return std::bit_cast<uint32_t>(value);
    case DataFormat::SEN143_FP8:
      return e4m3fn_from_fp32(value);
    case DataFormat::SEN152_FP8:
      return e5m2fnuz_from_fp32(value);
    case DataFormat::IEEE_INT32:
      return saturated(value, -2147483648.0, 2147483647.0);
    case DataFormat::SENUINT32:
      return saturated(value, 0.0, 4294967295.0);
    case DataFormat::SENINT8:
      return saturated(value, -128.0, 127.0) & 0xFF;
    default:
      SPYRE_CHECK(false, "encode_element of a format without arithmetic");
      return 0;
  }
}

}  // namespace spyre::program
