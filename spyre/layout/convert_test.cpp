#include "spyre/layout/convert.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "spyre/layout/test_layouts.h"

namespace spyre {
namespace {

using enum DataFormat;
using namespace test;  // NOLINT: test support of this layer
using ::testing::HasSubstr;
using ::testing::StartsWith;

template <typename Dst, typename Src>
std::pair<int64_t, std::vector<Dst>> run(const Convert& convert, const std::vector<Src>& src) {
  EXPECT_EQ(convert.src_bytes(), static_cast<int>(sizeof(Src)));
  EXPECT_EQ(convert.dst_bytes(), static_cast<int>(sizeof(Dst)));
  std::vector<Dst> dst(src.size());
  const int64_t done =
      convert.run(reinterpret_cast<const std::byte*>(src.data()), reinterpret_cast<std::byte*>(dst.data()),
                  static_cast<int64_t>(src.size()));
  return {done, dst};
}

TEST(HostType, EveryRowOfTheTable) {
  EXPECT_EQ(kHostTypeCount, 11);
  for (int i = 0; i < kHostTypeCount; ++i) {
    const auto type = static_cast<HostType>(i);
    EXPECT_EQ(host_type_from_name(to_string(type)), type);
  }
  EXPECT_EQ(info_of(HostType::kBFloat16).device_format, SEN169_FP16);
  EXPECT_EQ(info_of(HostType::kBool).device_format, SEN169_FP16);
  EXPECT_EQ(info_of(HostType::kInt64).device_format, IEEE_INT32);
  EXPECT_EQ(info_of(HostType::kUInt8).device_format, SENUINT32);
  EXPECT_EQ(info_of(HostType::kUInt8).host_bytes, 1);
  EXPECT_EQ(info_of(HostType::kFloat8E5M2FNUZ).name, "float8_e5m2fnuz");
  EXPECT_EQ(host_type_from_name("float64"), std::nullopt);
  EXPECT_EQ(host_type_from_name("float8_e5m2"), std::nullopt);
}

// ---- Which pairs are legal ----

// docs/reference/transfers.md#conversions, then our additions.
constexpr const char* kLegalPairs = R"(
IEEE_FP32   IEEE_FP32 SEN169_FP16 BFLOAT16 SEN143_FP8 SENINT4 SENINT8 SENUINT2
SEN169_FP16 IEEE_FP32 SEN169_FP16 SENINT16 BOOL IEEE_FP16 IEEE_INT64 BFLOAT16
IEEE_FP16   IEEE_FP32 BFLOAT16 SEN169_FP16
BFLOAT16    IEEE_FP32 SEN169_FP16
SEN143_FP8  IEEE_FP32 SEN143_FP8
SENINT4     IEEE_FP32 SENINT4
SENINT8     IEEE_FP32 SENINT8
SENUINT2    IEEE_FP32
SENINT16    SEN169_FP16
BOOL        SEN169_FP16
IEEE_INT64  SEN169_FP16 IEEE_INT32 SENUINT32
IEEE_INT32  IEEE_INT64 IEEE_INT32
SENUINT32   IEEE_INT64 SENUINT32
IEEE_FP32   BOOL
SENINT16    SENINT16
SENINT24    SENINT24
SENINT2     SENINT2
SENUINT2    SENUINT2
SEN152_FP8  SEN152_FP8
IEEE_FP16   IEEE_FP16
BFLOAT16    BFLOAT16
BOOL        BOOL
IEEE_INT64  IEEE_INT64
)";

std::set<std::pair<DataFormat, DataFormat>> legal_pairs() {
  std::set<std::pair<DataFormat, DataFormat>> pairs;
  std::istringstream lines(kLegalPairs);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string src, dst;
    words >> src;
    while (words >> dst) pairs.emplace(*data_format_from_name(src), *data_format_from_name(dst));
  }
  return pairs;
}

