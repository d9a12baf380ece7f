#include <algorithm>
#include <array>
#include <cstring>

#include "spyre/base/thread_pool.h"
#include "spyre/device/exec/fast_op.h"
#include "spyre/device/exec/kernels.h"

// A matrix product over the whole iteration space, not core by core: cores share operands, and what they
// share is widened to fp32 once.
//
//     X  [rows, K] codes  ->  fp32, row by row                                       once per block of rows
//     W  [K, 64] codes    ->  fp32 panels that stay in the cache while rows pass      once per block of rows
//     C  [rows, 64] fp32, carried across blocks of K, added over the slices of K, rounded once or stored as it is
//
// Each element of the result is one chain of additions in ascending k, as the interpreter has it. Products of
// two 16-bit codes are exact in fp32, so a fused multiply-add and a separate one give the same bits.
namespace spyre::exec {
namespace {

constexpr int64_t kDepth = 128;  // of a panel, which stays in the first cache: 64 columns x 128 x 4 bytes
constexpr int64_t kBlockRows = 1152;   // rows of C that one task carries
constexpr int64_t kWidened = 1 << 25;  // floats of X held at once
constexpr int64_t kParallelMacs = 1 << 20;

class Matmul final : public FastKernel {
 public:
  static std::unique_ptr<FastKernel> plan(const FastShape& shape) {
    auto made = std::make_unique<Matmul>();
    return made->init(shape) ? std::move(made) : nullptr;
  }

  void run(const Places& places) const override {
    // Blocks of rows, taken as many at a time as may be held widened.
    for (size_t begin = 0; begin < blocks_.size();) {
      size_t end = begin;
      int64_t floats = 0;
      std::vector<Widened> blocks;
      while (end < blocks_.size() && (end == begin || floats + widened_size(blocks_[end]) <= kWidened)) {
        blocks.push_back({.block = &blocks_[end], .at = floats});
        floats += widened_size(blocks_[end++]);
      }
      const std::unique_ptr<float[]> widened(new float[floats]);
      for (Widened& block : blocks) {
        find_copies(block, places);
        widen(block, widened.get(), places);
      }
      multiply_blocks(blocks, widened.get(), places);
      begin = end;
    }
  }

 private:
  /// Rows of one batch that share W: all of them where W is in HBM, those of one slice where it is in LX.
  struct Block {
    int64_t batch = 0, first = 0, rows = 0;
  };

  /// X of a block as fp32. Cores that share columns of C have a copy of X in their scratchpads; copies with the same
  /// bytes, as a result that several cores share leaves them, are widened once.
  struct Widened {
    const Block* block;
    int64_t at = 0;                ///< the first float
    std::vector<int64_t> copies;   ///< that differ
    std::vector<int64_t> copy_of;  ///< [copy]: its like among `copies`
  };

  enum Operand : uint8_t { kX, kW, kResult };
  /// What coordinates along some axes add to the place of a stick: to the number of the slice that holds it, and to its
  /// distance from the start of each tensor, which in LX is the start of the slice.
  struct Place {
    int64_t slice = 0;
    std::array<int64_t, 3> bytes{};

    Place operator+(const Place& other) const {
      return {
          slice + other.slice,
          {bytes[kX] + other.bytes[kX], bytes[kW] + other.bytes[kW], bytes[kResult] + other.bytes[kResult]}};
    }
  };

