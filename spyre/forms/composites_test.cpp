// Forms of many steps, by small results that one can check by eye.

#include <gmock/gmock.h>

#include "spyre/forms/form_call_for_test.h"

namespace spyre::forms {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

constexpr HostType kWord = HostType::kFloat32, kWhole = HostType::kInt64, kTruth = HostType::kBool;
const Argument kNothing;

Argument num(double value) {
  return FormCall::number(value);
}

TEST(RunningSums, AddUpWhatComesBefore) {
  for (const HostType type : {HostType::kFloat16, kWord, kWhole}) {
    FormCall call("aten.cumsum.default");
    const TensorView x = call.input({2, 3}, {3, 1, 4, 1, 5, 9}, type), y = call.output({2, 3}, type);
    EXPECT_THAT(call.run({x, num(-1)}, {y}).value()[0], ElementsAre(3, 4, 8, 1, 6, 15)) << to_string(type);
  }
}

TEST(RunningSums, GoDownRows) {
  FormCall call("aten.cumsum.default");
  const TensorView x = call.input({3, 2}, {1, 10, 2, 20, 3, 30}, kWord), y = call.output({3, 2}, kWord);
  EXPECT_THAT(call.run({x, num(0)}, {y}).value()[0], ElementsAre(1, 10, 3, 30, 6, 60));
}

TEST(RunningSums, CountTruthValues) {
  FormCall call("aten.cumsum.default");
  const TensorView x = call.input({4}, {1, 0, 1, 1}, kTruth), y = call.output({4}, kWhole);
  EXPECT_THAT(call.run({x, num(0)}, {y}).value()[0], ElementsAre(1, 1, 2, 3));
}

TEST(RunningSums, GoOnFromBlockToBlock) {
  for (const HostType type : {kWord, kWhole}) {
    FormCall call("aten.cumsum.default");
    const TensorView x = call.input({300}, std::vector<double>(300, 70000), type),
                     y = call.output({300}, type);
    const std::vector<double> found = call.run({x, num(0)}, {y}).value()[0];
    for (const size_t at : {0, 127, 128, 255, 256, 299}) {
      EXPECT_EQ(found[at], 70000.0 * static_cast<double>(at + 1)) << at;
    }
  }
}

TEST(Orders, TheLargestComeFirstAndOfEqualsTheEarlier) {
  for (const HostType type : {HostType::kFloat16, kWord, kWhole, HostType::kBFloat16}) {
    FormCall call("aten.topk.default");
    const TensorView x = call.input({4}, {3, 9, 3, 5}, type);
    const TensorView values = call.output({3}, type), positions = call.output({3}, kWhole);
    const auto found = call.run({x, num(3), num(-1), num(1)}, {values, positions}).value();
    EXPECT_THAT(found[0], ElementsAre(9, 5, 3)) << to_string(type);
    EXPECT_THAT(found[1], ElementsAre(1, 3, 0)) << to_string(type);
  }
}

TEST(Orders, SortsColumns) {
  FormCall call("aten.sort.stable");
  const TensorView x = call.input({3, 2}, {5, -70000, 3, 70000, 5, 1}, kWhole);
  const TensorView values = call.output({3, 2}, kWhole), positions = call.output({3, 2}, kWhole);
  const auto found = call.run({x, num(1), num(0), num(0)}, {values, positions}).value();
  EXPECT_THAT(found[0], ElementsAre(3, -70000, 5, 1, 5, 70000));
  EXPECT_THAT(found[1], ElementsAre(1, 0, 0, 2, 2, 1));
}

TEST(Places, AreReadOneByOne) {
  for (const HostType type : {HostType::kFloat16, kWord, kWhole, kTruth}) {
    FormCall call("aten.gather.default");
    const double high = type == kTruth ? 1 : 7;
    const TensorView x = call.input({1, 3}, {0, 0, high}, type), y = call.output({1, 2}, type);
    const TensorView index = call.input({1, 2}, {2, 0}, kWhole);
    EXPECT_THAT(call.run({x, num(1), index}, {y}).value()[0], ElementsAre(high, 0)) << to_string(type);
  }
}

TEST(Places, TheLastOfSeveralIsThere) {
  for (const HostType type : {HostType::kFloat16, kWord, kWhole}) {
    FormCall call("aten.scatter.src");
    const TensorView x = call.input({3}, {5, 6, 7}, type), source = call.input({3}, {1, 2, 3}, type);
    const TensorView index = call.input({3}, {2, 0, 2}, kWhole), y = call.output({3}, type);
    EXPECT_THAT(call.run({x, num(0), index, source}, {y}).value()[0], ElementsAre(2, 6, 3))
        << to_string(type);
  }
}

TEST(Places, TakeANumber) {
  FormCall call("aten.scatter.value");
  const TensorView x = call.input({3}, {5, 6, 7}, kWhole), y = call.output({3}, kWhole);
  const TensorView index = call.input({2}, {2, 0}, kWhole);
  EXPECT_THAT(call.run({x, num(0), index, num(-70001)}, {y}).value()[0], ElementsAre(-70001, 6, -70001));
}

// x[i] of one row, where there are no rows to move; negative positions count from the end.
TEST(Places, OfOneRowAreReadOneByOne) {
  for (const HostType type : {HostType::kFloat16, kWord, kWhole}) {
    FormCall call("aten.index.Tensor");
    const TensorView x = call.input({3}, {5, 6, 7}, type), y = call.output({2, 2}, type);
    const TensorView index = call.input({2, 2}, {2, 0, -1, -2}, kWhole);
    EXPECT_THAT(call.run({x, TensorList{index}}, {y}).value()[0], ElementsAre(7, 5, 7, 6)) << to_string(type);
    FormCall select("aten.index_select.default");
    const TensorView row = select.input({1, 3}, {5, 6, 7}, type), found = select.output({1, 2}, type);
    const TensorView places = select.input({2}, {2, 0}, kWhole);
    EXPECT_THAT(select.run({row, num(1), places}, {found}).value()[0], ElementsAre(7, 5)) << to_string(type);
  }
}

TEST(Places, OfOneRowAreWrittenOneByOne) {
  for (const HostType type : {HostType::kFloat16, kWord, kWhole}) {
    FormCall call("aten._index_put_impl_.default");
    const TensorView x = call.input({3}, {5, 6, 7}, type), y = call.output({3}, type);
    const TensorView index = call.input({2}, {-1, 0}, kWhole), values = call.input({1}, {9}, type);
    EXPECT_THAT(call.run({x, TensorList{index}, values, num(0)}, {y}).value()[0], ElementsAre(9, 6, 9))
        << to_string(type);
  }
}

TEST(Places, AddUp) {
  for (const HostType type : {HostType::kFloat16, kWord, kWhole}) {
    FormCall call("aten.scatter_add.default");
    const TensorView x = call.input({3}, {5, 6, 7}, type), source = call.input({3}, {1, 2, 3}, type);
    const TensorView index = call.input({3}, {2, 0, 2}, kWhole), y = call.output({3}, type);
    EXPECT_THAT(call.run({x, num(0), index, source}, {y}).value()[0], ElementsAre(7, 6, 11))
        << to_string(type);
  }
}

TEST(Places, RowsAddUp) {
  for (const HostType type : {HostType::kFloat16, kWord}) {
    FormCall call("aten.index_add.default");
    const TensorView x = call.input({2, 2}, {0, 0, 0, 0}, type), y = call.output({2, 2}, type);
    const TensorView source = call.input({3, 2}, {1, 2, 3, 4, 5, 6}, type);
    const TensorView index = call.input({3}, {1, 0, 1}, kWhole);
    EXPECT_THAT(call.run({x, num(0), index, source, num(2)}, {y}).value()[0], ElementsAre(6, 8, 12, 16));
  }
}

TEST(Places, ElementsOfOneRowAreFlipped) {
  FormCall call("aten.flip.default");
  const TensorView x = call.input({3}, {1, 2, 3}), y = call.output({3});
  EXPECT_THAT(call.run({x, std::vector<int64_t>{0}}, {y}).value()[0], ElementsAre(3, 2, 1));
}

TEST(Places, MoreElementsThanRowsAreRefused) {
  FormCall call("aten.gather.default");
  // Too many to be compared in pairs, and to have a stick each.
  const TensorView x = call.input({1 << 25, 1}, {}), y = call.output({3, 1});
  const TensorView index = call.input({3, 1}, {0, 1, 2}, kWhole);
  EXPECT_THAT(call.run({x, num(0), index}, {y}).error().message, HasSubstr("more pairs of positions"));
}

TEST(Classes, AreRowsOfZerosAndAOne) {
  FormCall call("spyre.one_hot.default");
  const TensorView index = call.input({2}, {2, 0}, kWhole), y = call.output({2, 3}, kWhole);
  EXPECT_THAT(call.run({index, num(3)}, {y}).value()[0], ElementsAre(0, 0, 1, 1, 0, 0));
}

TEST(Classes, AMeanLeavesOutTheIgnoredOne) {
  FormCall call("aten.nll_loss_forward.default");
  const TensorView x = call.input({3, 2}, {1, 2, 3, 4, 5, 6}), target = call.input({3}, {1, -100, 0}, kWhole);
  const TensorView loss = call.output({}), weight = call.output({});
  const auto found = call.run({x, target, kNothing, num(1), num(-100)}, {loss, weight}).value();
  EXPECT_THAT(found[0], ElementsAre(-3.5));
  EXPECT_THAT(found[1], ElementsAre(2));
}

TEST(Classes, BeyondAThousandAreTwoNumbers) {
  FormCall call("aten.nll_loss_forward.default");
  std::vector<double> row(3000);
  row[1025] = 8;
  const TensorView x = call.input({1, 3000}, row), target = call.input({1}, {1025}, kWhole);
  const TensorView loss = call.output({1}), weight = call.output({});
  EXPECT_THAT(call.run({x, target, kNothing, num(0), num(-100)}, {loss, weight}).value()[0], ElementsAre(-8));
}

TEST(Classes, TheGradientOfALossIsAtTheClassThatWasMeant) {
  FormCall call("aten.nll_loss_backward.default");
  const TensorView gradient = call.input({}, {6}), total = call.input({}, {2}), y = call.output({2, 3});
  const TensorView x = call.input({2, 3}, {0, 0, 0, 0, 0, 0}), target = call.input({2}, {2, 0}, kWhole);
  EXPECT_THAT(call.run({gradient, x, target, kNothing, num(1), num(-100), total}, {y}).value()[0],
              ElementsAre(0, 0, -3, -3, 0, 0));
}

TEST(Classes, RowsOfATableGatherTheirGradients) {
  FormCall call("aten.embedding_dense_backward.default");
  const TensorView gradient = call.input({3, 2}, {1, 2, 3, 4, 5, 6}), y = call.output({3, 2});
  const TensorView index = call.input({3}, {2, 1, 2}, kWhole);
  EXPECT_THAT(call.run({gradient, index, num(3), num(1), num(0)}, {y}).value()[0],
              ElementsAre(0, 0, 0, 0, 6, 8));
}

TEST(Classes, ValuesAddUpWhereSeveralIndicesSay) {
  FormCall call("spyre.index_put.default");
  const TensorView x = call.input({2, 2}, {0, 0, 0, 1}), y = call.output({2, 2});
  const TensorView rows = call.input({3}, {1, 0, -1}, kWhole), columns = call.input({3}, {1, 0, 1}, kWhole);
  const TensorView values = call.input({3}, {5, 6, 7});
  EXPECT_THAT(call.run({x, TensorList{rows, columns}, values, num(1)}, {y}).value()[0],
              ElementsAre(6, 0, 0, 13));
}

TEST(Classes, WhatIsAmongOthers) {
  for (const HostType type : {HostType::kFloat16, kWhole}) {
    FormCall call("aten.isin.Tensor_Tensor");
    const TensorView x = call.input({3}, {7, 300, -4}, type), tests = call.input({2}, {-4, 300}, type);
    const TensorView y = call.output({3}, kTruth);
    EXPECT_THAT(call.run({x, tests, num(0), num(0)}, {y}).value()[0], ElementsAre(0, 1, 1))
        << to_string(type);
  }
}

TEST(Classes, TheLastIntervalHasBothEnds) {
  FormCall call("aten.histc.default");
  const TensorView x = call.input({6}, {0, 1, 2, 4, 5, -1}), y = call.output({4});
  EXPECT_THAT(call.run({x, num(4), num(0), num(4)}, {y}).value()[0], ElementsAre(1, 1, 1, 1));
}

TensorList places(std::initializer_list<std::optional<TensorView>> given) {
  return TensorList(given);
}

TEST(Positions, ThatVaryTogetherAreElements) {
  for (const HostType type : {HostType::kFloat16, kWord, kWhole, kTruth}) {
    FormCall call("aten.index.Tensor");
    const TensorView x = call.input({2, 3}, {0, 1, 0, 1, 1, 0}, type);
    const TensorView rows = call.input({4}, {0, -1, 1, 0}, kWhole);
    const TensorView columns = call.input({4}, {1, 0, 2, -3}, HostType::kInt32);
    const TensorView y = call.output({4}, type);
    EXPECT_THAT(call.run({x, places({rows, columns})}, {y}).value()[0], ElementsAre(1, 1, 0, 0))
        << to_string(type);
  }
}

TEST(Positions, OfRowsOfOneElementAreElements) {
  FormCall call("aten.index.Tensor");
  const TensorView x = call.input({3, 1}, {7, 8, 9}), y = call.output({2, 1});
  EXPECT_THAT(call.run({x, places({call.input({2}, {2, -3}, kWhole)})}, {y}).value()[0], ElementsAre(9, 7));
}

TEST(Groups, EveryRowMeetsTheMatrixOfItsGroup) {
  FormCall call("aten._grouped_mm.default");
  const TensorView x = call.input({3, 1}, {1, 2, 3}), weight = call.input({2, 1, 2}, {1, 10, 100, 1000});
  const TensorView ends = call.input({2}, {1, 2}, HostType::kInt32), y = call.output({3, 2});
  EXPECT_THAT(call.run({x, weight, ends}, {y}).value()[0], ElementsAre(1, 10, 200, 2000, 0, 0));
}

TEST(Convolutions, FiltersSlide) {
  FormCall call("aten.convolution.default");
  const TensorView x = call.input({1, 1, 4}, {1, 2, 3, 4}), weight = call.input({1, 1, 3}, {1, 10, 100});
  const TensorView bias = call.input({1}, {0.5}), y = call.output({1, 1, 4});
  const std::vector<int64_t> one = {1}, none = {0};
  EXPECT_THAT(call.run({x, weight, bias, one, one, one, num(0), none, num(1)}, {y}).value()[0],
              ElementsAre(210.5, 321.5, 432.5, 43.5));
}

TEST(Convolutions, GoInSteps) {
  FormCall call("aten.convolution.default");
  const TensorView x = call.input({1, 1, 8}, {1, 2, 3, 4, 5, 6, 7, 8}),
                   weight = call.input({1, 1, 2}, {1, 10});
  const TensorView y = call.output({1, 1, 3});
  const std::vector<int64_t> one = {1}, three = {3}, none = {0};
  EXPECT_THAT(call.run({x, weight, kNothing, three, none, one, num(0), none, num(1)}, {y}).value()[0],
              ElementsAre(21, 54, 87));
}

TEST(Convolutions, OfGroupsAndOfSingleChannels) {
  for (const int64_t results : {2, 4}) {  // one filter for each channel, or two
    FormCall call("aten.convolution.default");
    const TensorView x = call.input({1, 2, 1, 2}, {1, 2, 3, 4}), y = call.output({1, results, 1, 1});
    const std::vector<double> weights = {1, 10, 1, 10, 1, 10, 1, 10};
    const TensorView weight =
        call.input({results, 1, 1, 2}, {weights.begin(), weights.begin() + 2 * results});
    const std::vector<int64_t> ones = {1, 1}, none = {0, 0};
    const std::vector<double> found =
        call.run({x, weight, kNothing, ones, none, ones, num(0), none, num(2)}, {y}).value()[0];
    EXPECT_THAT(found, ElementsAreArray(results == 2 ? std::vector<double>{21, 43}
                                                     : std::vector<double>{21, 21, 43, 43}));
  }
}

TEST(Convolutions, TransposedOnesSpread) {
  FormCall call("aten.convolution.default");
  const TensorView x = call.input({1, 1, 2}, {1, 2}), weight = call.input({1, 1, 3}, {1, 10, 100});
  const TensorView y = call.output({1, 1, 5});
  const std::vector<int64_t> one = {1}, two = {2}, none = {0};
  EXPECT_THAT(call.run({x, weight, kNothing, two, none, one, num(1), none, num(1)}, {y}).value()[0],
              ElementsAre(1, 10, 102, 20, 200));
}

TEST(Convolutions, HaveGradients) {
  FormCall call("aten.convolution_backward.default");
  const TensorView gradient = call.input({1, 1, 2}, {1, 2}), x = call.input({1, 1, 4}, {1, 2, 3, 4});
  const TensorView weight = call.input({1, 1, 3}, {1, 10, 100});
  const TensorView of_x = call.output({1, 1, 4}), of_weight = call.output({1, 1, 3}),
                   of_bias = call.output({1});
  const std::vector<int64_t> one = {1}, none = {0}, all = {1, 1, 1};
  const auto found = call.run({gradient, x, weight, one, one, none, one, num(0), none, num(1), all},
                              {of_x, of_weight, of_bias})
                         .value();
  EXPECT_THAT(found[0], ElementsAre(1, 12, 120, 200));
  EXPECT_THAT(found[1], ElementsAre(5, 8, 11));
  EXPECT_THAT(found[2], ElementsAre(3));
}

TEST(Pools, KnowWhereTheLargestWas) {
  FormCall call("aten.max_pool2d_with_indices.default");
  const TensorView x = call.input({1, 2, 4}, {1, 5, 2, 0, 3, 4, 9, 9});
  const TensorView values = call.output({1, 1, 2}), positions = call.output({1, 1, 2}, kWhole);
  const std::vector<int64_t> two = {2, 2};
  const auto found = call.run({x, two, two}, {values, positions}).value();
  EXPECT_THAT(found[0], ElementsAre(5, 9));
  EXPECT_THAT(found[1], ElementsAre(1, 6));
}

TEST(Pools, GiveTheGradientToTheLargest) {
  FormCall call("aten.max_pool2d_with_indices_backward.default");
  const TensorView x = call.input({1, 2, 4}, {1, 5, 2, 0, 3, 4, 9, 9}), y = call.output({1, 2, 4});
  const TensorView gradient = call.input({1, 1, 3}, {10, 20, 30});
  const TensorView positions = call.input({1, 1, 3}, {1, 1, 6}, kWhole);
  const std::vector<int64_t> two = {2, 2}, one = {1, 1}, none = {0, 0};
  EXPECT_THAT(call.run({gradient, x, two, one, none, one, num(0), positions}, {y}).value()[0],
              ElementsAre(0, 30, 0, 0, 0, 0, 30, 0));
}

TEST(Attention, OfAQueryThatSaysNothingIsTheMean) {
  for (const HostType type : {HostType::kFloat16, kWord}) {
    FormCall call("spyre.attention.default");
    const TensorView query = call.input({2, 1, 1}, {0, 0}, type), key = call.input({1, 2, 1}, {5, 7}, type);
    const TensorView value = call.input({1, 2, 1}, {1, 3}, type), y = call.output({2, 1, 1}, type);
    EXPECT_THAT(call.run({query, key, value, kNothing, num(0), kNothing}, {y}).value()[0], ElementsAre(2, 2));
  }
}

TEST(Attention, LooksWhereItMayAndNowhereIsZero) {
  FormCall call("spyre.attention.default");
  const TensorView query = call.input({1, 2, 1}, {0, 0}), key = call.input({1, 2, 1}, {5, 7});
  const TensorView value = call.input({1, 2, 1}, {1, 3}), y = call.output({1, 2, 1});
  const TensorView mask = call.input({2, 2}, {0, 1, 0, 0}, kTruth);
  EXPECT_THAT(call.run({query, key, value, mask, num(0), kNothing}, {y}).value()[0], ElementsAre(3, 0));
}

TEST(Attention, DoesNotLookAhead) {
  FormCall call("spyre.attention.default");
  const TensorView query = call.input({1, 2, 1}, {0, 0}, kWord), key = call.input({1, 2, 1}, {5, 7}, kWord);
  const TensorView value = call.input({1, 2, 1}, {1, 3}, kWord), y = call.output({1, 2, 1}, kWord);
  EXPECT_THAT(call.run({query, key, value, kNothing, num(1), kNothing}, {y}).value()[0], ElementsAre(1, 2));
}

TEST(Attention, HasGradients) {
  FormCall call("spyre.attention_backward.default");
  const TensorView gradient = call.input({2, 1, 1}, {1, 1}), query = call.input({2, 1, 2}, {0, 0, 0, 0});
  const TensorView key = call.input({1, 2, 2}, {1, 0, 0, 1}), value = call.input({1, 2, 1}, {1, 3});
  const TensorView of_query = call.output({2, 1, 2}), of_key = call.output({1, 2, 2}),
                   of_value = call.output({1, 2, 1});
  const auto found =
      call.run({gradient, query, key, value, kNothing, num(0), num(1)}, {of_query, of_key, of_value}).value();
  EXPECT_THAT(found[0], ElementsAre(-0.5, 0.5, -0.5, 0.5));
  EXPECT_THAT(found[1], ElementsAre(0, 0, 0, 0));
  EXPECT_THAT(found[2], ElementsAre(1, 1)) << "both heads share the keys";
}

TEST(Attention, AMaskHasAGradient) {
  FormCall call("spyre.attention_mask_backward.default");
  const TensorView gradient = call.input({2, 1, 1}, {1, 1}), query = call.input({2, 1, 1}, {0, 0});
  const TensorView key = call.input({1, 2, 1}, {1, 0}), value = call.input({1, 2, 1}, {1, 3});
  const TensorView mask = call.input({1, 2}, {0, 0}), y = call.output({1, 2});
  EXPECT_THAT(call.run({gradient, query, key, value, mask, num(0), num(1)}, {y}).value()[0],
              ElementsAre(-1, 1));
}

TEST(EncoderLayers, HeadsAreProjectedAndJoined) {
  FormCall call("aten._native_multi_head_attention.default");
  const TensorView x = call.input({1, 2, 1}, {1, 3}), weight = call.input({3, 1}, {0, 0, 1});
  const TensorView bias = call.input({3}, {0, 0, 0}), out = call.input({1, 1}, {10}),
                   out_bias = call.input({1}, {1});
  const TensorView y = call.output({1, 2, 1}), weights = call.output({1, 2, 2});
  const auto found = call.run({x, x, x, num(1), num(1), weight, bias, out, out_bias}, {y, weights}).value();
  EXPECT_THAT(found[0], ElementsAre(21, 21));
  EXPECT_THAT(found[1], ElementsAre(0.5, 0.5, 0.5, 0.5));
}

}  // namespace
}  // namespace spyre::forms