TEST(ConvertPairs, ExactlyTheListedOnesAreLegal) {
  const auto legal = legal_pairs();
  EXPECT_EQ(legal.size(), 35u + 10u);  // the published 35, then 10 of ours
  for (int i = 0; i < kDataFormatCount; ++i) {
    for (int j = 0; j < kDataFormatCount; ++j) {
      const auto src = static_cast<DataFormat>(i), dst = static_cast<DataFormat>(j);
      EXPECT_EQ(is_allowed_conversion(src, dst), legal.contains({src, dst}))
          << to_string(src) << to_string(dst);
    }
  }
}

TEST(ConvertPairs, EveryHostTypeFindsItsLegalConversionsAndIsRefusedTheRest) {
  const auto legal = legal_pairs();
  int found = 0, refused = 0, narrow = 0;
  for (int i = 0; i < kHostTypeCount; ++i) {
    for (int j = 0; j < kDataFormatCount; ++j) {
      for (const Direction direction : {kIn, kOut}) {
        const auto host = static_cast<HostType>(i);
        const auto device = static_cast<DataFormat>(j);
        const DataFormat host_format = info_of(host).host_format;
        const auto pair = direction == kIn ? std::pair(host_format, device) : std::pair(device, host_format);
        const auto convert = find_conversion(host, device, direction);
        if (!legal.contains(pair)) {
          ++refused;
          ASSERT_FALSE(convert.ok()) << to_string(host) << " " << to_string(device);
          EXPECT_EQ(convert.error().kind, ErrorKind::kUnsupported);
          EXPECT_THAT(convert.error().message, StartsWith("Unsupported DCI data format conversion: src=" +
                                                          std::string(to_string(pair.first)) +
                                                          " dst=" + std::string(to_string(pair.second))));
        } else if (bits_of(device) < 8) {
          ++narrow;
          ASSERT_FALSE(convert.ok());
          EXPECT_THAT(convert.error().message, HasSubstr("narrower than a byte"));
        } else {
          ++found;
          ASSERT_TRUE(convert.ok()) << to_string(host) << " " << to_string(device);
          const int host_bytes = direction == kIn ? convert.value().src_bytes() : convert.value().dst_bytes();
          const int device_bytes =
              direction == kIn ? convert.value().dst_bytes() : convert.value().src_bytes();
          EXPECT_EQ(host_bytes, info_of(host).host_bytes);
          EXPECT_EQ(device_bytes * 8, bits_of(device));
        }
      }
    }
  }
  EXPECT_EQ(narrow, 4);  // float32 to and from SENINT4 and SENUINT2
  EXPECT_EQ(found + refused + narrow, kHostTypeCount * kDataFormatCount * 2);
}

TEST(ConvertPairs, EveryHostTypeRoundTripsThroughItsOwnDeviceFormat) {
  for (int i = 0; i < kHostTypeCount; ++i) {
    const auto host = static_cast<HostType>(i);
    EXPECT_TRUE(find_conversion(host, info_of(host).device_format, kIn).ok()) << to_string(host);
    EXPECT_TRUE(find_conversion(host, info_of(host).device_format, kOut).ok()) << to_string(host);
  }
}

TEST(ConvertPairs, ConsequencesNamedByTheReference) {
  EXPECT_TRUE(find_conversion(HostType::kFloat32, SEN169_FP16, kIn).ok());
  EXPECT_TRUE(find_conversion(HostType::kFloat16, IEEE_FP32, kIn).ok());
  EXPECT_TRUE(find_conversion(HostType::kInt64, SEN169_FP16, kIn).ok());
  EXPECT_TRUE(find_conversion(HostType::kFloat32, SEN169_FP16, kOut).ok());
  EXPECT_FALSE(find_conversion(HostType::kFloat16, IEEE_FP32, kOut).ok());
  EXPECT_FALSE(find_conversion(HostType::kInt8, SEN169_FP16, kIn).ok());
  EXPECT_FALSE(find_conversion(HostType::kFloat32, IEEE_INT32, kIn).ok());
  EXPECT_FALSE(find_conversion(HostType::kInt32, IEEE_FP32, kIn).ok());
  EXPECT_FALSE(find_conversion(HostType::kFloat16, IEEE_INT32, kIn).ok());
  EXPECT_FALSE(find_conversion(HostType::kBool, IEEE_FP32, kIn).ok());
  EXPECT_TRUE(find_conversion(HostType::kBool, IEEE_FP32, kOut).ok());
}

