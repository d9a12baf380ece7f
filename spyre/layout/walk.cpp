#include "spyre/layout/walk.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>

#include "spyre/base/thread_pool.h"
#include "spyre/base/units.h"

namespace spyre {
namespace {

constexpr int64_t kRunBytes = 2048;          ///< converted in one go, and dealt out or collected
constexpr int64_t kRowsPerUnit = 32;         ///< runs that one unit of work takes
constexpr int64_t kScratchBytes = 4096;      ///< on the stack of each kernel
constexpr int64_t kLongRunBytes = 32 << 10;  ///< longer runs are units of their own
static_assert(kRunBytes <= kScratchBytes);
constexpr int64_t kTurnSide = 64;           ///< elements; 64 x 64 x 4 bytes stay in the first-level cache
constexpr int64_t kPieceBytes = 64 << 10;   ///< what a thread takes at least
constexpr int64_t kStreamAbove = 16 << 20;  ///< larger walks would only flush the caches

/// The loops that are not part of a kernel, walked as one number.
class Outer {
 public:
  explicit Outer(std::vector<WalkLoop> loops) : loops_(std::move(loops)) {
    for (const WalkLoop& loop : loops_) {
      count_ *= loop.count;
    }
  }
  int64_t count() const { return count_; }

  /// Byte offsets of position `index` on the two sides.
  std::pair<int64_t, int64_t> at(int64_t index) const {
    int64_t src = 0;
    int64_t dst = 0;
    for (size_t i = loops_.size(); i-- > 0;) {
      const int64_t digit = index % loops_[i].count;
      index /= loops_[i].count;
      src += digit * loops_[i].src_stride;
      dst += digit * loops_[i].dst_stride;
    }
    return {src, dst};
  }

 private:
  std::vector<WalkLoop> loops_;
  int64_t count_ = 1;
};

/// A store that need not go through the caches.
class Store {
 public:
  explicit Store(bool stream) : stream_(stream) {}

  void put(std::byte* dst, const std::byte* src, int64_t bytes) const {
#if defined(__SSE2__)
    if (stream_ && bytes % 16 == 0 && reinterpret_cast<uintptr_t>(dst) % 16 == 0) {
      for (int64_t i = 0; i < bytes; i += 16) {
        _mm_stream_si128(reinterpret_cast<__m128i*>(dst + i),
                         _mm_loadu_si128(reinterpret_cast<const __m128i*>(src + i)));
      }
      return;
    }
#endif
    std::memcpy(dst, src, static_cast<size_t>(bytes));
  }

  /// True when `put` to a scratch copy beats writing in place.
  bool streams() const {
    return stream_;
  }

  /// Orders streamed stores before whatever follows on this thread.
  void finish() const {
#if defined(__SSE2__)
    if (stream_) {
      _mm_sfence();
    }
#endif
  }

 private:
  bool stream_;
};

/// to[a][b] = from[b][a] for elements of one size; `to` rows are `to_stride` bytes apart.
template <typename Element>
void transpose(const std::byte* from, int64_t from_stride, std::byte* to, int64_t to_stride, int64_t a_count,
               int64_t b_count) {
  for (int64_t a = 0; a < a_count; ++a) {
    for (int64_t b = 0; b < b_count; ++b) {
      std::memcpy(to + a * to_stride + b * static_cast<int64_t>(sizeof(Element)),
                  from + b * from_stride + a * static_cast<int64_t>(sizeof(Element)), sizeof(Element));
    }
  }
}

using Transpose = void (*)(const std::byte*, int64_t, std::byte*, int64_t, int64_t, int64_t);

Transpose transpose_for(int bytes) {
  switch (bytes) {
    case 1:
      return transpose<uint8_t>;
    case 2:
      return transpose<uint16_t>;
    case 4:
      return transpose<uint32_t>;
    default:
      return transpose<uint64_t>;
  }
}

class Runner {
 public:
  Runner(const Walk& walk, const Convert& convert, const std::byte* src, std::byte* dst)
      : convert_(convert),
        src_(src + walk.src_offset),
        dst_(dst + walk.dst_offset),
        pad_(walk.pad_bytes),
        loops_(walk.loops) {}

