// How fast tensors are packed for the card and read back, next to a plain copy.
//
//   transfer_bench [--mib 1024] [--rounds 7] [--only pack]
//
// Every case is first checked against the element map, the slow definition of where elements go, with
// conversions by their definition: all elements of small cases, a million spread over large ones. Then the
// transfer and a plain copy on as many threads take turns over warm memory. The copy moves as many bytes as
// the transfer reads and writes.
//
//   GB/s    bytes read plus bytes written, in the median round
//   ratio   the copy's median time divided by the transfer's: 1 means as fast as memory allows
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "spyre/base/text.h"
#include "spyre/base/thread_pool.h"
#include "spyre/layout/element_map.h"
#include "spyre/layout/pack.h"

namespace spyre {
namespace {

using Ints = std::vector<int64_t>;

struct Case {
  std::string name;
  HostType type;
  DeviceLayout layout;
  ViewGeometry view;
  Ints host_strides;
};

DeviceLayout standard(const Ints& size, HostType type) {
  return DeviceLayout::standard(size, info_of(type).device_format).value();
}

Case whole(std::string name, HostType type, const Ints& size) {
  const Ints strides = contiguous_strides(size);
  return {std::move(name), type, standard(size, type), ViewGeometry::whole(size, strides), strides};
}

/// Cases whose host tensor has about `bytes` bytes.
std::vector<Case> cases_of(int64_t bytes) {
  const HostType fp16 = HostType::kFloat16;
  const auto rows = [&](int64_t columns, int width) {
    return std::max<int64_t>(1, bytes / (columns * width));
  };
  std::vector<Case> cases = {
      whole("aligned f16", fp16, {rows(32768, 2), 32768}),
      whole("unaligned f16", fp16, {rows(32700, 2), 32700}),
      whole("short rows f16 [n, 100]", fp16, {rows(100, 2), 100}),
      whole("three axes f16 [n, 64, 1024]", fp16, {rows(64 * 1024, 2), 64, 1024}),
      whole("one axis f16", fp16, {rows(1, 2)}),
      whole("aligned f32", HostType::kFloat32, {rows(16384, 4), 16384}),
      whole("aligned i64", HostType::kInt64, {rows(8192, 8), 8192}),
      whole("aligned bool", HostType::kBool, {rows(65536, 1), 65536}),
  };
  const Ints square = {rows(16384, 2), 16384};
  Case turned = whole("stick across rows f16", fp16, square);
  turned.layout =
      DeviceLayout::ordered(square, contiguous_strides(square), turned.layout.device_dtype, Ints{1, 0})
          .value();
  cases.push_back(turned);
  Case host_turned = whole("host transposed f16", fp16, square);
  host_turned.host_strides = {1, square[0]};
  cases.push_back(host_turned);
  Case turned32 = whole("stick across rows f32", HostType::kFloat32, {rows(16384, 4), 16384});
  turned32.layout = DeviceLayout::ordered(turned32.view.sizes, turned32.view.strides,
                                          turned32.layout.device_dtype, Ints{1, 0})
                        .value();
  cases.push_back(turned32);
  Case slice = whole("columns 5..32761 f16", fp16, {rows(32768, 2), 32768});
  slice.view = {.sizes = {slice.view.sizes[0], 32756}, .strides = {32768, 1}, .storage_offset = 5};
  slice.host_strides = {32756, 1};
  cases.push_back(slice);
  Case stepped = whole("every other column f16", fp16, {rows(32768, 2), 32768});
  stepped.view = {.sizes = {stepped.view.sizes[0], 16384}, .strides = {32768, 2}};
  stepped.host_strides = {16384, 1};
  cases.push_back(stepped);
  return cases;
}

using Buffer = std::unique_ptr<std::byte[], decltype(&std::free)>;

/// Stick-aligned memory, every page touched.
Buffer make_buffer(int64_t bytes) {
  Buffer buffer(
      static_cast<std::byte*>(std::aligned_alloc(4096, static_cast<size_t>(round_up(bytes + 1, 4096)))),
      &std::free);
  std::memset(buffer.get(), 0, static_cast<size_t>(bytes));
  return buffer;
}

/// Small positive numbers: every conversion accepts them and none takes a slow path.
void fill_host(std::byte* host, HostType type, int64_t elements) {
  parallel_for(elements, 1 << 16, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const auto mixed = static_cast<uint32_t>(i * 2654435761U >> 7);
      const int width = info_of(type).host_bytes;
      uint64_t bits = mixed & 0xFFFF;
      if (width == 4) bits = 0x3F800000 | (mixed & 0x7FFFFF);
      if (width == 2) bits = 0x3C00 | (mixed & 0x3FF);
      if (width == 1) bits = mixed & 1;
      std::memcpy(host + i * width, &bits, static_cast<size_t>(width));
    }
  });
}

int64_t span_of(const Ints& sizes, const Ints& strides) {
  int64_t last = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    last += (sizes[i] - 1) * strides[i];
  }
  return last + 1;
}

