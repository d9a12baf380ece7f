#include "spyre/device/exec/footprint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "spyre/device/exec/access.h"
#include "spyre/device/exec/op_case.h"
#include "spyre/device/exec/pad_value.h"
#include "spyre/device/exec/shadow_memory.h"

namespace spyre::testing_artifacts {
namespace {

using ::testing::ElementsAre;

BoundOp bound_for(const DeviceProgram& program) {
  return bind_op(program.ops[0], {}, 0).value();
}

OpSpec rows_and_columns(int64_t rows, int64_t columns, int64_t row_cores) {
  const TensorSpec in{.order = {"mb", "out"}, .base = 0}, out{.order = {"mb", "out"}, .base = 1 << 20};
  return {.function = "neg", .dims = {{"mb", rows, row_cores}, {"out", columns}}, .tensors = {in, out}};
}

TEST(Footprint, AWholeTensorIsOneRun) {
  const auto program =
      read_program({{"sdsc_0.json", write_sdsc(rows_and_columns(8, 128, 1)).dump()}}).value();
  const BoundOp bound = bound_for(program);
  EXPECT_THAT(footprint(bound, 0, 0, bound.boxes[0]), ElementsAre(StickRun{0, 16}));
}

TEST(Footprint, ACoresRowsAreOneRunPerColumnOfSticks) {
  const auto program =
      read_program({{"sdsc_0.json", write_sdsc(rows_and_columns(8, 128, 2)).dump()}}).value();
  const BoundOp bound = bound_for(program);
  EXPECT_THAT(footprint(bound, 0, 1, bound.boxes[1]), ElementsAre(StickRun{4, 4}, StickRun{12, 4}));
}

TEST(Footprint, IsTheSticksOfAllElements) {
  constexpr uint32_t kSeed = 7;
  std::mt19937 random(kSeed);
  for (int round = 0; round < 200; ++round) {
    SCOPED_TRACE("seed " + std::to_string(kSeed) + ", round " + std::to_string(round));
    const auto pick = [&](int64_t n) { return static_cast<int64_t>(random() % n); };
    const int64_t row_cores = 1 + pick(3), column_cores = 1 + pick(2);
    OpSpec spec{.function = "neg",
                .dims = {{"mb", row_cores * (1 + pick(3)), row_cores},
                         {"x", 1 + pick(3)},
                         {"out", 64 * column_cores * (1 + pick(2)), column_cores}},
                .tensors = {{.order = {"mb", "x", "out"}}, {.order = {"mb", "x", "out"}, .base = 1 << 20}}};
    for (TensorSpec& t : spec.tensors) {
      std::shuffle(t.order.begin(), t.order.end(), random);
      t.gap["x"] = pick(3);
      t.lx = pick(3) == 0;
      t.base = t.lx ? 0 : t.base;
    }
    const auto program = read_program({{"sdsc_0.json", write_sdsc(spec).dump()}});
    ASSERT_TRUE(program.ok()) << program.error().to_string();
    const BoundOp bound = bound_for(program.value());
    for (int t = 0; t < 2; ++t) {
      for (int core = 0; core < static_cast<int>(bound.boxes.size()); ++core) {
        std::set<int64_t> expected, found;
        const Box& box = bound.boxes[core];
        Coordinate l{};
        for (l[0] = 0; l[0] < box.extent(0); ++l[0]) {
          for (l[1] = 0; l[1] < box.extent(1); ++l[1]) {
            for (l[2] = 0; l[2] < box.extent(2); ++l[2]) {
              expected.insert((bound.start[t][core] + element_of(bound.tensors[t], l) * 2) / 128);
            }
          }
        }
        int64_t sticks = 0;
        for (const StickRun& run : footprint(bound, t, core, box)) {
          sticks += run.count;
          for (int64_t i = run.first; i < run.end(); ++i) {
            found.insert(i);
          }
        }
        EXPECT_EQ(found, expected);
        EXPECT_EQ(sticks, static_cast<int64_t>(found.size())) << "a stick is in two runs";
      }
    }
  }
}

TEST(ShadowMemory, AgreesWithAPlainArray) {
  constexpr uint32_t kSeed = 11;
  constexpr int64_t kSize = 20000;  // a few pages
  std::mt19937 random(kSeed);
  std::vector<uint32_t> plain(kSize, 0);
  ShadowMemory shadow;
  for (int round = 0; round < 400; ++round) {
    SCOPED_TRACE("seed " + std::to_string(kSeed) + ", round " + std::to_string(round));
    const auto first = static_cast<int64_t>(random() % kSize);
    const auto count = static_cast<int64_t>(random() % (kSize - first) + 1);
    const uint32_t number = random() % 4;
    shadow.fill(first, count, number);
    std::fill_n(plain.begin() + first, count, number);
    std::vector<uint32_t> seen;
    uint32_t last = 99;
    shadow.for_each_run(0, kSize, [&](uint32_t value, int64_t begin, int64_t length) {
      EXPECT_EQ(begin, static_cast<int64_t>(seen.size()));
      EXPECT_NE(value, last) << "runs are as long as they can be";
      last = value;
      seen.insert(seen.end(), length, value);
    });
    ASSERT_EQ(seen, plain);
  }
}

TEST(PadValue, FollowsConstantsThroughPointwiseOps) {
  const PadValue zero, varies{.kind = PadValue::Kind::kVaries}, undefined{.kind = PadValue::Kind::kUndefined};
  const auto through = [](const char* name, std::vector<PadValue> inputs) {
    ProgramOp op;
    op.info = find_op(name);
    return pointwise_padding(op, inputs);
  };
  EXPECT_EQ(through("exp", {zero}), (PadValue{.value = 1}));
  EXPECT_EQ(through("exp", {{.value = -10000}}), zero);
  EXPECT_EQ(through("add", {zero, {.value = 2}}), (PadValue{.value = 2}));
  EXPECT_EQ(through("sub", {zero, varies}), varies);
  EXPECT_TRUE(through("mul", {zero, varies}).is(0));
  EXPECT_TRUE(through("realdiv", {zero, varies}).is(0));
  EXPECT_EQ(through("mul", {zero, undefined}), undefined) << "it may hold a NaN";
  EXPECT_EQ(through("where3", {zero, undefined, {.value = 2}}), (PadValue{.value = 2})) << "nobody chose it";
  EXPECT_EQ(through("where3", {{.value = 1}, undefined, zero}), undefined);
  EXPECT_EQ(through("where3", {varies, undefined, zero}), undefined);
}

TEST(PadValue, ReductionsIgnoreOnlyTheirNeutralValue) {
  EXPECT_TRUE(reduces_to_nothing(OpId::sum, {.value = 0}));
  EXPECT_FALSE(reduces_to_nothing(OpId::sum, {.value = 1}));
  EXPECT_FALSE(reduces_to_nothing(OpId::max, {.value = 0}));
  EXPECT_TRUE(reduces_to_nothing(OpId::max, {.value = -65504}));
  EXPECT_TRUE(reduces_to_nothing(OpId::min, {.value = 65504}));
  EXPECT_FALSE(reduces_to_nothing(OpId::sum, {.kind = PadValue::Kind::kVaries}));
}

}  // namespace
}  // namespace spyre::testing_artifacts
