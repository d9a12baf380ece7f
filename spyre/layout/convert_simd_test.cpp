#include "spyre/layout/convert_simd.h"

#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <vector>

#include "spyre/layout/small_float.h"
#include "spyre/layout/test_layouts.h"

namespace spyre {
namespace {

using enum DataFormat;
using namespace test;  // NOLINT: test support of this layer

/// Runs the reference and every instruction set this processor has over the same elements; all must agree.
template <typename Dst, typename Src>
void expect_all_targets_agree(HostType host, DataFormat device, Direction direction, Sen169Policy policy,
                              const std::vector<Src>& src) {
  Encoding from = host_encoding(host), to = device_encoding(device);
  if (direction == Direction::kDeviceToHost) std::swap(from, to);
  const auto n = static_cast<int64_t>(src.size());
  const auto* bytes = reinterpret_cast<const std::byte*>(src.data());
  std::vector<Dst> expected(src.size()), got(src.size());
  const auto reference = find_conversion(host, device, direction, policy, ConvertPath::kReference).value();
  ASSERT_EQ(reference.run(bytes, reinterpret_cast<std::byte*>(expected.data()), n), n);
  for (const SimdTarget& target : simd_targets()) {
    const ConvertKernel kernel = target.find(from, to, policy);
    ASSERT_NE(kernel, nullptr) << target.name;
    ASSERT_EQ(kernel(bytes, reinterpret_cast<std::byte*>(got.data()), n), n) << target.name;
    for (size_t i = 0; i < src.size(); ++i) {
      ASSERT_EQ(got[i], expected[i]) << target.name << ": " << to_string(from.format) << " " << std::hex
                                     << src[i];
    }
  }
}

std::vector<uint16_t> all_16_bit_codes() {
  std::vector<uint16_t> codes(0x10000);
  std::iota(codes.begin(), codes.end(), uint16_t{0});
  return codes;
}

TEST(ConvertSimd, AllTargetsAgreeOnEvery16BitInput) {
  const auto codes = all_16_bit_codes();
  for (const Sen169Policy policy : {kVendor, kPublished}) {
    expect_all_targets_agree<uint16_t>(HostType::kFloat16, SEN169_FP16, kIn, policy, codes);
    expect_all_targets_agree<uint16_t>(HostType::kFloat16, SEN169_FP16, kOut, policy, codes);
  }
  expect_all_targets_agree<uint16_t>(HostType::kBFloat16, SEN169_FP16, kIn, kVendor, codes);
  expect_all_targets_agree<uint16_t>(HostType::kBFloat16, SEN169_FP16, kOut, kVendor, codes);
  expect_all_targets_agree<uint32_t>(HostType::kFloat32, SEN169_FP16, kOut, kVendor, codes);
  expect_all_targets_agree<uint8_t>(HostType::kBool, SEN169_FP16, kOut, kVendor, codes);
}

TEST(ConvertSimd, LanesDoNotLeakIntoEachOtherWhenRareAndCommonValuesMix) {
  // Every code next to a stranger: the rare paths are taken for a whole vector, and must leave common lanes
  // alone.
  std::vector<uint16_t> mixed;
  for (uint32_t i = 0; i < 0x10000; ++i) mixed.push_back(static_cast<uint16_t>(i * 40503u));
  for (const Sen169Policy policy : {kVendor, kPublished}) {
    expect_all_targets_agree<uint16_t>(HostType::kFloat16, SEN169_FP16, kIn, policy, mixed);
    expect_all_targets_agree<uint16_t>(HostType::kFloat16, SEN169_FP16, kOut, policy, mixed);
  }
}

TEST(ConvertSimd, AllTargetsAgreeOnEveryBoolByte) {
  std::vector<uint8_t> bytes(256);
  std::iota(bytes.begin(), bytes.end(), uint8_t{0});
  expect_all_targets_agree<uint16_t>(HostType::kBool, SEN169_FP16, kIn, kVendor, bytes);
}

TEST(ConvertSimd, AllTargetsAgreeOnFp32NearEveryRoundingBoundary) {
  // Around each SEN169 code, its midpoint to the next, and the ends of the fp32 range, for both signs.
  std::vector<uint32_t> patterns;
  const auto around = [&](uint32_t bits) {
    for (int step = -3; step <= 3; ++step) {
      patterns.push_back(bits + static_cast<uint32_t>(step));
      patterns.push_back((bits + static_cast<uint32_t>(step)) ^ small_float::kFp32Sign);
    }
  };
  for (uint32_t code = 0; code <= 0x8000; ++code) {
    const uint32_t bits = (code << 14) + (96u << 23);
    around(bits);
    around(bits + (1u << 13));
  }
  for (const uint32_t bits : {0u, 0x0080'0000u, 0x7F80'0000u, 0x7FC0'0000u, 0x7FFF'E000u, 0x7FFF'FFFFu})
    around(bits);
  expect_all_targets_agree<uint16_t>(HostType::kFloat32, SEN169_FP16, kIn, kVendor, patterns);
}

TEST(ConvertSimd, AllTargetsAgreeOnFp32PatternsSpreadOverTheRange) {
  // 2^26 patterns, one in every 64, at a place that moves: low bits take all values.
  constexpr uint32_t kBlock = 1u << 20;
  std::vector<uint32_t> patterns(kBlock);
  for (uint32_t begin = 0; begin < (1u << 26); begin += kBlock) {
    for (uint32_t i = 0; i < kBlock; ++i) {
      patterns[i] = (begin + i) * 64 + ((begin + i) * 2654435761u >> 26);
    }
    expect_all_targets_agree<uint16_t>(HostType::kFloat32, SEN169_FP16, kIn, kVendor, patterns);
  }
}

TEST(ConvertSimd, AllTargetsAgreeOnIntegers) {
  std::vector<int32_t> narrow;
  std::vector<int64_t> wide;
  for (uint32_t i = 0; i < 0x10000; ++i) {
    narrow.push_back(static_cast<int32_t>(i * 2654435761u));
    wide.push_back(narrow.back());
  }
  expect_all_targets_agree<int64_t>(HostType::kInt64, IEEE_INT32, kOut, kVendor, narrow);
  expect_all_targets_agree<int32_t>(HostType::kInt64, IEEE_INT32, kIn, kVendor, wide);
}

TEST(ConvertSimd, AllTargetsStopAtTheSameMisfit) {
  for (const SimdTarget& target : simd_targets()) {
    const ConvertKernel kernel =
        target.find(host_encoding(HostType::kInt64), device_encoding(IEEE_INT32), kVendor);
    for (size_t at = 0; at < 40; ++at) {
      std::vector<int64_t> src(40, 5);
      std::vector<int32_t> dst(40);
      src[at] = int64_t{1} << 31;
      EXPECT_EQ(kernel(reinterpret_cast<const std::byte*>(src.data()),
                       reinterpret_cast<std::byte*>(dst.data()), 40),
                static_cast<int64_t>(at))
          << target.name;
    }
  }
}

}  // namespace
}  // namespace spyre