TEST(ConvertPairs, ARefusalNamesBothTypesAndWhatWouldWork) {
  const auto convert = find_conversion(HostType::kInt32, IEEE_FP32, kIn);
  ASSERT_FALSE(convert.ok());
  EXPECT_EQ(convert.error().message,
            "Unsupported DCI data format conversion: src=IEEE_INT32 dst=IEEE_FP32 (cpu_type=int32, "
            "dev_type=IEEE_FP32)");
  EXPECT_THAT(convert.error().to_string(), HasSubstr("IEEE_INT32 can become IEEE_INT64, IEEE_INT32"));
}

// ---- What the values become ----

TEST(ConvertValues, Int64StopsAtTheFirstValueInt32CannotHold) {
  const auto convert = find_conversion(HostType::kInt64, IEEE_INT32, kIn).value();
  EXPECT_TRUE(convert.can_fail());
  const std::vector<int64_t> host = {1, -2147483648LL, 2147483647, 2147483648LL, 3, -2147483649LL};
  const auto [done, device] = run<int32_t>(convert, host);
  EXPECT_EQ(done, 3);
  EXPECT_EQ(std::vector(device.begin(), device.begin() + 3),
            (std::vector<int32_t>{1, std::numeric_limits<int32_t>::min(), 2147483647}));
  const Error error = convert.misfit(reinterpret_cast<const std::byte*>(&host[3]));
  EXPECT_EQ(error.kind, ErrorKind::kOutOfRange);
  EXPECT_EQ(error.message,
            "Value 2147483648 does not fit IEEE_INT32, which holds -2147483648 .. 2147483647 in 4 bytes");
}

TEST(ConvertValues, Int32BecomesInt64WithItsSign) {
  const auto convert = find_conversion(HostType::kInt64, IEEE_INT32, kOut).value();
  EXPECT_FALSE(convert.can_fail());
  EXPECT_EQ(run<int64_t>(convert, std::vector<int32_t>{-1, 7, std::numeric_limits<int32_t>::min()}).second,
            (std::vector<int64_t>{-1, 7, -2147483648LL}));
}

TEST(ConvertValues, UInt8IsOneByteOnTheHostAndFourOnTheCard) {
  const auto in = find_conversion(HostType::kUInt8, SENUINT32, kIn).value();
  EXPECT_FALSE(in.can_fail());
  EXPECT_FALSE(in.is_copy());
  EXPECT_EQ(run<uint32_t>(in, std::vector<uint8_t>{0, 128, 255}).second,
            (std::vector<uint32_t>{0, 128, 255}));
  const auto out = find_conversion(HostType::kUInt8, SENUINT32, kOut).value();
  EXPECT_TRUE(out.can_fail());
  const std::vector<uint32_t> device = {0, 255, 256, 1};
  EXPECT_EQ(run<uint8_t>(out, device).first, 2);
  EXPECT_EQ(out.misfit(reinterpret_cast<const std::byte*>(&device[2])).message,
            "Value 256 does not fit SENUINT32, which holds 0 .. 255 in 1 byte");
}

