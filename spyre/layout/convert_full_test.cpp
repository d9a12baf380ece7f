// Every fp32 pattern there is. Takes tens of seconds, so it is a program of its own: `ctest -L full`.
#include <gtest/gtest.h>

#include <atomic>
#include <bit>
#include <vector>

#include "spyre/base/thread_pool.h"
#include "spyre/layout/convert_simd.h"

namespace spyre {
namespace {

TEST(ConvertFull, Fp32ToSen169AgreesWithTheDefinitionOnAllPatterns) {
  constexpr int64_t kBlock = 1 << 16;
  const ConvertKernel kernel = simd_targets().front().find(
      {DataFormat::IEEE_FP32, 4}, {DataFormat::SEN169_FP16, 2}, Sen169Policy::kVendor);
  ASSERT_NE(kernel, nullptr);
  std::atomic<int64_t> checked = 0, different = 0;
  parallel_for((int64_t{1} << 32) / kBlock, 16, [&](int64_t begin, int64_t end) {
    std::vector<float> src(kBlock);
    std::vector<uint16_t> got(kBlock);
    for (int64_t block = begin; block < end; ++block) {
      for (int64_t i = 0; i < kBlock; ++i) {
        src[static_cast<size_t>(i)] = std::bit_cast<float>(static_cast<uint32_t>(block * kBlock + i));
      }
      checked += kernel(reinterpret_cast<const std::byte*>(src.data()),
                        reinterpret_cast<std::byte*>(got.data()), kBlock);
      int64_t wrong = 0;
      for (size_t i = 0; i < src.size(); ++i) wrong += got[i] != saturated_sen169_from_fp32(src[i]);
      different += wrong;
    }
  });
  EXPECT_EQ(checked, int64_t{1} << 32);
  EXPECT_EQ(different, 0);
}

}  // namespace
}  // namespace spyre