  bool run() {
    simplify();
    const auto src_dense =
        find([&](const WalkLoop& loop) { return loop.src_stride == convert_.src_bytes(); });
    const auto dst_dense =
        find([&](const WalkLoop& loop) { return loop.dst_stride == convert_.dst_bytes(); });
    if (pad_ > 0 && (loops_.back().count == 1 || src_dense == loops_.size() - 1)) {
      run_dense(take(loops_.size() - 1));
    } else if (src_dense && src_dense == dst_dense) {
      run_dense(take(*src_dense));
    } else if (src_dense && dst_dense) {
      const WalkLoop along_src = loops_[*src_dense];
      const WalkLoop along_dst = loops_[*dst_dense];
      take(std::max(*src_dense, *dst_dense));
      take(std::min(*src_dense, *dst_dense));
      turn(along_src, along_dst);
    } else {
      step(take(loops_.size() - 1));
    }
    return !failed_.load();
  }

 private:
  template <typename Predicate>
  std::optional<size_t> find(Predicate predicate) const {
    const auto found = std::ranges::find_if(loops_, predicate);
    return found == loops_.end() ? std::nullopt : std::optional(static_cast<size_t>(found - loops_.begin()));
  }

  WalkLoop take(size_t index) {
    const WalkLoop loop = loops_[index];
    loops_.erase(loops_.begin() + static_cast<int64_t>(index));
    return loop;
  }

  /// Drops loops of one round and joins loops that continue each other on both sides. The loop along the
  /// stick stays last, and stays alone when padding follows it.
  void simplify() {
    const bool keep_last = pad_ > 0;
    std::vector<WalkLoop> kept;
    for (size_t i = 0; i < loops_.size(); ++i) {
      if (loops_[i].count != 1 || (keep_last && i + 1 == loops_.size())) {
        kept.push_back(loops_[i]);
      }
    }
    loops_ = std::move(kept);
    while (join_one(loops_.size() - (keep_last ? 1 : 0))) {
    }
    if (loops_.empty()) {
      loops_.push_back({1, convert_.src_bytes(), convert_.dst_bytes()});
    }
  }

  /// Joins one pair among the first `joinable` loops, if any continue each other.
  bool join_one(size_t joinable) {
    for (size_t inner = 0; inner < joinable; ++inner) {
      for (size_t outer = 0; outer < joinable; ++outer) {
        if (inner != outer && loops_[outer].src_stride == loops_[inner].count * loops_[inner].src_stride &&
            loops_[outer].dst_stride == loops_[inner].count * loops_[inner].dst_stride) {
          loops_[inner].count *= loops_[outer].count;
          take(outer);
          return true;
        }
      }
    }
    return false;
  }

  void convert(const std::byte* src, std::byte* dst, int64_t n) {
    if (convert_.is_copy()) {
      std::memcpy(dst, src, static_cast<size_t>(n * convert_.dst_bytes()));
    } else if (convert_.run(src, dst, n) < n) {
      failed_.store(true, std::memory_order_relaxed);
    }
  }

  /// Divides `units` of `unit_bytes` each among the threads.
  template <typename Body>
  void for_each_unit(int64_t units, int64_t unit_bytes, const Store& store, const Body& body) {
    const int64_t grain = std::max<int64_t>(1, kPieceBytes / std::max<int64_t>(1, unit_bytes));
    parallel_for(units, grain, [&](int64_t begin, int64_t end) {
      for (int64_t unit = begin; unit < end && !failed_.load(std::memory_order_relaxed); ++unit) {
        body(unit);
      }
      store.finish();
    });
  }

  /// The same, through scratch where the store streams.
  void move_run(const std::byte* src, std::byte* dst, int64_t n, const Store& store) {
    if (!store.streams()) {
      convert(src, dst, n);
      return;
    }
    if (convert_.is_copy()) {
      store.put(dst, src, n * convert_.dst_bytes());
      return;
    }
    alignas(64) std::array<std::byte, kScratchBytes> scratch;
    const int64_t at_once = kScratchBytes / convert_.dst_bytes();
    for (int64_t done = 0; done < n; done += at_once) {
      const int64_t count = std::min(at_once, n - done);
      convert(src + done * convert_.src_bytes(), scratch.data(), count);
      store.put(dst + done * convert_.dst_bytes(), scratch.data(), count * convert_.dst_bytes());
    }
  }