TEST(ConvertValues, Int64BecomesUnsignedOnlyWhereItIs) {
  const auto convert = find_conversion(HostType::kInt64, SENUINT32, kIn).value();
  EXPECT_EQ(run<uint32_t>(convert, std::vector<int64_t>{0, 4294967295LL, -1}).first, 2);
  EXPECT_EQ(run<uint32_t>(convert, std::vector<int64_t>{4294967296LL}).first, 0);
  const auto back = find_conversion(HostType::kInt64, SENUINT32, kOut).value();
  EXPECT_EQ(run<int64_t>(back, std::vector<uint32_t>{4294967295u}).second,
            std::vector<int64_t>{4294967295LL});
  const auto narrow = find_conversion(HostType::kUInt8, IEEE_INT64, kOut).value();
  EXPECT_EQ(run<uint8_t>(narrow, std::vector<int64_t>{255, -1}).first, 1);
}

TEST(ConvertValues, FloatsBecomeIntegersByDroppingTheFraction) {
  const auto int64 = find_conversion(HostType::kInt64, SEN169_FP16, kOut).value();
  std::vector<uint16_t> codes;
  for (const float value : {1.5f, -1.5f, 0.99f, -0.0f, 8573157376.0f, -8573157376.0f}) {
    codes.push_back(sen169_from_fp32(value));
  }
  EXPECT_EQ(run<int64_t>(int64, codes).second,
            (std::vector<int64_t>{1, -1, 0, 0, 8573157376LL, -8573157376LL}));
  const uint16_t nan = kSen169Nan;
  EXPECT_EQ(run<int64_t>(int64, std::vector<uint16_t>{kSen169One, nan}).first, 1);
  EXPECT_THAT(int64.misfit(reinterpret_cast<const std::byte*>(&nan)).message,
              StartsWith("Value nan does not fit"));

  const auto int16 = find_conversion(HostType::kInt16, SEN169_FP16, kOut).value();
  EXPECT_EQ(run<int16_t>(int16, std::vector<uint16_t>{sen169_from_fp32(-32768.0f)}).second,
            std::vector<int16_t>{-32768});
  EXPECT_EQ(run<int16_t>(int16, std::vector<uint16_t>{sen169_from_fp32(32768.0f)}).first, 0);

  const auto int8 = find_conversion(HostType::kFloat32, SENINT8, kIn).value();
  EXPECT_EQ(run<int8_t>(int8, std::vector<float>{127.9f, -128.9f, -0.5f}).second,
            (std::vector<int8_t>{127, -128, 0}));
  EXPECT_EQ(run<int8_t>(int8, std::vector<float>{128.0f}).first, 0);
  EXPECT_EQ(run<int8_t>(int8, std::vector<float>{-129.0f}).first, 0);
  EXPECT_EQ(run<int8_t>(int8, std::vector<float>{NAN}).first, 0);
}

TEST(ConvertValues, TruthIsAnythingButZero) {
  const auto in = find_conversion(HostType::kBool, SEN169_FP16, kIn).value();
  EXPECT_EQ(run<uint16_t>(in, std::vector<uint8_t>{0, 1, 255}).second,
            (std::vector<uint16_t>{0, 0x3E00, 0x3E00}));
  const auto out = find_conversion(HostType::kBool, SEN169_FP16, kOut).value();
  EXPECT_EQ(run<uint8_t>(out, std::vector<uint16_t>{0, 0x8000, 1, 0xFFFF}).second,
            (std::vector<uint8_t>{0, 0, 1, 1}));
  const auto fp32 = find_conversion(HostType::kBool, IEEE_FP32, kOut).value();
  EXPECT_EQ(run<uint8_t>(fp32, std::vector<float>{0.0f, -0.0f, 1e-45f, NAN}).second,
            (std::vector<uint8_t>{0, 0, 1, 1}));
}

