// Matrix products, convolutions and pooling.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "spyre/base/json.h"
#include "spyre/device/exec/op_case.h"

namespace spyre::testing_artifacts {

using namespace exec;  // NOLINT: tests of that layer

namespace {

/// -1, -0.5, 0, 0.5 or 1: products and short sums are exact, so that order and rounding cannot hide a
/// mistake.
float small(const Point& g, int salt) {
  return std::round(sample(g, salt) / 2) / 2;
}

OpSpec matmul(int64_t m, int64_t n, int64_t k, int64_t m_splits, int64_t n_splits, int64_t k_splits) {
  return {.function = "batchmatmul",
          .dims = {{"mb", m, m_splits}, {"out", n, n_splits}, {"in", k, k_splits}},
          .tensors = {{.order = {"mb", "in"}, .stick = {"in"}},
                      {.order = {"in", "out"}, .stick = {"out"}},
                      {.order = {"mb", "out"}, .stick = {"out"}}},
          .k_fastest = true};
}

TEST(Matmul, MultipliesHoweverTheWorkIsDivided) {
  const int64_t splits[][3] = {{1, 1, 1}, {2, 1, 1}, {1, 2, 1}, {1, 1, 2}, {2, 1, 2}, {8, 2, 2}};
  for (const auto& [m, n, k] : splits) {
    SCOPED_TRACE(fmt::format("m {} n {} k {}", m, n, k));
    OpCase c(matmul(8, 128, 128, m, n, k));
    c.fill(0, [](const Point& g) { return small(g, 1); });
    c.fill(1, [](const Point& g) { return small(g, 2); });
    const OpCounts counts = c.run();
    c.expect([](const Point& g) {
      double sum = 0;
      for (int64_t i = 0; i < 128; ++i) {
        sum += static_cast<double>(small({{"mb", g.at("mb")}, {"in", i}}, 1)) *
               small({{"in", i}, {"out", g.at("out")}}, 2);
      }
      return static_cast<float>(sum);
    });
    EXPECT_EQ(counts.total().macs, 8 * 128 * 128);
    EXPECT_EQ(counts.total().vector_elements, 0);
  }
}

TEST(Matmul, ReadsSharedOperandsOncePerCoreAndChainsPartialSums) {
  // X(128,256) @ W(256,128), M and K both in two: a worked example that upstream publishes.
  OpCase c(matmul(128, 128, 256, 2, 1, 2));
  c.fill(0, [](const Point&) { return 0.5f; });
  c.fill(1, [](const Point&) { return 1.0f; });
  const OpCounts counts = c.run();
  EXPECT_EQ(c.get(2, {{"mb", 127}, {"out", 127}}), 128.0f);
  // Each core reads a quarter of X and half of W; two of the four write half of Y each.
  EXPECT_EQ(counts.tensor_total(0), (Traffic{.hbm_read = 128 * 256 * 2}));
  EXPECT_EQ(counts.tensor_total(1), (Traffic{.hbm_read = 2 * 256 * 128 * 2}));
  EXPECT_EQ(counts.tensor_total(2), (Traffic{.hbm_written = 128 * 128 * 2}));
  EXPECT_EQ(counts.total().ring_bytes, 2 * (64 * 128 * 4));
  EXPECT_EQ(counts.total().ring_byte_hops, counts.total().ring_bytes);  // K partners are neighbours
}

TEST(Matmul, PaddedContractionIncludesWhatPaddingHolds) {
  // K is 128 in memory, 100 in the program: the graph must zero the rest, the card does not hide it.
  OpCase c(matmul(2, 64, 128, 1, 1, 1));
  c.fill(0, [](const Point&) { return 1.0f; });
  c.fill(1, [](const Point& g) { return g.at("in") < 100 ? 1.0f : 0.5f; });
  c.run();
  EXPECT_EQ(c.get(2, {{"mb", 1}, {"out", 3}}), 114.0f);
}

TEST(Matmul, AccumulatesInFp32AndRoundsOnce) {
  // 1024 + 1 + 1 + 1: each step would be lost in the device's 16 bits, the sum 1027 rounds to 1028 (ties
  // away).
  OpCase c(matmul(1, 64, 64, 1, 1, 1));
  c.fill(0, [](const Point& g) { return g.at("in") == 0 ? 1024.0f : g.at("in") < 4 ? 1.0f : 0.0f; });
  c.fill(1, [](const Point&) { return 1.0f; });
  c.run();
  EXPECT_EQ(c.get(2, {{"mb", 0}, {"out", 0}}), 1028.0f);
}

TEST(Matmul, AnFp32ResultKeepsTheSumInTheOrderWideningLeaves) {
  // 1024 + 1 + 1 + 1 again, and 2^-20 of which 16 bits would keep nothing.
  OpSpec op = matmul(2, 128, 128, 1, 2, 2);
  op.tensors[2].format = DataFormat::IEEE_FP32;
  op.tensors[2].stick_sizes = {32};
  OpCase c(op);
  c.fill(0, [](const Point& g) { return g.at("in") == 0 ? 1024.0f : g.at("in") < 4 ? 1.0f : 0.0f; });
  c.fill(1, [](const Point& g) {
    return g.at("in") == 0 ? 1.0f : 1.0f + 0x1p-9f * static_cast<float>(g.at("out") % 64);
  });
  c.run();
  // Column 8g + 4s + e of a stick lies at 32s + 4g + e of the pair.
  c.expect([](const Point& g) {
    const int64_t at = g.at("out") % 64, column = at % 32 / 4 * 8 + at / 32 * 4 + at % 4;
    return 1024.0f + 3 * (1.0f + 0x1p-9f * static_cast<float>(column));
  });
}

TEST(Matmul, BatchesAreSeparateAndMayBeBroadcastInX) {
  for (const bool broadcast : {false, true}) {
    OpSpec op{.function = "batchmatmul",
              .dims = {{"x", 4, 2}, {"mb", 3}, {"out", 64}, {"in", 64}},
              .tensors = {{.order = {"mb", "in", "x"}, .stick = {"in"}},
                          {.order = {"in", "x", "out"}, .stick = {"out"}},
                          {.order = {"mb", "out", "x"}, .stick = {"out"}}}};
    if (broadcast) {
      op.tensors[0].scale["x"] = -1;
    }
    OpCase c(op);
    c.fill(0, [](const Point& g) { return small(g, 1); });
    c.fill(1, [](const Point& g) { return small(g, 2); });
    c.run();
    c.expect([&](const Point& g) {
      double sum = 0;
      for (int64_t i = 0; i < 64; ++i) {
        const int64_t x = broadcast ? 0 : g.at("x");
        sum += static_cast<double>(small({{"x", x}, {"mb", g.at("mb")}, {"in", i}}, 1)) *
               small({{"x", g.at("x")}, {"in", i}, {"out", g.at("out")}}, 2);
      }
      return static_cast<float>(sum);
    });
  }
}

TEST(Matmul, Fp8ReadsInterleavedActivationsAndTwoRowWeightSticks) {
  for (const int64_t k_splits : {1, 2}) {
    OpSpec op{
        .function = "batchmatmulfp8",
        .dims = {{"mb", 4, 2}, {"out", 128}, {"in", 256, k_splits}},
        .tensors =
            {{.order = {"mb", "in"}, .stick = {"in"}, .stick_sizes = {128}, .format = kFp8, .elem_arr = 4},
             {.order = {"in", "out"}, .stick = {"in", "out"}, .stick_sizes = {2, 64}, .format = kFp8},
             {.order = {"mb", "out"}, .stick = {"out"}}},
        .k_fastest = true};
    OpCase c(op);
    c.fill(0, [](const Point& g) { return small(g, 1); });
    c.fill(1, [](const Point& g) { return small(g, 2); });
    // By hand: column 64h + 8g + e of X sits in lane 16g + 8h + e; W(k, n) in lane 2 (n mod 64) + k mod 2.
    EXPECT_EQ(element_at(c.op(), c.op().tensors[0], {{"mb", 0}, {"in", 64 + 8 * 3 + 5}}), 16 * 3 + 8 + 5);
    EXPECT_EQ(element_at(c.op(), c.op().tensors[1], {{"in", 3}, {"out", 5}}), 128 + 2 * 5 + 1);
    c.run();
    c.expect([](const Point& g) {
      double sum = 0;
      for (int64_t i = 0; i < 256; ++i) {
        sum += static_cast<double>(small({{"mb", g.at("mb")}, {"in", i}}, 1)) *
               small({{"in", i}, {"out", g.at("out")}}, 2);
      }
      return static_cast<float>(sum);
    });
  }
}

Json window(int64_t out, int64_t kernel, int64_t stride, const char* window_dim, int64_t pad = 0) {
  return {{"padFront_", pad},  {"padBack_", pad}, {"totalSize_", (out - 1) * stride + kernel},
          {"stride_", stride}, {"dilation_", 1},  {"windowDim_", window_dim}};
}

TEST(Conv2d, SumsOverChannelsAndWindow) {
  for (const int64_t stride : {1, 2}) {
    const int64_t rows = 2 * stride + 3, columns = stride + 2;  // of the input: outputs 3 x 2, kernel 3 x 2
    OpSpec op{.function = "conv2d",
              .dims = {{"mb", 2, 2}, {"i", 3}, {"j", 2}, {"out", 64}, {"in", 64}, {"ki", 3}, {"kj", 2}},
              .tensors = {{.order = {"mb", "j", "i", "in"},
                           .stick = {"in"},
                           .window_extent = {{"i", rows}, {"j", columns}}},
                          {.order = {"kj", "ki", "in", "out"}, .stick = {"out"}},
                          {.order = {"mb", "j", "i", "out"}, .stick = {"out"}}}};
    op.padding = {{"i", window(3, 3, stride, "ki")}, {"j", window(2, 2, stride, "kj")}};
    OpCase c(op);
    c.fill(0, [](const Point& g) { return small(g, 1); });
    c.fill(1, [](const Point& g) { return small(g, 2); });
    const OpCounts counts = c.run();
    c.expect([&](const Point& g) {
      double sum = 0;
      for_points({{"in", 64}, {"ki", 3}, {"kj", 2}}, [&](const Point& k) {
        const Point x = {{"mb", g.at("mb")},
                         {"in", k.at("in")},
                         {"i", g.at("i") * stride + k.at("ki")},
                         {"j", g.at("j") * stride + k.at("kj")}};
        const Point w = {{"in", k.at("in")}, {"out", g.at("out")}, {"ki", k.at("ki")}, {"kj", k.at("kj")}};
        sum += static_cast<double>(small(x, 1)) * small(w, 2);
      });
      return static_cast<float>(sum);
    });
    EXPECT_EQ(counts.total().macs, 2 * 3 * 2 * 64 * 64 * 3 * 2);
    EXPECT_EQ(counts.tensor_total(0).hbm_read, 2 * rows * columns * 128);
  }
}

TEST(DepthwiseConv, KeepsChannelsApartAndReadsZeroInThePadding) {
  // 5 x 5 input, 3 x 3 kernel, one row and column of padding on each side: 5 x 5 output, rows over 5 cores.
  OpSpec op{.function = "depthwiseconv2dnative",
            .dims = {{"mb", 1}, {"out", 64}, {"i", 5, 5}, {"j", 5}, {"ki", 3}, {"kj", 3}},
            .tensors = {{.order = {"j", "i", "mb", "out"}, .window_extent = {{"i", 5}, {"j", 5}}},
                        {.order = {"kj", "ki", "out"}},
                        {.order = {"j", "i", "mb", "out"}}},
            .accumulator_listed = true};
  op.padding = {{"i", window(5, 3, 1, "ki", 1)}, {"j", window(5, 3, 1, "kj", 1)}};
  OpCase c(op);
  c.fill(0, [](const Point& g) { return small(g, 1); });
  c.fill(1, [](const Point& g) { return small(g, 2); });
  c.run();
  c.expect([](const Point& g) {
    double sum = 0;
    for_points({{"ki", 3}, {"kj", 3}}, [&](const Point& k) {
      const int64_t i = g.at("i") + k.at("ki") - 1, j = g.at("j") + k.at("kj") - 1;
      if (i >= 0 && i < 5 && j >= 0 && j < 5) {
        sum += static_cast<double>(small({{"mb", 0}, {"out", g.at("out")}, {"i", i}, {"j", j}}, 1)) *
               small({{"out", g.at("out")}, {"ki", k.at("ki")}, {"kj", k.at("kj")}}, 2);
      }
    });
    return static_cast<float>(sum);
  });
}

TEST(AvgPool, AveragesEachWindow) {
  for (const int64_t splits : {1, 2}) {
    OpSpec op{.function = "avgpoolfwd",
              .dims = {{"mb", 2}, {"i", 2, splits}, {"j", 2}, {"out", 64}, {"ki", 2}, {"kj", 2}},
              .tensors = {{.order = {"mb", "j", "i", "out"}, .window_extent = {{"i", 4}, {"j", 4}}},
                          {.order = {"mb", "j", "i", "out"}}},
              .constants = {{"nmap", 0.25f}}};
    op.padding = {{"i", window(2, 2, 2, "ki")}, {"j", window(2, 2, 2, "kj")}};
    OpCase c(op);
    c.fill(0, [](const Point& g) { return sample(g); });
    c.run();
    c.expect([](const Point& g) {
      float sum = 0;
      for_points({{"ki", 2}, {"kj", 2}}, [&](const Point& k) {
        sum += sample({{"mb", g.at("mb")},
                       {"out", g.at("out")},
                       {"i", 2 * g.at("i") + k.at("ki")},
                       {"j", 2 * g.at("j") + k.at("kj")}});
      });
      return sum / 4;
    });
  }
}

}  // namespace
}  // namespace spyre::testing_artifacts
