#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "spyre/arch/data_format.h"
#include "spyre/ops/ops.h"

/// The inner loops of the fast executor, compiled once for each instruction set.
///
/// Everything here gives the bits that the interpreter's rules give. Rows of `spyre/ops/table.def` are
/// instantiated inside each instruction set's namespace, where the compiler turns their expressions into
/// vector code; nothing is written twice. Elements are widened and rounded by `spyre/layout/sen169-inl.h`.
namespace spyre::exec {

/// A pointwise row over rows of sticks. All strides in bytes.
struct PointwiseTile {
  const std::byte* in[3] = {};
  bool splat[3] = {};      ///< one element stands for the whole run
  int64_t in_row[3] = {};  ///< from one row to the next
  std::byte* out = nullptr;
  int64_t out_row = 0;
  int64_t run = 0;  ///< elements of a row, whole sticks
  int64_t rows = 0;
  const void* k = nullptr;  ///< three constants of the row's type
};
using PointwiseKernel = void (*)(const PointwiseTile& tile);

/// Sticks that fold lane by lane, for up to kFoldRows results at a time: neighbours in memory share its
/// pages.
inline constexpr int kFoldRows = 32;
struct FoldTile {
  const std::byte* first[kFoldRows] = {};  ///< of each result
  int rows = 0;
  int64_t stride = 0;  ///< bytes from stick to stick
  int64_t count = 0;   ///< sticks
};
/// A reduction row. Numbers of a stick stay in an order of the kernel's own until `sort`.
struct FoldKernels {
  /// Folds every stick, `offset` bytes on, into its result's lanes in `acc`, one stick of numbers after
  /// another.
  void (*fold)(const FoldTile& tile, int64_t offset, float* acc) = nullptr;
  /// Brings the lanes of one result into the order of memory.
  void (*sort)(float* lanes) = nullptr;
  /// Folds sorted lanes to one number: each with the one half a stick on, until one is left.
  float (*fold_lanes)(const float* lanes) = nullptr;
};

/// A tile of a matrix product: kPanel columns, a few rows.
inline constexpr int kPanel = 64;
struct MatmulTile {
  const float* x = nullptr;  ///< row r, element k at x[r * x_row + k]
  int64_t x_row = 0;
  int rows = 0;  ///< at most MatmulKernels::rows
  int64_t depth = 0;
  float* c = nullptr;  ///< row r, column j at c[r * kPanel + j]
  bool fresh = false;  ///< starts from zero rather than from what `c` holds
};

struct VectorKernels {
  std::string_view name;  ///< Highway's name of the instruction set

  /// Kernels of a row; null where there is none for the format.
  PointwiseKernel (*pointwise)(OpId op, DataFormat format);
  FoldKernels (*fold)(OpId op, DataFormat format);
  /// Sums of squares.
  FoldKernels (*fold_squares)(DataFormat format);

  /// SEN169 to fp32 and back, `n` a multiple of 64. Results that are NaN lose their sign.
  void (*widen)(const std::byte* from, float* to, int64_t n);
  void (*narrow)(const float* from, std::byte* to, int64_t n);

  /// What the conversions `dl16tofp32` and `fp32todl16` do with a stick of SEN169 and its two sticks of fp32: groups of
  /// four numbers alternate between the two.
  void (*split_stick)(const std::byte* from, std::byte* first, std::byte* second);
  void (*join_sticks)(const std::byte* first, const std::byte* second, std::byte* to);

  int matmul_rows;
  /// Brings `depth` rows of kPanel codes, `stride` bytes apart, into the order `multiply` reads.
  void (*pack)(const std::byte* w, int64_t stride, int64_t depth, float* packed);
  /// c = [c +] x * w, each element's products added in ascending order.
  void (*multiply)(const MatmulTile& tile, const float* packed);
  /// The same from zero and from the codes: for so few rows that packing would cost more than it saves.
  void (*multiply_codes)(const MatmulTile& tile, const std::byte* w, int64_t stride);
};

/// The instruction sets that this build has and this processor can run, best first. Never empty.
std::span<const VectorKernels> vector_kernels();

}  // namespace spyre::exec