TEST(ConvertValues, EachPairUsesItsRule) {
  const auto first = []<typename Src, typename Dst>(HostType host, DataFormat device, Direction direction,
                                                    Src src, Dst expected) {
    const auto convert = find_conversion(host, device, direction).value();
    EXPECT_EQ(run<Dst>(convert, std::vector<Src>{src}).second.front(), expected)
        << to_string(host) << " " << to_string(device);
  };
  using enum HostType;
  first(kFloat32, SEN169_FP16, kIn, 1.0f / 3, uint16_t{0x3AAB});
  first(kFloat32, SEN169_FP16, kOut, uint16_t{0x3AAB}, 0.33349609375f);
  first(kFloat32, BFLOAT16, kIn, 1.0f / 3, uint16_t{0x3EAB});
  first(kFloat32, BFLOAT16, kOut, uint16_t{0x3F80}, 1.0f);
  first(kFloat32, SEN143_FP8, kIn, -448.0f, uint8_t{0xFE});
  first(kFloat32, SEN143_FP8, kOut, uint8_t{0x38}, 1.0f);
  first(kFloat32, SENINT8, kOut, int8_t{-5}, -5.0f);
  first(kFloat32, IEEE_FP16, kOut, uint16_t{0x3555}, 0.333251953125f);
  first(kFloat16, IEEE_FP32, kIn, uint16_t{0xC000}, -2.0f);
  first(kFloat16, BFLOAT16, kIn, uint16_t{0x3555}, uint16_t{0x3EAB});  // fraction 341/8 is 42.6, up to 43
  first(kFloat16, SEN169_FP16, kIn, uint16_t{0x7BFF}, uint16_t{0x5DFF});
  first(kFloat16, SEN169_FP16, kOut, uint16_t{0x2000}, uint16_t{0x0200});
  first(kBFloat16, SEN169_FP16, kIn, uint16_t{0x3F80}, uint16_t{0x3E00});
  first(kBFloat16, SEN169_FP16, kOut, uint16_t{0x3E06}, uint16_t{0x3F82});
  first(kBFloat16, IEEE_FP32, kIn, uint16_t{0xBF80}, -1.0f);
  first(kBFloat16, IEEE_FP16, kOut, uint16_t{0x3C00}, uint16_t{0x3F80});
  first(kInt16, SEN169_FP16, kIn, int16_t{-1025}, sen169_from_fp32(-1026.0f));
  first(kInt64, SEN169_FP16, kIn, int64_t{1025}, uint16_t{0x5201});
  first(kUInt8, IEEE_INT64, kIn, uint8_t{200}, int64_t{200});
  first(kFloat8E5M2FNUZ, SEN152_FP8, kIn, uint8_t{0x80}, uint8_t{0x80});
  first(kInt16, SENINT16, kOut, int16_t{-7}, int16_t{-7});
}

TEST(ConvertValues, ThePolicyReachesTheFp16Kernels) {
  for (const ConvertPath path : {ConvertPath::kFast, ConvertPath::kReference}) {
    const auto in =
        find_conversion(HostType::kFloat16, SEN169_FP16, kIn, Sen169Policy::kPublished, path).value();
    EXPECT_EQ(run<uint16_t>(in, std::vector<uint16_t>{0x7C00}).second.front(), 0x7FFE);
    const auto out =
        find_conversion(HostType::kFloat16, SEN169_FP16, kOut, Sen169Policy::kPublished, path).value();
    EXPECT_EQ(run<uint16_t>(out, std::vector<uint16_t>{0x2000}).second.front(), 0x0200);
    const auto vendor_in =
        find_conversion(HostType::kFloat16, SEN169_FP16, kIn, Sen169Policy::kVendor, path).value();
    EXPECT_EQ(run<uint16_t>(vendor_in, std::vector<uint16_t>{0x7C00}).second.front(), 0x7E00);
    const auto vendor_out =
        find_conversion(HostType::kFloat16, SEN169_FP16, kOut, Sen169Policy::kVendor, path).value();
    EXPECT_EQ(run<uint16_t>(vendor_out, std::vector<uint16_t>{0x2000}).second.front(), 0x0100);
  }
}

// ---- Shapes of a run: ragged ends, odd addresses, strides ----

