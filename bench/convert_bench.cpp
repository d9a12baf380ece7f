// How fast elements are converted on one core, next to memcpy.
//
//   convert_bench [--benchmark_filter=fp16]
//
// Every case is first checked against the one-element-at-a-time reference; a wrong answer never becomes a
// number. Then conversion and memcpy of as much traffic (source plus destination bytes) take turns over the
// same buffers.
//
//   bytes_per_second   source bytes converted
//   vs_memcpy          memcpy's time divided by the conversion's: 1 means as fast as memory allows
#include <benchmark/benchmark.h>

#include <chrono>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "spyre/layout/convert.h"
#include "spyre/layout/convert_simd.h"

namespace spyre {
namespace {

using enum DataFormat;
constexpr auto kIn = Direction::kHostToDevice;
constexpr auto kOut = Direction::kDeviceToHost;

/// What the source holds. `kTiny` sends every vector through the code for subnormals.
enum class Values { kOrdinary, kTiny };

struct Case {
  std::string name;
  HostType host;
  DataFormat device;
  Direction direction;
  Sen169Policy policy = Sen169Policy::kVendor;
  Values values = Values::kOrdinary;
};

const Case kCases[] = {
    {"fp16_to_sen169", HostType::kFloat16, SEN169_FP16, kIn},
    {"sen169_to_fp16", HostType::kFloat16, SEN169_FP16, kOut},
    {"fp16_to_sen169/tiny", HostType::kFloat16, SEN169_FP16, kIn, Sen169Policy::kVendor, Values::kTiny},
    {"sen169_to_fp16/tiny", HostType::kFloat16, SEN169_FP16, kOut, Sen169Policy::kVendor, Values::kTiny},
    {"fp16_to_sen169/published", HostType::kFloat16, SEN169_FP16, kIn, Sen169Policy::kPublished},
    {"sen169_to_fp16/published", HostType::kFloat16, SEN169_FP16, kOut, Sen169Policy::kPublished},
    {"bf16_to_sen169", HostType::kBFloat16, SEN169_FP16, kIn},
    {"sen169_to_bf16", HostType::kBFloat16, SEN169_FP16, kOut},
    {"fp32_to_sen169", HostType::kFloat32, SEN169_FP16, kIn},
    {"sen169_to_fp32", HostType::kFloat32, SEN169_FP16, kOut},
    {"bool_to_sen169", HostType::kBool, SEN169_FP16, kIn},
    {"sen169_to_bool", HostType::kBool, SEN169_FP16, kOut},
    {"int64_to_int32", HostType::kInt64, IEEE_INT32, kIn},
    {"int32_to_int64", HostType::kInt64, IEEE_INT32, kOut},
    {"fp32_copy", HostType::kFloat32, IEEE_FP32, kIn},
};

/// Source elements in the middle of their format's range, or, for 16-bit floats, below fp16's normal range.
std::vector<std::byte> source_elements(const Convert& convert, const Case& which, int64_t n) {
  std::vector<std::byte> src(static_cast<size_t>(n * convert.src_bytes()));
  std::mt19937 random(169);
  for (int64_t i = 0; i < n; ++i) {
    const uint32_t low = random();
    uint64_t element = low;
    if (convert.src_bytes() == 8) element = low >> 1;
    if (convert.src_bytes() == 4 && which.host == HostType::kFloat32)
      element = 0x3F00'0000 | (low & 0x80FF'FFFF);
    if (convert.src_bytes() == 2) {
      const uint32_t ordinary = which.host == HostType::kBFloat16 && which.direction == kIn ? 0x3F00 : 0x3800;
      const uint32_t tiny = which.direction == kIn ? 0x0001 : 0x1000;
      element = (low & 0x81FF) | (which.values == Values::kTiny ? tiny : ordinary);
    }
    if (convert.src_bytes() == 1) element = low & 1;
    std::memcpy(src.data() + i * convert.src_bytes(), &element, static_cast<size_t>(convert.src_bytes()));
  }
  return src;
}

/// Seconds that `work` takes.
double seconds(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// `kGap` puts 256 elements' room between two source elements, as when a stick runs across rows.
enum class Spacing { kDense, kGap };

void measure(benchmark::State& state, const Case& which, ConvertPath path, Spacing spacing) {
  const int64_t n = state.range(0);
  const auto find = [&](ConvertPath wanted) {
    return find_conversion(which.host, which.device, which.direction, which.policy, wanted).value();
  };
  const Convert convert = find(path);
  const int64_t src_bytes = n * convert.src_bytes(), dst_bytes = n * convert.dst_bytes();
  const auto dense = source_elements(convert, which, n);
  const int64_t stride = convert.src_bytes() * (spacing == Spacing::kGap ? 256 : 1);
  std::vector<std::byte> src(static_cast<size_t>(n * stride));
  for (int64_t i = 0; i < n; ++i) {
    std::memcpy(src.data() + i * stride, dense.data() + i * convert.src_bytes(),
                static_cast<size_t>(convert.src_bytes()));
  }
  std::vector<std::byte> dst(static_cast<size_t>(dst_bytes)), expected(dst.size());
  const bool agrees = find(ConvertPath::kReference).run(dense.data(), expected.data(), n) == n &&
                      convert.run_strided(src.data(), stride, dst.data(), convert.dst_bytes(), n) == n &&
                      dst == expected;
  if (!agrees) return state.SkipWithError("differs from the reference");

  const auto traffic = static_cast<size_t>((src_bytes + dst_bytes) / 2);
  std::vector<std::byte> yard_src(traffic), yard_dst(traffic);
  double converting = 0, copying = 0;
  for (auto _ : state) {
    copying += seconds([&] { std::memcpy(yard_dst.data(), yard_src.data(), traffic); });
    benchmark::DoNotOptimize(yard_dst.data());
    const double spent = seconds([&] {
      benchmark::DoNotOptimize(convert.run_strided(src.data(), stride, dst.data(), convert.dst_bytes(), n));
    });
    benchmark::ClobberMemory();
    converting += spent;
    state.SetIterationTime(spent);
  }
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations()) * src_bytes);
  state.counters["vs_memcpy"] = copying / converting;
}

constexpr int64_t kInCache = 64 << 10;   // elements: 128 KiB of fp16, inside the second-level cache
constexpr int64_t kInMemory = 32 << 20;  // 64 MiB of fp16

void add(const std::string& name, const Case& which, ConvertPath path, Spacing spacing, int64_t n) {
  benchmark::RegisterBenchmark(name.c_str(), [=](benchmark::State& s) { measure(s, which, path, spacing); })
      ->Arg(n)
      ->UseManualTime()
      ->MinTime(0.2);
}

void add_all() {
  for (const Case& which : kCases) {
    add(which.name, which, ConvertPath::kFast, Spacing::kDense, kInCache);
    add(which.name, which, ConvertPath::kFast, Spacing::kDense, kInMemory);
  }
  add("fp16_to_sen169/reference", kCases[0], ConvertPath::kReference, Spacing::kDense, kInCache);
  add("fp16_to_sen169/across_rows", kCases[0], ConvertPath::kFast, Spacing::kGap, kInCache);
}

}  // namespace
}  // namespace spyre

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  benchmark::AddCustomContext("instruction set", std::string(spyre::simd_targets().front().name));
  spyre::add_all();
  benchmark::RunSpecifiedBenchmarks();
}