  /// `run` is dense on both sides.
  void run_dense(const WalkLoop& run) {
    int64_t elements = run.count;
    for (const WalkLoop& loop : loops_) {
      elements *= loop.count;
    }
    const Store store(elements * convert_.dst_bytes() > kStreamAbove);
    if (run.count * convert_.dst_bytes() > kLongRunBytes) {
      run_long(run.count, store);
      return;
    }
    const auto dealt =
        find([&](const WalkLoop& loop) { return loop.src_stride == run.count * convert_.src_bytes(); });
    const auto collected =
        find([&](const WalkLoop& loop) { return loop.dst_stride == run.count * convert_.dst_bytes(); });
    if (dealt) {
      run_tiles(run.count, take(*dealt), false, store);
    } else if (collected && pad_ == 0) {
      run_tiles(run.count, take(*collected), true, store);
    } else {
      run_tiles(run.count, {1, 0, 0}, false, store);
    }
  }

  /// Runs so long that each is cut into units of its own.
  void run_long(int64_t n, const Store& store) {
    const int64_t at_once = kLongRunBytes / convert_.dst_bytes();
    const int64_t pieces = ceil_div(n, at_once);
    const Outer outer(std::move(loops_));
    for_each_unit(outer.count() * pieces, kLongRunBytes, store, [&](int64_t unit) {
      const auto [src_at, dst_at] = outer.at(unit / pieces);
      const int64_t first = unit % pieces * at_once;
      move_run(src_ + src_at + first * convert_.src_bytes(), dst_ + dst_at + first * convert_.dst_bytes(),
               std::min(at_once, n - first), store);
    });
  }

  /// Runs of n elements; those of the loop `tiles` continue each other in the source, or (`collect`) in the
  /// destination. A unit of work is a block of tiles times a block of rows.
  void run_tiles(int64_t n, const WalkLoop& tiles, bool collect, const Store& store) {
    // The loop that advances most finely on the scattered side makes its accesses sequential.
    WalkLoop rows = {1, 0, 0};
    if (!loops_.empty()) {
      const auto finest =
          std::ranges::min_element(loops_, {}, collect ? &WalkLoop::src_stride : &WalkLoop::dst_stride);
      rows = take(static_cast<size_t>(finest - loops_.begin()));
    }
    const int64_t run_bytes = n * convert_.dst_bytes();
    const int64_t tiles_at_once = std::clamp<int64_t>(kRunBytes / run_bytes, 1, tiles.count);
    const int64_t tile_blocks = ceil_div(tiles.count, tiles_at_once);
    const int64_t row_blocks = ceil_div(rows.count, kRowsPerUnit);
    const Outer outer(std::move(loops_));

    for_each_unit(outer.count() * row_blocks * tile_blocks,
                  run_bytes * tiles_at_once * std::min(rows.count, kRowsPerUnit), store, [&](int64_t unit) {
                    const int64_t tile = unit % tile_blocks * tiles_at_once;
                    const int64_t row = unit / tile_blocks % row_blocks * kRowsPerUnit;
                    const auto [src_at, dst_at] = outer.at(unit / tile_blocks / row_blocks);
                    const WalkLoop here = {std::min(tiles_at_once, tiles.count - tile), tiles.src_stride,
                                           tiles.dst_stride};
                    const int64_t row_end = std::min(rows.count, row + kRowsPerUnit);
                    for (int64_t r = row; r < row_end; ++r) {
                      const std::byte* from = src_ + src_at + r * rows.src_stride + tile * tiles.src_stride;
                      std::byte* to = dst_ + dst_at + r * rows.dst_stride + tile * tiles.dst_stride;
                      collect ? collect_runs(from, to, n, here, store) : deal_runs(from, to, n, here, store);
                    }
                  });
  }