struct Pair {
  std::string name;
  Convert fast;
  Convert reference;
};

std::vector<Pair> all_conversions() {
  std::vector<Pair> pairs;
  for (int i = 0; i < kHostTypeCount; ++i) {
    for (int j = 0; j < kDataFormatCount; ++j) {
      for (const Direction direction : {kIn, kOut}) {
        for (const auto policy : {Sen169Policy::kVendor, Sen169Policy::kPublished}) {
          const auto host = static_cast<HostType>(i);
          const auto device = static_cast<DataFormat>(j);
          const auto fast = find_conversion(host, device, direction, policy);
          if (!fast.ok()) continue;
          const auto reference = find_conversion(host, device, direction, policy, ConvertPath::kReference);
          pairs.push_back({std::string(to_string(host)) + (direction == kIn ? " -> " : " <- ") +
                               std::string(to_string(device)),
                           fast.value(), reference.value()});
        }
      }
    }
  }
  return pairs;
}

/// n random elements that all have an image: whatever has none is replaced by zero.
std::vector<std::byte> random_elements(const Convert& convert, int64_t n, std::mt19937& random) {
  std::vector<std::byte> src(static_cast<size_t>(n * convert.src_bytes()));
  for (auto& byte : src) byte = static_cast<std::byte>(random());
  std::vector<std::byte> dst(static_cast<size_t>(n * convert.dst_bytes()));
  int64_t done = 0;
  while (done += convert.run(src.data() + done * convert.src_bytes(), dst.data(), n - done), done < n) {
    std::fill_n(src.begin() + done * convert.src_bytes(), convert.src_bytes(), std::byte{0});
  }
  return src;
}

constexpr unsigned kRunsSeed = 169;
constexpr auto kUntouched = std::byte{0xA5};

TEST(ConvertRuns, RaggedEndsAndOddAddressesGiveTheReferenceAndTouchNothingElse) {
  std::mt19937 random(kRunsSeed);
  for (const Pair& pair : all_conversions()) {
    SCOPED_TRACE(pair.name + ", seed " + std::to_string(kRunsSeed));
    const int dst_bytes = pair.fast.dst_bytes();
    const auto src = random_elements(pair.reference, 201, random);
    std::vector<std::byte> expected(static_cast<size_t>(201 * dst_bytes));
    ASSERT_EQ(pair.reference.run(src.data(), expected.data(), 201), 201);
    for (int64_t n = 0; n <= 200; ++n) {
      // One byte in on both sides, so that nothing is aligned.
      std::vector<std::byte> moved(src.size() + 1);
      std::copy(src.begin(), src.end(), moved.begin() + 1);
      std::vector<std::byte> dst(static_cast<size_t>(201 * dst_bytes + 1), kUntouched);
      ASSERT_EQ(pair.fast.run(moved.data() + 1, dst.data() + 1, n), n);
      const auto end = dst.begin() + 1 + n * dst_bytes;
      ASSERT_TRUE(std::equal(dst.begin() + 1, end, expected.begin())) << "n = " << n;
      ASSERT_EQ(dst.front(), kUntouched);
      ASSERT_EQ(std::count(end, dst.end(), kUntouched), dst.end() - end) << "n = " << n;
    }
  }
}