  bool init(const FastShape& shape) {
    shape_ = shape;
    tensor_ = {shape.op().inputs[kX], shape.op().inputs[kW], shape.op().output};
    const Geometry &x = shape.input(0), &w = shape.input(1), &out = shape.output();
    for (const Geometry* g : {&x, &w, &out}) {
      const bool wide = g == &out && g->format == DataFormat::IEEE_FP32;
      if (!g->plain || (g->format != DataFormat::SEN169_FP16 && !wide) || g->lane == 0) {
        return false;
      }
    }
    for (int d = 0; d < shape.dims(); ++d) {
      if (!out.present[d]) {
        if (k_ >= 0 || !x.present[d] || !w.present[d]) return false;
        k_ = d;
      } else if (w.present[d] && !x.present[d] && d == out.stick_dim) {
        n_ = d;
      } else {
        (w.present[d] ? batches_dims_ : rows_dims_).push_back(d);
      }
    }
    const std::vector<int64_t>& limit = shape.bound->limit;
    if (k_ < 0 || n_ < 0 || x.stick_dim != k_ || w.stick_dim != n_ || out.stick_dim != n_ ||
        limit[k_] != shape.bound->extents.total[k_] || limit[n_] % kPanel != 0 || !shape.op().masks.empty()) {
      return false;
    }
    int64_t cores = 1;
    for (int d = 0; d < shape.dims(); ++d) {
      weight_[d] = cores;
      cores *= shape.op().dims[d].splits;
    }
    if (cores != shape.cores()) {
      return false;
    }
    core_of_.resize(cores);
    for (int c = 0; c < shape.cores(); ++c) {
      int64_t number = 0;
      for (int d = 0; d < shape.dims(); ++d) {
        number += shape.op().cores[c].slice[d] * weight_[d];
      }
      core_of_[number] = c;
    }
    rows_ = places_along(rows_dims_);
    batches_ = places_along(batches_dims_);
    find_runs();
    x_slice_ = x.residence == Residence::kLx ? ceil_div(limit[n_], shape.op().dims[n_].splits) : limit[n_];
    depth_ = limit[k_];
    x_row_ = depth_ + 16;  // not a power of two: rows must not meet in one set of the cache
    cut_blocks();
    return true;
  }

  void cut_blocks() {
    const bool w_in_lx = shape_.input(1).residence == Residence::kLx;
    const int64_t rows = std::ssize(rows_);
    for (int64_t batch = 0; batch < std::ssize(batches_); ++batch) {
      for (int64_t first = 0; first < rows;) {
        int64_t last = first + 1;
        while (last < rows && last - first < kBlockRows &&
               (!w_in_lx || rows_[last].slice == rows_[first].slice)) {
          ++last;
        }
        blocks_.push_back({batch, first, last - first});
        first = last;
      }
    }
  }

  Place place_along(int d, int64_t at) const {
    const int64_t slice = ceil_div(shape_.bound->limit[d], shape_.op().dims[d].splits);
    Place place{.slice = at / slice * weight_[d]};
    for (const Operand operand : {kX, kW, kResult}) {
      const Geometry& g = shape_.geometry[tensor_[operand]];
      place.bytes[operand] = (g.residence == Residence::kLx ? at % slice : at) / g.per_step[d] * g.step[d];
    }
    return place;
  }

  /// Of every point of these dims, the last dim fastest.
  std::vector<Place> places_along(const std::vector<int>& dims) const {
    std::vector<Place> places = {Place{}};
    for (const int d : dims) {
      std::vector<Place> next;
      for (const Place& place : places) {
        for (int64_t i = 0; i < shape_.bound->limit[d]; ++i) {
          next.push_back(place + place_along(d, i));
        }
      }
      places = std::move(next);
    }
    return places;
  }

  /// How many rows, from each on, have their sticks of X one behind the other.
  void find_runs() {
    run_.assign(rows_.size(), 1);
    for (int64_t r = std::ssize(rows_) - 2; r >= 0; --r) {
      const Place &here = rows_[r], &next = rows_[r + 1];
      if (next.slice == here.slice && next.bytes[kX] == here.bytes[kX] + kStickBytes.count()) {
        run_[r] = run_[r + 1] + 1;
      }
    }
  }

  /// A stick as the core that has it sees it.
  std::byte* stick_at(Operand operand, const Place& place, const Places& places) const {
    const int tensor = tensor_[operand];
    std::byte* const start = shape_.geometry[tensor].residence == Residence::kHbm
                                 ? places.origin[tensor]
                                 : places.at(tensor, core_of_[place.slice]);
    return start + place.bytes[operand];
  }

  // ---- X

  int64_t planes() const { return ceil_div(shape_.bound->limit[n_], x_slice_); }
  int64_t widened_size(const Block& block) const { return planes() * block.rows * x_row_; }

