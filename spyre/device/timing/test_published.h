#pragma once

#include "spyre/cost/matmul.h"
#include "spyre/cost/memory.h"
#include "spyre/device/timing/test_program.h"

/// Programs whose times upstream published or fitted a curve to (docs/reference/timing.md), as artifacts, and
/// what is said of them. Shared by the tests of check values and by the page that docs/timing.md is.
namespace spyre::timing {

constexpr int64_t kFar = int64_t{1} << 30;  // tensors lie that far apart

/// One operation and its time according to upstream.
struct Published {
  std::string name;
  program::DeviceProgram program;
  double us = 0;
};

/// [rows, cols] in 16 bits with the stick along the columns, or one row, or one column of it.
inline TensorSpec matrix(int64_t place) {
  return {.order = {"mb", "out"}, .base = place * kFar};
}
inline TensorSpec row_of(int64_t place) {
  TensorSpec tensor = matrix(place);
  tensor.scale["mb"] = -1;
  return tensor;
}
inline TensorSpec column_of(int64_t place) {
  TensorSpec tensor = matrix(place);
  tensor.scale["out"] = -2;
  return tensor;
}

/// An operation over [rows, cols] with its rows cut over cores.
inline OpSpec rows_op(const std::string& function, int64_t rows, int64_t cols, int64_t cores,
                      std::vector<TensorSpec> tensors) {
  return {.function = function,
          .dims = {{"mb", rows, std::min(rows, cores)}, {"out", cols}},
          .tensors = std::move(tensors)};
}

inline Published streaming(const std::string& function, int inputs, int64_t rows, int64_t cols) {
  std::vector<TensorSpec> tensors;
  for (int i = 0; i <= inputs; ++i) tensors.push_back(matrix(i));
  const Bytes size(rows * cols * 2);
  return {fmt::format("{} of {} x {}", function, rows, cols),
          program_of({rows_op(function, rows, cols, 32, tensors)}),
          streaming_time({size * inputs, size}, fitted_rates()).us()};
}

inline Published row_broadcast(int64_t rows, int64_t cols) {
  const Bytes size(rows * cols * 2);
  return {fmt::format("add of {} x {} and a row", rows, cols),
          program_of({rows_op("add", rows, cols, 32, {matrix(0), row_of(1), matrix(2)})}),
          flat_time({size + Bytes(cols * 2), size}, row_broadcast_rate(rows, cols)).us()};
}

inline Published column_broadcast(int64_t rows, int64_t cols) {
  const Bytes size(rows * cols * 2);
  return {fmt::format("add of {} x {} and a column", rows, cols),
          program_of({rows_op("add", rows, cols, 32, {matrix(0), column_of(1), matrix(2)})}),
          flat_time({size + Bytes(rows * 128), size}, column_broadcast_rate(rows, cols)).us()};
}

/// A row reduction alone. Each result is a stick.
inline Published row_sum(int64_t rows, int64_t cols, int64_t cores) {
  OpSpec op = rows_op("sum", rows, cols, cores, {matrix(0), column_of(1)});
  op.accumulator_listed = true;
  return {fmt::format("row sum of {} x {} on {}", rows, cols, cores), program_of({op}),
          flat_time({Bytes(rows * cols * 2), Bytes(rows * 128)},
                    lone_reduction_rate(rows, static_cast<int>(cores), fitted_rates()))
              .us()};
}

inline Published column_sum(int64_t rows, int64_t cols) {
  OpSpec op{.function = "sumnonstick",
            .dims = {{"mb", cols, std::min<int64_t>(32, cols / 64)}, {"out", rows}},
            .tensors = {{.order = {"out", "mb"}, .stick = {"mb"}, .base = 0},
                        {.order = {"mb", "out"}, .stick = {"mb"}, .scale = {{"out", -1}}, .base = kFar}},
            .accumulator_listed = true};
  return {fmt::format("column sum of {} x {}", rows, cols), program_of({op}),
          flat_time({Bytes(rows * cols * 2), Bytes(cols * 2)}, fitted_rates().outer_reduction).us()};
}

inline Published transpose(int64_t rows, int64_t cols) {
  const int64_t cut = std::min<int64_t>(32, rows / 64);
  OpSpec op{.function = "ReStickifyOpHBM",
            .dims = {{"mb", rows, cut}, {"out", cols, 32 / cut}},
            .tensors = {{.order = {"mb", "out"}, .stick = {"out"}, .base = 0},
                        {.order = {"out", "mb"}, .stick = {"mb"}, .base = kFar}}};
  const Bytes size(rows * cols * 2);
  return {fmt::format("transpose of {} x {}", rows, cols), program_of({op}),
          flat_time({size, size}, fitted_rates().stick_swap).us()};
}

/// [R, M, C] to [M, R, C].
inline Published exchange(int64_t rows, int64_t middle, int64_t cols) {
  const int64_t cut = std::min<int64_t>(32, rows);
  OpSpec op{
      .function = "identity",
      .dims = {{"mb", rows, cut}, {"x", middle, 32 / cut}, {"out", cols}},
      .tensors = {{.order = {"out", "x", "mb"}, .base = 0}, {.order = {"out", "mb", "x"}, .base = kFar}}};
  const Bytes size(rows * middle * cols * 2);
  return {fmt::format("{} x {} x {} with its outer dimensions exchanged", rows, middle, cols),
          program_of({op}), flat_time({size, size}, swap_outer_rate(rows, middle, cols)).us()};
}

/// One of two parts of a concatenation along the rows, which are outermost.
inline Published concatenate(int64_t rows, int64_t cols) {
  OpSpec op{.function = "identity",
            .dims = {{"mb", rows, std::min<int64_t>(32, rows)}, {"out", cols}},
            .tensors = {{.order = {"out", "mb"}, .base = 0},
                        {.order = {"out", "mb"}, .base = kFar, .gap = {{"mb", rows}}}}};
  const Bytes size(rows * cols * 2);
  return {fmt::format("{} x {} as part of a concatenation", rows, cols), program_of({op}),
          flat_time({size, size}, concat_partition_rate(rows, cols)).us()};
}

/// [m, k] times [k, n] under a split.
inline program::DeviceProgram matmul_program(const MatmulShape& shape, const MatmulSplit& split) {
  return program_of(
      {matmul({"", shape.m, split.m}, {"", shape.n, split.n}, {"", shape.k, split.k}, 0, kFar, 2 * kFar)});
}

inline Published square_matmul(int64_t m, int64_t n, int64_t k, MatmulSplit split) {
  const MatmulShape shape = {.m = m, .n = n, .k = k};
  return {fmt::format("matmul {} x {} x {}, cut {} x {}", m, n, k, split.m, split.n),
          matmul_program(shape, split), matmul_time(shape, split, fitted_rates()).total(fitted_rates()).us()};
}

/// How much of a softmax stays in LX: the four stages of upstream's scratchpad design.
enum class Stage { kNothing = 1, kReductions, kIntermediates, kInputToo };

/// max, sub, exp, sum, realdiv along dimension 0 of a [rows, cols] tensor, columns cut over cores.
inline program::DeviceProgram softmax(int64_t rows, int64_t cols, int64_t cores, Stage stage) {
  const std::vector<Dim> dims = {{"mb", cols, cores}, {"out", rows}};
  // In LX differences and exponentials take the place of the input, the sum that of the maximum.
  const auto whole = [](int64_t place, bool lx) {
    return TensorSpec{.order = {"out", "mb"}, .stick = {"mb"}, .base = lx ? 0 : place * kFar, .lx = lx};
  };
  const auto vector = [](int64_t place, bool lx) {
    return TensorSpec{.order = {"mb", "out"},
                      .stick = {"mb"},
                      .scale = {{"out", -1}},
                      .base = lx ? place << 20 : place * kFar,
                      .lx = lx};
  };
  const TensorSpec x = whole(0, stage >= Stage::kInputToo), y = whole(5, false);
  const TensorSpec top = vector(1, stage >= Stage::kReductions),
                   sum = vector(stage >= Stage::kReductions ? 1 : 2, stage >= Stage::kReductions);
  const TensorSpec less = whole(3, stage >= Stage::kIntermediates),
                   e = whole(4, stage >= Stage::kIntermediates);
  std::vector<OpSpec> ops;
  if (x.lx) ops.push_back({.function = "identity", .dims = dims, .tensors = {whole(0, false), x}});
  ops.push_back({.function = "maxnonstick", .dims = dims, .tensors = {x, top}, .accumulator_listed = true});
  ops.push_back({.function = "sub", .dims = dims, .tensors = {x, top, less}});
  ops.push_back({.function = "exp", .dims = dims, .tensors = {less, e}});
  ops.push_back({.function = "sumnonstick", .dims = dims, .tensors = {e, sum}, .accumulator_listed = true});
  ops.push_back({.function = "realdiv", .dims = dims, .tensors = {e, sum, y}});
  return program_of(ops);
}

/// The published medians of launches of a softmax of 512 x 1024, us.
struct SoftmaxMedian {
  Stage stage;
  int64_t cores;
  double us;
};
inline constexpr SoftmaxMedian kSoftmaxMedians[] = {{Stage::kNothing, 1, 32.51},
                                                    {Stage::kReductions, 1, 27.66},
                                                    {Stage::kIntermediates, 1, 23.93},
                                                    {Stage::kInputToo, 1, 23.67},
                                                    {Stage::kInputToo, 4, 32.17}};

}  // namespace spyre::timing