TEST(ConvertRuns, StridesOnEitherSideGiveTheDenseResultAndLeaveTheGapsAlone) {
  std::mt19937 random(kRunsSeed);
  constexpr int64_t kCount = 600;  // more than two blocks of the gather buffer, and ragged
  for (const Pair& pair : all_conversions()) {
    SCOPED_TRACE(pair.name + ", seed " + std::to_string(kRunsSeed));
    const int64_t src_bytes = pair.fast.src_bytes(), dst_bytes = pair.fast.dst_bytes();
    const auto src = random_elements(pair.reference, kCount, random);
    std::vector<std::byte> expected(static_cast<size_t>(kCount * dst_bytes));
    ASSERT_EQ(pair.reference.run(src.data(), expected.data(), kCount), kCount);
    for (const auto& [src_stride, dst_stride] : {std::pair{src_bytes, dst_bytes},
                                                 {3 * src_bytes, dst_bytes},
                                                 {src_bytes, dst_bytes + 1},
                                                 {src_bytes + 1, 2 * dst_bytes},
                                                 {128L, 128L}}) {
      std::vector<std::byte> spread(static_cast<size_t>(kCount * src_stride));
      for (int64_t i = 0; i < kCount; ++i) {
        std::copy_n(src.begin() + i * src_bytes, src_bytes, spread.begin() + i * src_stride);
      }
      std::vector<std::byte> dst(static_cast<size_t>(kCount * dst_stride), kUntouched);
      ASSERT_EQ(pair.fast.run_strided(spread.data(), src_stride, dst.data(), dst_stride, kCount), kCount);
      for (int64_t i = 0; i < kCount; ++i) {
        const auto at = dst.begin() + i * dst_stride;
        ASSERT_TRUE(std::equal(at, at + dst_bytes, expected.begin() + i * dst_bytes)) << "element " << i;
        ASSERT_EQ(std::count(at + dst_bytes, at + dst_stride, kUntouched), dst_stride - dst_bytes);
      }
    }
  }
}

TEST(ConvertRuns, AStrideOfZeroRepeatsOneElement) {
  const auto convert = find_conversion(HostType::kFloat16, SEN169_FP16, kIn).value();
  const uint16_t one = 0x3C00;
  std::vector<uint16_t> dst(300);
  EXPECT_EQ(convert.run_strided(reinterpret_cast<const std::byte*>(&one), 0,
                                reinterpret_cast<std::byte*>(dst.data()), 2, 300),
            300);
  EXPECT_EQ(dst, std::vector<uint16_t>(300, 0x3E00));
}

TEST(ConvertRuns, AMisfitIsReportedAtItsIndexWhereverItStands) {
  const auto convert = find_conversion(HostType::kInt64, IEEE_INT32, kIn).value();
  for (const int64_t bad : {int64_t{1} << 31, -(int64_t{1} << 31) - 1, std::numeric_limits<int64_t>::max(),
                            std::numeric_limits<int64_t>::min(), int64_t{1} << 32}) {
    for (int64_t at = 0; at < 300; ++at) {
      std::vector<int64_t> src(300, -1);
      std::vector<int32_t> dst(300, 0);
      src[static_cast<size_t>(at)] = bad;
      src[299] = bad;  // a later one must not hide the first
      const auto* from = reinterpret_cast<const std::byte*>(src.data());
      auto* to = reinterpret_cast<std::byte*>(dst.data());
      ASSERT_EQ(convert.run(from, to, 300), at);
      ASSERT_EQ(std::count(dst.begin(), dst.begin() + at, -1), at);
      ASSERT_EQ(convert.run_strided(from, 8, to, 4, 300), at);
      // Backwards over the source, so that the strided path does the work: 299 comes first, then nothing
      // until `at`.
      ASSERT_EQ(convert.run_strided(from + 8 * 299, -8, to, 4, 300), 0);
      src[299] = at == 299 ? bad : -1;
      ASSERT_EQ(convert.run_strided(from + 8 * 299, -8, to, 4, 300), 299 - at);
    }
  }
}

TEST(ConvertRuns, CopiesAreKnownAsCopies) {
  EXPECT_TRUE(find_conversion(HostType::kFloat32, IEEE_FP32, kIn).value().is_copy());
  EXPECT_TRUE(find_conversion(HostType::kInt16, SENINT16, kOut).value().is_copy());
  EXPECT_FALSE(find_conversion(HostType::kFloat16, SEN169_FP16, kIn).value().is_copy());
}

}  // namespace
}  // namespace spyre