  /// Where the sticks of X that begin a slice of K are in a block, as one copy has them, but for the row.
  Place x_place(const Block& block, int64_t copy, int64_t k) const {
    return batches_[block.batch] + place_along(n_, copy * x_slice_) + place_along(k_, k);
  }

  bool same_bytes(const Block& block, int64_t copy, int64_t other, const Places& places) const {
    const int64_t slice = shape_.bound->extents.per_core[k_], step = shape_.input(0).step[k_];
    for (int64_t k = 0; k < depth_; k += slice) {
      const Place here = x_place(block, copy, k), there = x_place(block, other, k);
      for (int64_t row = block.first, last = row + block.rows; row < last;) {
        const int64_t run = std::min(run_[row], last - row);
        const std::byte *a = stick_at(kX, here + rows_[row], places),
                        *b = stick_at(kX, there + rows_[row], places);
        for (int64_t stick = 0; a != b && stick < slice / kPanel; ++stick) {
          if (std::memcmp(a + stick * step, b + stick * step, run * kStickBytes.count()) != 0) {
            return false;
          }
        }
        row += run;
      }
    }
    return true;
  }

  void find_copies(Widened& widened, const Places& places) const {
    std::vector<char> like_first(planes(), 1);
    const int64_t elements = widened.block->rows * depth_;
    parallel_for(planes() - 1, std::max<int64_t>(kParallelPoints / elements, 1),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t copy = begin + 1; copy <= end; ++copy) {
                     like_first[copy] = same_bytes(*widened.block, copy, 0, places);
                   }
                 });
    for (int64_t copy = 0; copy < planes(); ++copy) {
      if (copy == 0 || !like_first[copy]) {
        widened.copies.push_back(copy);
      }
      widened.copy_of.push_back(like_first[copy] ? 0 : std::ssize(widened.copies) - 1);
    }
  }