  /// Converts runs that lie one after the other in the source and deals them out.
  void deal_runs(const std::byte* from, std::byte* to, int64_t n, const WalkLoop& tiles, const Store& store) {
    const int64_t bytes = n * convert_.dst_bytes();
    if (tiles.count == 1) {
      move_run(from, to, n, store);
      std::memset(to + bytes, 0, static_cast<size_t>(pad_));
      return;
    }
    alignas(64) std::array<std::byte, kScratchBytes> scratch;
    const std::byte* converted = from;
    if (!convert_.is_copy()) {
      convert(from, scratch.data(), n * tiles.count);
      converted = scratch.data();
    }
    for (int64_t i = 0; i < tiles.count; ++i) {
      store.put(to + i * tiles.dst_stride, converted + i * bytes, bytes);
      std::memset(to + i * tiles.dst_stride + bytes, 0, static_cast<size_t>(pad_));
    }
  }

  /// Collects runs and converts them into one dense stretch of the destination.
  void collect_runs(const std::byte* from, std::byte* to, int64_t n, const WalkLoop& tiles,
                    const Store& store) {
    const int64_t bytes = n * convert_.dst_bytes();
    if (tiles.count == 1 || convert_.is_copy() || !store.streams()) {
      for (int64_t i = 0; i < tiles.count; ++i) {
        move_run(from + i * tiles.src_stride, to + i * bytes, n, store);
      }
      return;
    }
    alignas(64) std::array<std::byte, kScratchBytes> scratch;
    for (int64_t i = 0; i < tiles.count; ++i) {
      convert(from + i * tiles.src_stride, scratch.data() + i * bytes, n);
    }
    store.put(to, scratch.data(), bytes * tiles.count);
  }

  /// `along_src` is dense in the source, `along_dst` in the destination.
  void turn(const WalkLoop& along_src, const WalkLoop& along_dst) {
    const int64_t src_blocks = ceil_div(along_src.count, kTurnSide);
    const int64_t dst_blocks = ceil_div(along_dst.count, kTurnSide);
    const int64_t width = convert_.dst_bytes();
    const Transpose transposed = transpose_for(convert_.dst_bytes());
    const Outer outer(std::move(loops_));
    for_each_unit(outer.count() * src_blocks * dst_blocks, kTurnSide * kTurnSide * width, Store(false),
                  [&](int64_t unit) {
                    const int64_t a = unit % src_blocks * kTurnSide;
                    const int64_t b = unit / src_blocks % dst_blocks * kTurnSide;
                    const auto [src_at, dst_at] = outer.at(unit / src_blocks / dst_blocks);
                    const int64_t a_count = std::min(kTurnSide, along_src.count - a);
                    const int64_t b_count = std::min(kTurnSide, along_dst.count - b);
                    alignas(64) std::array<std::byte, kTurnSide * kTurnSide * 8> block;
                    for (int64_t i = 0; i < b_count; ++i) {
                      convert(src_ + src_at + a * along_src.src_stride + (b + i) * along_dst.src_stride,
                              block.data() + i * kTurnSide * width, a_count);
                    }
                    std::byte* to = dst_ + dst_at + a * along_src.dst_stride + b * along_dst.dst_stride;
                    transposed(block.data(), kTurnSide * width, to, along_src.dst_stride, a_count, b_count);
                    if (pad_ > 0 && b + b_count == along_dst.count) {
                      for (int64_t i = 0; i < a_count; ++i) {
                        std::memset(to + i * along_src.dst_stride + b_count * width, 0,
                                    static_cast<size_t>(pad_));
                      }
                    }
                  });
  }

  /// No dense loop on one of the sides.
  void step(const WalkLoop& inner) {
    const Outer outer(std::move(loops_));
    for_each_unit(outer.count(), inner.count * convert_.dst_bytes(), Store(false), [&](int64_t unit) {
      const auto [src_at, dst_at] = outer.at(unit);
      if (convert_.run_strided(src_ + src_at, inner.src_stride, dst_ + dst_at, inner.dst_stride,
                               inner.count) < inner.count) {
        failed_.store(true, std::memory_order_relaxed);
      }
      std::memset(dst_ + dst_at + inner.count * convert_.dst_bytes(), 0, static_cast<size_t>(pad_));
    });
  }

  const Convert& convert_;
  const std::byte* src_;
  std::byte* dst_;
  int64_t pad_;
  std::vector<WalkLoop> loops_;
  std::atomic<bool> failed_{false};
};

}  // namespace

bool run_walk(const Walk& walk, const Convert& convert, const std::byte* src, std::byte* dst) {
  return Runner(walk, convert, src, dst).run();
}

}  // namespace spyre
