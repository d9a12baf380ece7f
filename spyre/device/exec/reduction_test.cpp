// Reductions, layer norm helpers and the per-token quantisation scale.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "spyre/device/exec/op_case.h"
#include "spyre/ops/formulas.h"

namespace spyre::testing_artifacts {

using namespace exec;  // NOLINT: tests of that layer

namespace {

/// What a reduction of a list gives, in double precision; the samples are multiples of 1/8, so sums are
/// exact.
double reduced(std::string_view op, const std::vector<double>& values) {
  double sum = 0, product = 1, low = INFINITY, high = -INFINITY;
  for (const double v : values) {
    sum += v;
    product *= v;
    low = std::min(low, v);
    high = std::max(high, v);
  }
  if (op == "sum") return sum;
  if (op == "mean") return sum * 0.25;  // the tests pass scaling_factor 0.25
  if (op == "max") return high;
  if (op == "min") return low;
  return product;
}

double mask_for(std::string_view op) {
  return op == "max" ? -65504 : op == "min" ? 65504 : 0;
}

struct ReductionScene {
  int64_t rows, sticks;
  int64_t row_splits = 1, stick_splits = 1;
  int64_t masked = 0;
};

TEST(Reduction, OverTheStickFoldsARowAndWritesAllLanes) {
  const ReductionScene scenes[] = {{3, 2},       {4, 2, 2},        {32, 1, 32}, {2, 4, 1, 4},
                                   {4, 4, 2, 2}, {3, 2, 1, 1, 28}, {8, 4, 8, 4}};
  for (const char* name : {"sum", "mean", "max", "min"}) {
    for (const DataFormat format : {kFp16, kFp32}) {
      for (const ReductionScene& scene : scenes) {
        const int64_t eps = elems_per_stick(format), columns = scene.sticks * eps, masked = scene.masked;
        SCOPED_TRACE(fmt::format("{} {} {}x{}", name, to_string(format), scene.rows, columns));
        OpSpec op{.function = name,
                  .dims = {{"mb", scene.rows, scene.row_splits}, {"out", columns, scene.stick_splits}},
                  .accumulator_listed = true};
        op.tensors.assign(2, {.order = {"mb", "out"}, .stick_sizes = {eps}, .format = format});
        op.tensors[1].scale["out"] = -2;
        if (std::string_view(name) == "mean") {
          op.constants = {{"scaling_factor", 0.25f}};
        }
        if (masked != 0) {
          op.mask = {{"out", {columns - masked, masked}}};
          op.mask_value = static_cast<float>(mask_for(name));
        }
        OpCase c(op);
        c.fill(0, [](const Point& g) { return sample(g); });
        c.run();
        const auto expected = [&](const Point& g) {
          std::vector<double> values;
          for (int64_t j = 0; j < columns - masked; ++j) {
            values.push_back(sample({{"mb", g.at("mb")}, {"out", j}}));
          }
          return static_cast<float>(reduced(name, values));
        };
        c.expect(expected);
        // One stick per row, the same value in each lane.
        for (int64_t lane = 0; lane < eps; ++lane) {
          const int64_t first = element_at(c.op(), c.op().tensors[1], {{"mb", 1}, {"out", 0}});
          EXPECT_EQ(c.memory().get(c.op().tensors[1].base, first + lane, format),
                    c.get(1, {{"mb", 1}, {"out", 0}}));
        }
      }
    }
  }
}

TEST(Reduction, OverTheStickAddsEachLaneByItselfAndThenTheLanesInHalves) {
  // fp32, two sticks of 32 lanes. 2^27 swallows a 1 that is added to it, so where the two large numbers meet
  // decides: alone in lane 0, or with lane 16 in the first halving, before lane 1 joins.
  for (const int64_t other : {32, 16}) {
    OpSpec op{.function = "sum", .dims = {{"mb", 1}, {"out", 64}}};
    op.tensors.assign(2, {.order = {"mb", "out"}, .stick_sizes = {32}, .format = kFp32});
    op.tensors[1].scale["out"] = -2;
    OpCase c(op);
    c.fill(0, [&](const Point& g) {
      const int64_t column = g.at("out");
      return column == 0 ? 0x1p27f : column == other ? -0x1p27f : column == 1 ? 1.0f : 0.0f;
    });
    c.run();
    c.expect([](const Point&) { return 1.0f; });  // one chain in ascending order would give 0
  }
}

TEST(Reduction, OverAnotherDimFoldsLaneByLane) {
  const ReductionScene scenes[] = {{3, 2}, {4, 2, 2}, {32, 1, 32}, {4, 2, 1, 2}, {8, 4, 8, 4}};
  for (const char* name : {"sum", "mean", "max", "min", "prod"}) {
    for (const DataFormat format : {kFp16, kFp32}) {
      for (const ReductionScene& scene : scenes) {
        const int64_t eps = elems_per_stick(format);
        SCOPED_TRACE(fmt::format("{} {}", name, to_string(format)));
        // The stick is `mb`, the reduced dim is `out`: labels say nothing about roles.
        OpSpec op{
            .function = std::string(name) + "nonstick",
            .dims = {{"mb", scene.sticks * eps, scene.stick_splits}, {"out", scene.rows, scene.row_splits}},
            .accumulator_listed = true};
        op.tensors.assign(2,
                          {.order = {"out", "mb"}, .stick = {"mb"}, .stick_sizes = {eps}, .format = format});
        op.tensors[1].order = {"mb", "out"};
        op.tensors[1].scale["out"] = -1;
        if (std::string_view(name) == "mean") {
          op.constants = {{"scaling_factor", 0.25f}};
        }
        OpCase c(op);
        const bool product = std::string_view(name) == "prod";
        const auto value = [&](const Point& g) {
          return product ? (sample(g) < 0 ? -1.0f : 1.0f) : sample(g);
        };
        c.fill(0, value);
        c.run();
        c.expect([&](const Point& g) {
          std::vector<double> values;
          for (int64_t i = 0; i < scene.rows; ++i) {
            values.push_back(value({{"mb", g.at("mb")}, {"out", i}}));
          }
          return static_cast<float>(reduced(name, values));
        });
      }
    }
  }
}

TEST(Reduction, SumsInAscendingOrderAndCombinesSlicesInAscendingOrder) {
  // In fp32, 2^24 + 1 is lost but 1 + 1 is not: the order decides the answer.
  //   one core:   ((2^24 + 1) + 1) + 1          = 2^24
  //   two slices: (2^24 + 1) + (1 + 1) = 2^24 + 2
  for (const int64_t splits : {1, 2}) {
    OpSpec op{
        .function = "sumnonstick", .dims = {{"mb", 32}, {"out", 4, splits}}, .accumulator_listed = true};
    op.tensors.assign(2, {.order = {"out", "mb"}, .stick = {"mb"}, .stick_sizes = {32}, .format = kFp32});
    op.tensors[1].scale["out"] = -1;
    OpCase c(op);
    c.fill(0, [](const Point& g) { return g.at("out") == 0 ? 16777216.0f : 1.0f; });
    c.run();
    EXPECT_EQ(c.get(1, {{"mb", 0}, {"out", 0}}), splits == 1 ? 16777216.0f : 16777218.0f);
  }
}

TEST(Reduction, SumsInDoublesDoNotDependOnLayoutAndDivision) {
  // In fp32, 2^24 + 1 is lost. A chain over rows loses both ones, whoever adds them; lanes of a stick add them to each
  // other first: (0 + 2) + (1 + 3).
  const float values[] = {16777216.0f, 1.0f, 0.0f, 1.0f};
  struct Scene {
    bool along_stick;
    int64_t splits;
    float in_order;
  };
  for (const Scene& scene :
       {Scene{false, 1, 16777216.0f}, Scene{false, 2, 16777216.0f}, Scene{true, 1, 16777218.0f}}) {
    OpSpec op{.function = scene.along_stick ? "sum" : "sumnonstick",
              .dims = {{"mb", 32}, {"out", scene.along_stick ? 32 : 4, scene.splits}},
              .accumulator_listed = true};
    op.tensors.assign(2, {.order = {"out", "mb"},
                          .stick = {scene.along_stick ? "out" : "mb"},
                          .stick_sizes = {32},
                          .format = kFp32});
    op.tensors[1].scale["out"] = scene.along_stick ? -2 : -1;
    OpCase c(op);
    c.fill(0, [&](const Point& g) { return g.at("out") < 4 ? values[g.at("out")] : 0.0f; });
    c.run();
    const Point first{{"mb", 0}, {"out", 0}};
    EXPECT_EQ(c.get(1, first), scene.in_order);
    const auto program = read_program({{"sdsc_0.json", write_sdsc(c.op()).dump()}});
    ASSERT_TRUE(interpret(program.value(), {}, c.memory(), {.sums = Sums::kInDoubles}).ok());
    EXPECT_EQ(c.get(1, first), 16777218.0f);
  }
}

TEST(Reduction, NaNPropagatesThroughMaxAndMin) {
  for (const char* name : {"max", "min"}) {
    OpSpec op{.function = name, .dims = {{"mb", 1}, {"out", 64}}, .accumulator_listed = true};
    op.tensors.assign(2, {.order = {"mb", "out"}});
    op.tensors[1].scale["out"] = -2;
    OpCase c(op);
    c.fill(0, [](const Point& g) { return g.at("out") == 17 ? NAN : 1.0f; });
    c.run();
    EXPECT_TRUE(std::isnan(c.get(1, {{"mb", 0}, {"out", 0}}))) << name;
  }
}

TEST(Reduction, SplitReducedDimSendsPartialsRoundTheRingAndWritesOnce) {
  // 4 cores share each result: 3 sends of 2 rows x 4 bytes between neighbours, one write of 2 sticks.
  OpSpec op{.function = "sum", .dims = {{"out", 256, 4}, {"mb", 2}}, .accumulator_listed = true};
  op.tensors.assign(2, {.order = {"mb", "out"}});
  op.tensors[1].scale["out"] = -2;
  OpCase c(op);
  c.fill(0, [](const Point&) { return 1.0f; });
  const OpCounts counts = c.run();
  EXPECT_EQ(c.get(1, {{"mb", 1}, {"out", 0}}), 256.0f);
  EXPECT_EQ(counts.total().ring_bytes, 3 * 8);
  EXPECT_EQ(counts.total().ring_byte_hops, 3 * 8);
  EXPECT_EQ(counts.tensor_total(1), (Traffic{.hbm_written = 256}));
  EXPECT_EQ(counts.cores[3].traffic.hbm_written, 256);
  EXPECT_EQ(counts.tensor_total(0), (Traffic{.hbm_read = 2 * 256 * 2}));
}

TEST(Reduction, SharedResultsInLxReachEveryCoreOfTheGroup) {
  OpSpec op{.function = "sum", .dims = {{"out", 128, 2}, {"mb", 2}}, .accumulator_listed = true};
  op.tensors.assign(2, {.order = {"mb", "out"}});
  op.tensors[1].scale["out"] = -2;
  op.tensors[1].lx = true;
  OpCase c(op);
  c.fill(0, [](const Point& g) { return static_cast<float>(g.at("mb") + 1); });
  const OpCounts counts = c.run();
  for (int core = 0; core < 2; ++core) {
    uint16_t bits = 0;
    std::memcpy(&bits, c.memory().lx(core).data() + 128, 2);
    EXPECT_EQ(decode_element(kFp16, bits), 256.0f) << "core " << core;
  }
  EXPECT_EQ(counts.tensor_total(1), (Traffic{.lx_written = 2 * 256}));
}

// ---- layer norm
// -----------------------------------------------------------------------------------------------

TEST(LayerNorm, Exx2KeepsBothMomentsInOneStick) {
  for (const DataFormat format : {kFp16, kFp32}) {
    for (const bool zero_mean : {false, true}) {
      const int64_t eps = elems_per_stick(format);
      OpSpec op{.function = "exx2",
                .dims = {{"mb", 4, 2}, {"out", 2 * eps}},
                .constants = {{"exx2scale", 1.0f / static_cast<float>(eps)},
                              {"useZeroMean", zero_mean ? 1.0f : 0.0f}},
                .mask = {{"out", {eps, eps}}},
                .accumulator_listed = true};
      op.tensors.assign(2, {.order = {"mb", "out"}, .stick_sizes = {eps}, .format = format});
      op.tensors[1].scale["out"] = -2;
      OpCase c(op);
      c.fill(0, [](const Point& g) { return static_cast<float>(g.at("mb") + 1); });
      c.run();
      for (int64_t row = 0; row < 4; ++row) {
        const int64_t first = element_at(c.op(), c.op().tensors[1], {{"mb", row}, {"out", 0}});
        const auto x = static_cast<float>(row + 1);
        EXPECT_EQ(c.memory().get(c.op().tensors[1].base, first, format), zero_mean ? 0 : x);
        EXPECT_EQ(c.memory().get(c.op().tensors[1].base, first + 1, format), x * x);
        EXPECT_EQ(c.memory().get(c.op().tensors[1].base, first + 2, format), 0.0f);
      }
    }
  }
}

TEST(LayerNorm, ScaleIsTheInverseDeviationInEveryLane) {
  for (const DataFormat format : {kFp16, kFp32}) {
    // Statistics (R, 1): iteration out = R plus a synthetic stick x.
    const int64_t eps = elems_per_stick(format);
    OpSpec op{
        .function = "layernormscale", .dims = {{"out", 4, 2}, {"x", eps}}, .constants = {{"eps", 0.25f}}};
    op.tensors.assign(2, {.order = {"out", "x"}, .stick = {"x"}, .stick_sizes = {eps}, .format = format});
    op.tensors[0].scale["x"] = -2;
    OpCase c(op);
    for (int64_t row = 0; row < 4; ++row) {
      const int64_t first = element_at(c.op(), c.op().tensors[0], {{"out", row}, {"x", 0}});
      c.memory().put(c.op().tensors[0].base, first, format, 1.0f);  // mean
      c.memory().put(c.op().tensors[0].base, first + 1, format,
                     1.75f + 3.0f * static_cast<float>(row));  // mean square
    }
    c.run();
    c.expect([](const Point& g) { return 1.0f / std::sqrt(1.0f + 3.0f * static_cast<float>(g.at("out"))); });
  }
}

TEST(LayerNorm, NormAppliesStatisticsWeightAndBias) {
  for (const DataFormat format : {kFp16, kFp32}) {
    for (const int64_t splits : {1, 2, 32}) {
      const int64_t eps = elems_per_stick(format);
      OpSpec op{.function = "layernormnorm", .dims = {{"mb", 32, splits}, {"out", 2 * eps}}};
      op.tensors.assign(6, {.order = {"mb", "out"}, .stick_sizes = {eps}, .format = format});
      op.tensors[1].scale["out"] = op.tensors[2].scale["out"] = -2;
      op.tensors[3].scale["mb"] = op.tensors[4].scale["mb"] = -1;
      OpCase c(op);
      const auto row = [](const Point& g) { return static_cast<float>(g.at("mb") % 4); };
      c.fill(0, [](const Point& g) { return sample(g); });
      c.fill(1, [&](const Point& g) { return row(g); });
      c.fill(2, [&](const Point& g) { return row(g) == 0 ? 1.0f : 0.5f; });
      c.fill(3, [](const Point& g) { return sample({{"out", g.at("out")}}, 3); });
      c.fill(4, [](const Point& g) { return sample({{"out", g.at("out")}}, 4); });
      c.run();
      c.expect([&](const Point& g) {
        const Point column = {{"out", g.at("out")}};
        return (sample(g) - row(g)) * (row(g) == 0 ? 1.0f : 0.5f) * sample(column, 3) + sample(column, 4);
      });
    }
  }
}

TEST(LayerNorm, HasFastCodeThatAgreesToTheBit) {
  // Rows of one stick and of three, in one part and in several, whose sums lose digits, overflow and are no numbers.
  const auto odd = [](const Point& g) {
    int64_t hash = 17;
    for (const auto& [label, at] : g) {
      hash = hash * 31 + at * 7 + static_cast<int64_t>(label.size());
    }
    const float odd_one[] = {0.0f, -0.0f, 65504.0f, -1e9f, 3e-9f, NAN};
    return hash % 11 < 6 ? odd_one[hash % 97 % 6] : static_cast<float>(hash % 1009) / 37;
  };
  for (const VectorKernels& target : vector_kernels()) {
    for (const DataFormat format : {kFp16, kFp32}) {
      for (const auto& [sticks, splits] : {std::pair<int64_t, int64_t>{1, 1}, {3, 4}}) {
        const int64_t eps = elems_per_stick(format);
        const TensorSpec row{.order = {"mb", "out"}, .stick_sizes = {eps}, .format = format};
        OpSpec moments{.function = "exx2",
                       .dims = {{"mb", 8, splits}, {"out", sticks * eps}},
                       .constants = {{"exx2scale", 0.01f}, {"useZeroMean", 0.0f}},
                       .mask = {{"out", {sticks * eps - 5, 5}}},
                       .accumulator_listed = true};
        moments.tensors.assign(2, row);
        moments.tensors[1].scale["out"] = -2;
        OpSpec scale{.function = "layernormscale",
                     .dims = {{"out", 8, splits}, {"x", eps}},
                     .constants = {{"eps", 1e-5f}}};
        scale.tensors.assign(2,
                             {.order = {"out", "x"}, .stick = {"x"}, .stick_sizes = {eps}, .format = format});
        scale.tensors[0].scale["x"] = -2;
        OpSpec norm{.function = "layernormnorm", .dims = {{"mb", 8, splits}, {"out", sticks * eps}}};
        norm.tensors.assign(6, row);
        norm.tensors[1].scale["out"] = norm.tensors[2].scale["out"] = -2;
        norm.tensors[3].scale["mb"] = norm.tensors[4].scale["mb"] = -1;
        for (const OpSpec& op : {moments, scale, norm}) {
          SCOPED_TRACE(fmt::format("{} {} on {}", op.function, to_string(format), target.name));
          OpCase c(op);
          for (size_t t = 0; t + 1 < op.tensors.size(); ++t) {
            c.fill(static_cast<int>(t), odd);
          }
          const auto program = read_program({{"sdsc_0.json", write_sdsc(c.op()).dump()}});
          ASSERT_TRUE(program.ok()) << program.error().to_string();
          PathCounts paths;
          ASSERT_TRUE(run_both(program.value(), {}, c.memory(), {}, &paths, target).ok());
          EXPECT_EQ(paths.fast, 1);
        }
      }
    }
  }
}

TEST(QuantScale, BringsTheLargestMagnitudeToTheEndOfTheRange) {
  OpSpec op{.function = "quantscalepertokenfp8",
            .dims = {{"mb", 4, 2}, {"out", 128, 2}},
            .constants = {{"clipMin", 0.0625f}, {"clipMax", 2.0f}, {"mulConst", 1.0f / 64}}};
  op.tensors.assign(2, {.order = {"mb", "out"}});
  op.tensors[1].scale["out"] = -2;
  OpCase c(op);
  const float peaks[] = {1.0f, 32.0f, -96.0f, 1000.0f};
  c.fill(0, [&](const Point& g) { return g.at("out") == 100 ? peaks[g.at("mb")] : 0.5f; });
  c.run();
  const float expected[] = {0.0625f, 0.5f, 1.5f, 2.0f};
  c.expect([&](const Point& g) { return expected[g.at("mb")]; });
}

}  // namespace
}  // namespace spyre::testing_artifacts