  void widen(const Widened& widened, float* floats, const Places& places) const {
    const int64_t slice = shape_.bound->extents.per_core[k_], step = shape_.input(0).step[k_];
    const int64_t rows = widened.block->rows;
    parallel_for(std::ssize(widened.copies) * rows, std::max<int64_t>(kParallelPoints / depth_, 1),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t i = begin; i < end; ++i) {
                     float* to = floats + widened.at + i * x_row_;
                     for (int64_t k = 0; k < depth_; k += slice) {
                       const Place row = rows_[widened.block->first + i % rows];
                       const std::byte* from =
                           stick_at(kX, x_place(*widened.block, widened.copies[i / rows], k) + row, places);
                       for (int64_t j = 0; j < slice; j += kPanel) {
                         shape_.vectors->widen(from + j / kPanel * step, to + k + j, kPanel);
                       }
                     }
                   }
                 });
  }

  // ---- C

  void multiply_blocks(const std::vector<Widened>& blocks, const float* widened, const Places& places) const {
    const int64_t panels = shape_.bound->limit[n_] / kPanel;
    const int64_t macs = blocks[0].block->rows * kPanel * depth_;
    parallel_for(std::ssize(blocks) * panels, std::max<int64_t>(kParallelMacs / macs, 1),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t i = begin; i < end; ++i) {
                     const Widened& of = blocks[i / panels];
                     const int64_t n = i % panels * kPanel, copy = of.copy_of[n / x_slice_];
                     multiply_panel(*of.block, widened + of.at + copy * of.block->rows * x_row_, n, places);
                   }
                 });
  }

  struct Scratch {
    std::vector<float> packed, partial, total;
  };
  static Scratch& scratch() {
    thread_local Scratch mine;
    return mine;
  }

  /// All rows of a block, one panel of columns.
  void multiply_panel(const Block& block, const float* x, int64_t n, const Places& places) const {
    const int64_t slice = shape_.bound->extents.per_core[k_];
    Scratch& mine = scratch();
    const int64_t size = block.rows * kPanel;
    mine.partial.resize(std::max<size_t>(mine.partial.size(), size));
    mine.total.resize(std::max<size_t>(mine.total.size(), size));
    for (int64_t k = 0; k < depth_; k += slice) {
      float* partial = k == 0 ? mine.total.data() : mine.partial.data();
      multiply_slice(block, x, n, k, slice, partial, places);
      if (k > 0) {
        for (int64_t i = 0; i < size; ++i) {
          mine.total[i] += partial[i];
        }
      }
    }
    store(block, n, mine.total.data(), places);
  }

  /// One slice of K, from zero.
  void multiply_slice(const Block& block, const float* x, int64_t n, int64_t first, int64_t slice, float* c,
                      const Places& places) const {
    const VectorKernels& vectors = *shape_.vectors;
    const int64_t stride = shape_.input(1).step[k_];
    const Place at = batches_[block.batch] + rows_[block.first] + place_along(n_, n) + place_along(k_, first);
    const std::byte* w = stick_at(kW, at, places);
    MatmulTile tile{.x_row = x_row_};
    if (block.rows <= vectors.matmul_rows) {
      tile.x = x + first;
      tile.rows = static_cast<int>(block.rows);
      tile.depth = slice;
      tile.c = c;
      tile.fresh = true;
      return vectors.multiply_codes(tile, w, stride);
    }
    std::vector<float>& packed = scratch().packed;
    packed.resize(kDepth * kPanel);
    for (int64_t k = 0; k < slice; k += kDepth) {
      tile.depth = std::min(kDepth, slice - k);
      tile.fresh = k == 0;
      vectors.pack(w + k * stride, stride, tile.depth, packed.data());
      for (int64_t r = 0; r < block.rows; r += vectors.matmul_rows) {
        tile.x = x + r * x_row_ + first + k;
        tile.rows = static_cast<int>(std::min<int64_t>(vectors.matmul_rows, block.rows - r));
        tile.c = c + r * kPanel;
        vectors.multiply(tile, packed.data());
      }
    }
  }

  /// Writes: once in HBM, or to every core that shares the result.
  void store(const Block& block, int64_t n, const float* total, const Places& places) const {
    const int64_t slice = shape_.bound->extents.per_core[k_];
    const bool in_lx = shape_.output().residence == Residence::kLx;
    const bool wide = shape_.output().format == DataFormat::IEEE_FP32;
    for (int64_t k = 0; k < (in_lx ? depth_ : slice); k += slice) {
      const Place panel = batches_[block.batch] + place_along(n_, n) + place_along(k_, k);
      for (int64_t r = 0; r < block.rows; ++r) {
        std::byte* stick = stick_at(kResult, panel + rows_[block.first + r], places);
        if (wide) {
          store_wide(total + r * kPanel, stick, stick + shape_.output().step[n_]);
        } else {
          shape_.vectors->narrow(total + r * kPanel, stick, kPanel);
        }
      }
    }
  }

  /// A panel as two sticks of fp32, in the order that widening leaves: fours alternate.
  static void store_wide(const float* panel, std::byte* first, std::byte* second) {
    constexpr int64_t kRun = 4;
    for (int64_t c = 0; c < kPanel; c += kRun) {
      std::array<float, kRun> run;
      for (int64_t e = 0; e < kRun; ++e) run[e] = without_nan_sign(panel[c + e]);
      std::memcpy((c / kRun % 2 == 0 ? first : second) + c / 2 / kRun * sizeof(run), run.data(), sizeof(run));
    }
  }

  FastShape shape_;
  int k_ = -1, n_ = -1;
  std::array<int, 3> tensor_{};  ///< [operand]
  std::vector<int> rows_dims_, batches_dims_;
  std::vector<Place> rows_, batches_;
  std::vector<int64_t> run_;  ///< [row]
  Coordinate weight_{};       ///< of a dim's slice in the number of a slice
  std::vector<int> core_of_;  ///< [slice number]
  std::vector<Block> blocks_;
  int64_t depth_ = 0, x_row_ = 0;
  int64_t x_slice_ = 0;  ///< columns that use the same copy of X
};

}  // namespace

std::unique_ptr<FastKernel> plan_matmul(const FastShape& shape) {
  return Matmul::plan(shape);
}

}  // namespace spyre::exec