/// True when image and host agree by the definition, element by element, in the given direction.
bool agrees(const Case& c, const std::byte* host, const std::byte* image, Direction direction) {
  const ElementMap map = ElementMap::of(c.layout).value();
  const Convert convert = find_conversion(c.type, c.layout.device_dtype, direction, Sen169Policy::kVendor,
                                          ConvertPath::kReference)
                              .value();
  const bool in = direction == Direction::kHostToDevice;
  const int64_t numel = c.view.numel();
  const int64_t stride = std::max<int64_t>(1, numel / 1'000'000) | 1;  // odd: meets every lane
  for (int64_t n = 0; n < numel; n += stride) {
    int64_t rest = n, from = 0, logical = c.view.storage_offset;
    for (size_t i = c.view.sizes.size(); i-- > 0;) {
      from += rest % c.view.sizes[i] * c.host_strides[i];
      logical += rest % c.view.sizes[i] * c.view.strides[i];
      rest /= c.view.sizes[i];
    }
    const std::byte* on_host = host + from * (in ? convert.src_bytes() : convert.dst_bytes());
    const std::byte* on_card =
        image + map.device_offset(logical).value() * (in ? convert.dst_bytes() : convert.src_bytes());
    std::byte expected[8];
    if (convert.run(in ? on_host : on_card, expected, 1) != 1 ||
        std::memcmp(expected, in ? on_card : on_host, static_cast<size_t>(convert.dst_bytes())) != 0) {
      return false;
    }
  }
  return true;
}

void plain_copy(std::byte* dst, const std::byte* src, int64_t bytes) {
  parallel_for(bytes, 1 << 20, [&](int64_t begin, int64_t end) {
    std::memcpy(dst + begin, src + begin, static_cast<size_t>(end - begin));
  });
}

double seconds(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

/// Median times of the two, taking turns after one round to warm up.
std::pair<double, double> compare(const std::function<void()>& a, const std::function<void()>& b,
                                  int rounds) {
  std::vector<double> a_times, b_times;
  for (int round = 0; round <= rounds; ++round) {
    const double a_time = seconds(a);
    const double b_time = seconds(b);
    if (round > 0) {
      a_times.push_back(a_time);
      b_times.push_back(b_time);
    }
  }
  return {median(a_times), median(b_times)};
}

void require(const Status& status) {
  if (!status.ok()) {
    throw std::runtime_error(status.error().to_string());
  }
}

int run(int64_t mib, int rounds, const std::string& only) {
  fmt::print("{} threads, {} MiB of host memory, median of {} rounds\n\n", parallel_threads(), mib, rounds);
  fmt::print("{:<40} {:>8} {:>12} {:>7}\n", "case", "GB/s", "copy GB/s", "ratio");
  for (const Case& c : cases_of(mib << 20)) {
    if (("pack " + c.name + " unpack " + c.name).find(only) == std::string::npos) {
      continue;
    }
    const int width = info_of(c.type).host_bytes;
    const int64_t host_span = span_of(c.view.sizes, c.host_strides) * width;
    const int64_t image_bytes = c.layout.byte_size().value().count();
    const int64_t device_width = kStickBytes.count() / c.layout.elems_per_stick();
    const int64_t moved =
        c.view.numel() * width + (c.view.whole_base ? image_bytes : c.view.numel() * device_width);
    const Buffer host = make_buffer(host_span);
    const Buffer back = make_buffer(host_span);
    const Buffer image = make_buffer(image_bytes);
    const Buffer copied = make_buffer(moved / 2);
    const Buffer original = make_buffer(moved / 2);
    fill_host(host.get(), c.type, host_span / width);
    const std::span<std::byte> device(image.get(), static_cast<size_t>(image_bytes));

    const auto measure = [&](const char* what, const std::function<void()>& work, Direction direction,
                             const std::byte* host_side) {
      const std::string name = fmt::format("{} {}", what, c.name);
      if (name.find(only) == std::string::npos) {
        return true;
      }
      work();
      if (!agrees(c, host_side, image.get(), direction)) {
        fmt::print("{:<40} WRONG ANSWER\n", name);
        return false;
      }
      const auto [time, copy_time] = compare(
          work, [&] { plain_copy(copied.get(), original.get(), moved / 2); }, rounds);
      const auto speed = [&](double t) { return static_cast<double>(moved) / t / 1e9; };
      fmt::print("{:<40} {:>8.2f} {:>12.2f} {:>7.2f}\n", name, speed(time), speed(copy_time),
                 copy_time / time);
      std::fflush(stdout);
      return true;
    };
    const auto packing = [&] {
      require(pack({host.get(), c.type, c.view.sizes, c.host_strides}, c.layout, c.view, device));
    };
    const auto unpacking = [&] {
      require(unpack(device, c.layout, c.view, {back.get(), c.type, c.view.sizes, c.host_strides}));
    };
    if (!measure("pack", packing, Direction::kHostToDevice, host.get()) ||
        !measure("unpack", unpacking, Direction::kDeviceToHost, back.get())) {
      return 1;
    }
  }
  return 0;
}

}  // namespace
}  // namespace spyre

int main(int argc, char** argv) {
  CLI::App app("How fast tensors are packed for the card and read back, next to a plain copy");
  int64_t mib = 1024;
  int rounds = 7;
  std::string only;
  app.add_option("--mib", mib, "size of each host tensor; 16 is enough to check that all is well");
  app.add_option("--rounds", rounds, "rounds timed");
  app.add_option("--only", only, "time only the cases whose name contains this");
  CLI11_PARSE(app, argc, argv);
  return spyre::run(mib, rounds, only);
}
