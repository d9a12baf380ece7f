#include "spyre/layout/walk.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <optional>
#include <utility>

#include "spyre/base/thread_pool.h"
#include "spyre/base/units.h"

namespace spyre {
namespace {

constexpr int64_t kTilesPerUnit = 2;         ///< one unit of work takes this many tiles
constexpr int64_t kRowsPerUnit = 128;        ///< times this many rows
constexpr int64_t kRowsAhead = 8;            ///< how far ahead of the work rows are fetched into cache
constexpr int64_t kLongRunBytes = 32 << 10;  ///< longer runs are units of their own
constexpr int64_t kTurnSide = 64;            ///< elements; 64 x 64 x 4 bytes stay in the first-level cache
constexpr int64_t kPieceBytes = 64 << 10;    ///< what a thread takes at least
constexpr int64_t kLine = 64;                ///< bytes of a cache line

void prefetch(const std::byte* from, int64_t bytes) {
  for (int64_t i = 0; i < bytes; i += kLine) {
    __builtin_prefetch(from + i);
  }
}

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

/// Vectors of 16 bytes; the compiler has shuffles for them on every machine we build for.
template <typename Element>
struct Vector;
template <>
struct Vector<uint16_t> {
  using Type = uint16_t __attribute__((vector_size(16)));
  static Type low(Type a, Type b) { return __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11); }
  static Type high(Type a, Type b) { return __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15); }
};
template <>
struct Vector<uint32_t> {
  using Type = uint32_t __attribute__((vector_size(16)));
  static Type low(Type a, Type b) { return __builtin_shufflevector(a, b, 0, 4, 1, 5); }
  static Type high(Type a, Type b) { return __builtin_shufflevector(a, b, 2, 6, 3, 7); }
};

/// A square of as many rows as a vector has lanes. Interleaving row i with row i + half, log2(rows) times
/// over, is a transposition.
template <typename Element>
void transpose_square(const std::byte* from, int64_t from_stride, std::byte* to, int64_t to_stride) {
  using V = Vector<Element>;
  constexpr int kSide = 16 / sizeof(Element);
  typename V::Type rows[kSide];
  typename V::Type next[kSide];
  for (int i = 0; i < kSide; ++i) {
    std::memcpy(&rows[i], from + i * from_stride, 16);
  }
  for (int round = 1; round < kSide; round *= 2) {
    for (int i = 0; i < kSide / 2; ++i) {
      next[2 * i] = V::low(rows[i], rows[i + kSide / 2]);
      next[2 * i + 1] = V::high(rows[i], rows[i + kSide / 2]);
    }
    std::copy(next, next + kSide, rows);
  }
  for (int i = 0; i < kSide; ++i) {
    std::memcpy(to + i * to_stride, &rows[i], 16);
  }
}

/// to[a][b] = from[b][a] for a in [a_begin, a_end), b in [b_begin, b_end), one element at a time.
template <typename Element>
void transpose_rest(const std::byte* from, int64_t from_stride, std::byte* to, int64_t to_stride,
                    int64_t a_begin, int64_t a_end, int64_t b_begin, int64_t b_end) {
  constexpr auto kWidth = static_cast<int64_t>(sizeof(Element));
  for (int64_t a = a_begin; a < a_end; ++a) {
    for (int64_t b = b_begin; b < b_end; ++b) {
      std::memcpy(to + a * to_stride + b * kWidth, from + b * from_stride + a * kWidth, sizeof(Element));
    }
  }
}

