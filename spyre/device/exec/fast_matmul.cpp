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

constexpr int64_t kDepth = 256;        // of a panel: 64 columns x 256 x 4 bytes
constexpr int64_t kBlockRows = 1152;   // rows of C that one task carries
constexpr int64_t kWidened = 1 << 25;  // floats of X held at once
constexpr int64_t kParallelMacs = 1 << 20;

/// One axis of the product (rows, batches): where each of its points is in every tensor.
struct Points {
  std::vector<Coordinate> at;  ///< global; dims of other axes are 0
};

Points points_of(const std::vector<int>& dims, const std::vector<int64_t>& limit) {
  Points points{.at = {Coordinate{}}};
  for (const int d : dims) {
    std::vector<Coordinate> next;
    for (const Coordinate& c : points.at) {
      for (int64_t i = 0; i < limit[d]; ++i) {
        next.push_back(c);
        next.back()[d] = i;
      }
    }
    points.at = std::move(next);
  }
  return points;
}

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

  bool init(const FastShape& shape) {
    shape_ = shape;
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
    rows_ = points_of(rows_dims_, limit);
    batches_ = points_of(batches_dims_, limit);
    x_slice_ = x.residence == Residence::kLx ? shape.bound->extents.per_core[n_] : limit[n_];
    depth_ = limit[k_];
    x_row_ = depth_ + 16;  // not a power of two: rows must not meet in one set of the cache
    cut_blocks();
    return true;
  }

  void cut_blocks() {
    const bool w_in_lx = shape_.input(1).residence == Residence::kLx;
    const auto rows = static_cast<int64_t>(rows_.at.size());
    for (int64_t batch = 0; batch < static_cast<int64_t>(batches_.at.size()); ++batch) {
      for (int64_t first = 0; first < rows;) {
        int64_t last = first + 1;
        while (last < rows && last - first < kBlockRows &&
               (!w_in_lx || slice_number(rows_.at[last]) == slice_number(rows_.at[first]))) {
          ++last;
        }
        blocks_.push_back({batch, first, last - first});
        first = last;
      }
    }
  }

  /// The number of the slice that holds a point; each belongs to one core.
  int64_t slice_number(const Coordinate& g) const {
    int64_t number = 0;
    for (int d = 0; d < shape_.dims(); ++d) {
      number += g[d] / shape_.bound->extents.per_core[d] * weight_[d];
    }
    return number;
  }

  Coordinate point(int64_t batch, int64_t row, int64_t n, int64_t k) const {
    Coordinate g{};
    for (const int d : rows_dims_) g[d] = rows_.at[row][d];
    for (const int d : batches_dims_) g[d] = batches_.at[batch][d];
    g[n_] = n;
    g[k_] = k;
    return g;
  }

  /// The stick of a tensor that holds a point, as the core of that point sees it.
  std::byte* stick_at(int tensor, const Coordinate& g, const Places& places) const {
    const Geometry& geometry = shape_.geometry[tensor];
    if (geometry.residence == Residence::kHbm) {
      return places.origin[tensor] + geometry.offset(g, shape_.dims());
    }
    const int core = core_of_[slice_number(g)];
    Coordinate local{};
    for (int d = 0; d < shape_.dims(); ++d) {
      local[d] = g[d] - shape_.boxes[core].lower[d];
    }
    return places.at(tensor, core) + geometry.offset(local, shape_.dims());
  }

  // ---- X

  int64_t planes() const { return ceil_div(shape_.bound->limit[n_], x_slice_); }
  int64_t widened_size(const Block& block) const { return planes() * block.rows * x_row_; }

  /// The stick of X that begins a slice of K in a row of a block, as one copy has it.
  const std::byte* x_at(const Block& block, int64_t copy, int64_t row, int64_t k,
                        const Places& places) const {
    return stick_at(shape_.op().inputs[0], point(block.batch, block.first + row, copy * x_slice_, k), places);
  }

  bool same_bytes(const Block& block, int64_t copy, int64_t other, const Places& places) const {
    const int64_t slice = shape_.bound->extents.per_core[k_], step = shape_.input(0).step[k_];
    for (int64_t row = 0; row < block.rows; ++row) {
      for (int64_t k = 0; k < depth_; k += slice) {
        const std::byte *a = x_at(block, copy, row, k, places), *b = x_at(block, other, row, k, places);
        for (int64_t stick = 0; a != b && stick < slice / kPanel; ++stick) {
          if (std::memcmp(a + stick * step, b + stick * step, kStickBytes.count()) != 0) {
            return false;
          }
        }
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
                       const std::byte* from =
                           x_at(*widened.block, widened.copies[i / rows], i % rows, k, places);
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
    const std::byte* w = stick_at(shape_.op().inputs[1], point(block.batch, block.first, n, first), places);
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
    for (int64_t r = 0; r < block.rows; ++r) {
      for (int64_t k = 0; k < (in_lx ? depth_ : slice); k += slice) {
        std::byte* stick = stick_at(shape_.op().output, point(block.batch, block.first + r, n, k), places);
        if (wide) {
          store_wide(total + r * kPanel, stick);
        } else {
          shape_.vectors->narrow(total + r * kPanel, stick, kPanel);
        }
      }
    }
  }

  /// A panel as two sticks of fp32, in the order that widening leaves.
  void store_wide(const float* panel, std::byte* first) const {
    constexpr int64_t kRun = 4;
    for (int64_t c = 0; c < kPanel; c += kRun) {
      std::array<float, kRun> run;
      for (int64_t e = 0; e < kRun; ++e) run[e] = without_nan_sign(panel[c + e]);
      const int64_t at = widened_position(c), lanes = shape_.output().lanes;
      std::byte* stick = first + at / lanes * shape_.output().step[n_];
      std::memcpy(stick + at % lanes * sizeof(float), run.data(), sizeof(run));
    }
  }

  FastShape shape_;
  int k_ = -1, n_ = -1;
  std::vector<int> rows_dims_, batches_dims_;
  Points rows_, batches_;
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
