#include "spyre/passes/divide/division/span.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <random>

#include "spyre/passes/divide/division/test_problems.h"

namespace spyre {
namespace {

using test::pointwise;
using test::row_major;
using test::tensor;
using testing::HasSubstr;

/// One output of this device size, its non-stick dimensions walked by the axes a, b, ... in this order.
DivisionProblem writes(std::vector<DivisionAxis> axes, std::vector<int64_t> device_size,
                       const std::vector<std::string>& coordinates) {
  DivisionProblem problem{.op = "fill", .axes = std::move(axes)};
  problem.tensors = {tensor("y", std::move(device_size), coordinates)};
  return problem;
}

Bytes span(const DivisionProblem& problem, const Splits& splits) {
  return per_core_span(problem.output(), axis_facts(problem).value(), splits).bytes;
}
bool fits(const DivisionProblem& problem, const Splits& splits) {
  return span_fits(problem, problem.output(), axis_facts(problem).value(), splits);
}

TEST(Span, TheOutermostWalkedDimensionDecides) {
  const DivisionProblem big = pointwise({4096, 65536});  // [1024, 4096, 64]
  EXPECT_EQ(span(big, {}), mebibytes(512));
  EXPECT_FALSE(fits(big, {}));
  EXPECT_EQ(span(big, {{"c0", 32}}), mebibytes(512));
  EXPECT_FALSE(fits(big, {{"c0", 32}}));
}

TEST(Span, TheLimitIsInclusive) {
  const DivisionProblem big = pointwise({4096, 65536});
  EXPECT_EQ(span(big, {{"c1", 2}}), Bytes(268435456));
  EXPECT_TRUE(fits(big, {{"c1", 2}}));
}

TEST(Span, AWeightOf49152ColumnsNeedsTwoParts) {
  const DivisionProblem weight = pointwise({4096, 49152});  // [768, 4096, 64]
  EXPECT_EQ(span(weight, {}), mebibytes(384));
  EXPECT_EQ(span(weight, {{"c1", 2}}), mebibytes(192));
}

TEST(Span, OneRowTooManyIsTooMuch) {
  const DivisionProblem rows =
      writes({{"a", 8195}, {"b", 256}, {"s", 64}}, {1, 8195, 256, 64}, {"0", "a", "b", "s"});
  EXPECT_EQ(span(rows, {}), Bytes(8195LL * 256 * 128));
  EXPECT_FALSE(fits(rows, {}));
}

TEST(Span, ADimensionThatKeepsTwoPositionsStillDecides) {
  const DivisionProblem deep = writes({{"b", 32}, {"r", 8192}, {"c", 17408}}, {8192, 272, 32, 64},
                                      {"r", "floor(c/64)", "b", "Mod(c, 64)"});
  EXPECT_EQ(span(deep, {{"r", 32}}), Bytes(285212672));
  EXPECT_FALSE(fits(deep, {{"r", 32}}));
}

TEST(Span, ADimensionCutToOnePositionHandsOverToTheNext) {
  const DivisionProblem tall =
      writes({{"a", 4}, {"b", 4000000}, {"s", 64}}, {4, 4000000, 64}, {"a", "b", "s"});
  EXPECT_EQ(span(tall, {}), Bytes(4LL * 4000000 * 128));
  EXPECT_EQ(span(tall, {{"a", 4}}), Bytes(4000000LL * 128));
  EXPECT_FALSE(fits(tall, {{"a", 4}}));
  EXPECT_EQ(span(tall, {{"a", 4}, {"b", 2}}), Bytes(2000000LL * 128));
  EXPECT_TRUE(fits(tall, {{"a", 4}, {"b", 2}}));
}

TEST(Span, ATensorOfOnePositionSpansOneElement) {
  const DivisionProblem scalar = writes({{"s", 64}}, {1, 64}, {"0", "s"});
  EXPECT_EQ(span(scalar, {}), Bytes(2));
}

TEST(Span, TensorsReadThroughAnIndexAreExempt) {
  DivisionProblem gather = pointwise({16, 64});
  gather.tensors[0] = tensor("table", {16, 1 << 20, 64}, {"IndirectAccess('i')", "0", "c1"});
  const auto facts = axis_facts(gather).value();
  EXPECT_TRUE(check_spans(gather, facts, {}).ok());
  gather.tensors[0].coordinates[0] = Expr::symbol("c0");  // the same table read in order: 2 GiB
  EXPECT_FALSE(check_spans(gather, facts, {}).ok());
}

TEST(Span, TheErrorNamesTheAxisAndTheNearestPadding) {
  // 61 sticks of 51562 rows: 384 MiB, and 61 parts need 61 cores.
  DivisionProblem odd = pointwise({51562, 61 * 64});
  odd.tensors.erase(odd.tensors.begin());
  EXPECT_EQ(check_spans(odd, axis_facts(odd).value(), {{"c0", 1}, {"c1", 1}}).error().to_string(),
            "op 'neg': 'y' spans 383.95 MiB of device memory, a core reaches 256.00 MiB\n"
            "  note y is [61, 51562, 64] on the card, 2 bytes an element; splits {c0: 1, c1: 1}\n"
            "  note c1 is 61 sticks long and divides into 1 or 61 parts; 32 cores are available\n"
            "  try  padding c1 to 62 sticks (+1.6 % memory): cut in 2, each part spans 195.12 MiB");
}

TEST(Span, TheErrorProposesTilesWhenNoPaddingHelps) {
  const DivisionProblem deep = writes({{"b", 32}, {"r", 8192}, {"c", 17408}}, {8192, 272, 32, 64},
                                      {"r", "floor(c/64)", "b", "Mod(c, 64)"});
  const std::string text = check_spans(deep, axis_facts(deep).value(), {{"r", 32}}).error().to_string();
  EXPECT_THAT(text, HasSubstr("'y' spans 272.00 MiB of device memory, a core reaches 256.00 MiB"));
  EXPECT_THAT(text, HasSubstr("try  running it in 2 tiles along r: a core then spans 136.00 MiB"));
}

/// The stretch between the first and the last element that a core touches, by visiting all of them.
Bytes touched(const DivisionTensor& t, const std::vector<AxisFacts>& facts, const Splits& splits,
              int64_t core) {
  std::vector<std::pair<int64_t, int64_t>> range;  // per axis, the slice of this core
  for (const AxisFacts& axis : facts) {
    const int64_t split = split_of(splits, axis.name);
    const int64_t length = axis.size / split * axis.lanes;
    const int64_t start = core % split * length;
    range.emplace_back(start, std::min(axis.extent, start + length));
    core /= split;
  }
  int64_t first = std::numeric_limits<int64_t>::max(), last = -1;
  std::map<std::string, int64_t, std::less<>> at;
  const std::function<void(size_t)> visit = [&](size_t axis) {
    if (axis < facts.size()) {
      for (int64_t i = range[axis].first; i < range[axis].second; ++i) {
        at[facts[axis].name] = i;
        visit(axis + 1);
      }
      return;
    }
    int64_t offset = 0;
    for (size_t d = 0; d < t.device_size.size(); ++d) {
      offset = offset * t.device_size[d] + t.coordinates[d].evaluate(at).value();
    }
    first = std::min(first, offset);
    last = std::max(last, offset);
  };
  visit(0);
  return Bytes(last < 0 ? 0 : (last - first + 1) * t.itemsize);
}

TEST(Span, NoCoreTouchesMoreThanTheSpan) {
  constexpr unsigned kSeed = 20240607;
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  std::mt19937 random(kSeed);
  const auto pick = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  for (int round = 0; round < 60; ++round) {
    // Two orders of the same tensor, the second in fp32, so that the stick axis is shared by two widths.
    const std::vector<int64_t> shape = {pick(1, 6), pick(1, 6), pick(1, 300)};
    DivisionProblem problem = pointwise(shape);
    problem.tensors[0] = row_major("x", shape, 32);
    problem.tensors[1] = tensor("y", {shape[1], ceil_div(shape[2], 64), shape[0], 64},
                                {"c1", "floor(c2/64)", "c0", "Mod(c2, 64)"});
    const auto facts = axis_facts(problem).value();
    Splits splits;
    for (const AxisFacts& axis : facts) {
      splits[axis.name] = axis.factors[static_cast<size_t>(pick(0, std::ssize(axis.factors) - 1))];
    }
    for (const DivisionTensor& t : problem.tensors) {
      const Span claimed = per_core_span(t, facts, splits);
      if (!claimed.dimension) continue;  // one stick
      Bytes most;
      for (int64_t core = 0; core < cores_used(splits); ++core) {
        most = std::max(most, touched(t, facts, splits, core));
      }
      EXPECT_LE(most, claimed.bytes) << testing::PrintToString(shape) << to_string(splits) << t.name;
      // And the claim is not wasteful: less than one position of the deciding dimension is left unused at
      // each end.
      int64_t position = t.itemsize;
      for (size_t d = *claimed.dimension + 1; d < t.device_size.size(); ++d) position *= t.device_size[d];
      EXPECT_GT(most + Bytes(2 * position), claimed.bytes)
          << testing::PrintToString(shape) << to_string(splits);
    }
  }
}

}  // namespace
}  // namespace spyre