/// to[a][b] = from[b][a]; rows are a stride, in bytes, apart on each side.
template <typename Element>
void transpose(const std::byte* from, int64_t from_stride, std::byte* to, int64_t to_stride, int64_t a_count,
               int64_t b_count) {
  constexpr auto kWidth = static_cast<int64_t>(sizeof(Element));
  int64_t a_done = 0;
  int64_t b_done = 0;
  if constexpr (sizeof(Element) == 2 || sizeof(Element) == 4) {
    constexpr int64_t kSide = 16 / kWidth;
    a_done = a_count / kSide * kSide;
    b_done = b_count / kSide * kSide;
    for (int64_t a = 0; a < a_done; a += kSide) {
      for (int64_t b = 0; b < b_done; b += kSide) {
        transpose_square<Element>(from + b * from_stride + a * kWidth, from_stride,
                                  to + a * to_stride + b * kWidth, to_stride);
      }
    }
  }
  transpose_rest<Element>(from, from_stride, to, to_stride, 0, a_done, b_done, b_count);
  transpose_rest<Element>(from, from_stride, to, to_stride, a_done, a_count, 0, b_count);
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
  void for_each_unit(int64_t units, int64_t unit_bytes, const Body& body) {
    const int64_t grain = std::max<int64_t>(1, kPieceBytes / std::max<int64_t>(1, unit_bytes));
    parallel_for(units, grain, [&](int64_t begin, int64_t end) {
      for (int64_t unit = begin; unit < end && !failed_.load(std::memory_order_relaxed); ++unit) {
        body(unit);
      }
    });
  }

  /// `run` is dense on both sides.
  void run_dense(const WalkLoop& run) {
    const int64_t src_bytes = run.count * convert_.src_bytes();
    const int64_t dst_bytes = run.count * convert_.dst_bytes();
    if (dst_bytes > kLongRunBytes) {
      run_long(run.count);
      return;
    }
    const auto dealt = find([&](const WalkLoop& loop) { return loop.src_stride == src_bytes; });
    const auto collected = find([&](const WalkLoop& loop) { return loop.dst_stride == dst_bytes; });
    const WalkLoop tiles = dealt ? take(*dealt) : collected ? take(*collected) : WalkLoop{1, 0, 0};
    // Rows follow each other on the side where tiles do not.
    WalkLoop rows = {1, 0, 0};
    if (!loops_.empty()) {
      const auto side = collected && !dealt ? &WalkLoop::src_stride : &WalkLoop::dst_stride;
      rows = take(static_cast<size_t>(std::ranges::min_element(loops_, {}, side) - loops_.begin()));
    }
    run_tiles(run.count, tiles, rows);
  }

  /// Runs so long that each is cut into units of its own.
  void run_long(int64_t n) {
    const int64_t at_once = kLongRunBytes / convert_.dst_bytes();
    const int64_t pieces = ceil_div(n, at_once);
    const Outer outer(std::move(loops_));
    for_each_unit(outer.count() * pieces, kLongRunBytes, [&](int64_t unit) {
      const auto [src_at, dst_at] = outer.at(unit / pieces);
      const int64_t first = unit % pieces * at_once;
      convert(src_ + src_at + first * convert_.src_bytes(), dst_ + dst_at + first * convert_.dst_bytes(),
              std::min(at_once, n - first));
    });
  }

  /// Runs of n elements; those of the loop `tiles` continue each other on one side, those of `rows` lie close
  /// together on the other. Few tiles at a time, because each is one more page to have at hand.
  void run_tiles(int64_t n, const WalkLoop& tiles, const WalkLoop& rows) {
    const int64_t tile_blocks = ceil_div(tiles.count, kTilesPerUnit);
    const int64_t row_blocks = ceil_div(rows.count, kRowsPerUnit);
    const int64_t unit_bytes =
        n * convert_.dst_bytes() * std::min(tiles.count, kTilesPerUnit) * std::min(rows.count, kRowsPerUnit);
    const Outer outer(std::move(loops_));
    for_each_unit(outer.count() * row_blocks * tile_blocks, unit_bytes, [&](int64_t unit) {
      const int64_t tile = unit % tile_blocks * kTilesPerUnit;
      const int64_t row = unit / tile_blocks % row_blocks * kRowsPerUnit;
      const auto [src_at, dst_at] = outer.at(unit / tile_blocks / row_blocks);
      const int64_t tile_end = std::min(tiles.count, tile + kTilesPerUnit);
      const int64_t row_end = std::min(rows.count, row + kRowsPerUnit);
      for (int64_t r = row; r < row_end; ++r) {
        for (int64_t t = tile; t < tile_end; ++t) {
          const std::byte* from = src_ + src_at + r * rows.src_stride + t * tiles.src_stride;
          if (r + kRowsAhead < row_end) {
            prefetch(from + kRowsAhead * rows.src_stride, n * convert_.src_bytes());
          }
          run_and_pad(from, dst_ + dst_at + r * rows.dst_stride + t * tiles.dst_stride, n);
        }
      }
    });
  }

  void run_and_pad(const std::byte* from, std::byte* to, int64_t n) {
    convert(from, to, n);
    if (pad_ > 0) {
      std::memset(to + n * convert_.dst_bytes(), 0, static_cast<size_t>(pad_));
    }
  }

  /// `along_src` is dense in the source, `along_dst` in the destination.
  void turn(const WalkLoop& along_src, const WalkLoop& along_dst) {
    const int64_t src_blocks = ceil_div(along_src.count, kTurnSide);
    const int64_t dst_blocks = ceil_div(along_dst.count, kTurnSide);
    const int64_t width = convert_.dst_bytes();
    const Transpose transposed = transpose_for(convert_.dst_bytes());
    const Outer outer(std::move(loops_));
    for_each_unit(outer.count() * src_blocks * dst_blocks, kTurnSide * kTurnSide * width, [&](int64_t unit) {
      const int64_t a = unit % src_blocks * kTurnSide;
      const int64_t b = unit / src_blocks % dst_blocks * kTurnSide;
      const auto [src_at, dst_at] = outer.at(unit / src_blocks / dst_blocks);
      const int64_t a_count = std::min(kTurnSide, along_src.count - a);
      const int64_t b_count = std::min(kTurnSide, along_dst.count - b);
      alignas(64) std::array<std::byte, kTurnSide * kTurnSide * 8> block;
      const std::byte* from = src_ + src_at + a * along_src.src_stride + b * along_dst.src_stride;
      for (int64_t i = 0; i < b_count; ++i, from += along_dst.src_stride) {
        // The unit that follows goes on where this row stops.
        prefetch(from + kTurnSide * convert_.src_bytes(), a_count * convert_.src_bytes());
        convert(from, block.data() + i * kTurnSide * width, a_count);
      }
      std::byte* to = dst_ + dst_at + a * along_src.dst_stride + b * along_dst.dst_stride;
      transposed(block.data(), kTurnSide * width, to, along_src.dst_stride, a_count, b_count);
      if (pad_ > 0 && b + b_count == along_dst.count) {
        for (int64_t i = 0; i < a_count; ++i) {
          std::memset(to + i * along_src.dst_stride + b_count * width, 0, static_cast<size_t>(pad_));
        }
      }
    });
  }

  /// No dense loop on one of the sides.
  void step(const WalkLoop& inner) {
    const Outer outer(std::move(loops_));
    for_each_unit(outer.count(), inner.count * convert_.dst_bytes(), [&](int64_t unit) {
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
