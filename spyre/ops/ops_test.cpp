#include "spyre/ops/ops.h"

#include <gmock/gmock.h>

#include <cmath>
#include <set>

#include "spyre/ops/formulas.h"

namespace spyre {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// The instantiation that the head of table.def describes; `none` for names without a meaning.
using Pointwise = float (*)(float x, float y, float z, const float* k);
Pointwise pointwise(std::string_view op) {
#define SPYRE_POINTWISE(name, inputs, formats, constants, mask, meaning) \
  if (op == #name) {                                                     \
    return [](float x, float y, float z, const float* k) -> float {      \
      using T [[maybe_unused]] = float;                                  \
      using namespace spyre::formulas;                                   \
      [[maybe_unused]] const float k0 = k[0], k1 = k[1];                 \
      (void)x, (void)y, (void)z;                                         \
      return meaning;                                                    \
    };                                                                   \
  }
#include "spyre/ops/table.def"
  return nullptr;
}

float eval(std::string_view op, float x, float y = 0, float z = 0, float k0 = 0, float k1 = 0) {
  const float k[] = {k0, k1};
  return pointwise(op)(x, y, z, k);
}

TEST(Ops, NamesAreUnique) {
  std::set<std::string_view> names;
  for (const OpInfo& op : all_ops()) {
    EXPECT_TRUE(names.insert(op.name).second) << op.name;
  }
}

TEST(Ops, IdsAreTheRowsOfTheTable) {
  for (const OpInfo& op : all_ops()) {
    EXPECT_EQ(&info_of(op.id), &op);
    EXPECT_EQ(to_string(op.id), op.name);
    EXPECT_EQ(op_from_name(op.name), op.id);
  }
  EXPECT_EQ(op_from_name("sum"), OpId::sum);
  EXPECT_EQ(op_from_name("sumnonstick"), std::nullopt);
  EXPECT_EQ(op_from_name(""), std::nullopt);
}

TEST(Ops, NonStickNamesResolveToTheirReduction) {
  EXPECT_EQ(find_op("sumnonstick"), find_op("sum"));
  EXPECT_EQ(find_op("prodnonstick")->name, "prod");
  EXPECT_EQ(op_func_name(*find_op("max"), true), "maxnonstick");
  EXPECT_EQ(op_func_name(*find_op("max"), false), "max");
  EXPECT_TRUE(is_nonstick_name("meannonstick"));
  EXPECT_FALSE(is_nonstick_name("mean"));
}

TEST(Ops, VariantsThatDoNotExistAreNotFound) {
  EXPECT_EQ(find_op("exx2nonstick"), nullptr);
  EXPECT_EQ(find_op("addnonstick"), nullptr);
  EXPECT_EQ(find_op("topkvaluenonstick"), nullptr);
}

TEST(Ops, PublishedButNeverEmittedOpsAreNotInTheTable) {
  for (const char* name : {"batchmatmulint4",
                           "batchmatmulint8",
                           "conv2dfp8",
                           "conv2dint4",
                           "conv2dint8",
                           "batchnormfwd",
                           "biasadd",
                           "fnms",
                           "revsub",
                           "fastexp",
                           "fastsigmoid",
                           "leakyrelufwd",
                           "mish",
                           "relu6fwd",
                           "absmax",
                           "absmaxnonstick",
                           "exx2_zeromean",
                           "quantscalepertoken",
                           "avgpoolnmapfwd",
                           "maxpoolfwd",
                           "maskbyindex"}) {
    EXPECT_EQ(find_op(name), nullptr) << name;
  }
}

TEST(Ops, OnlyMatmulAndConvRunOnTheArray) {
  for (const OpInfo& op : all_ops()) {
    const bool array = op.name == "batchmatmul" || op.name == "batchmatmulfp8" || op.name == "conv2d";
    EXPECT_EQ(to_string(op.unit), array ? "pt" : "sfp") << op.name;
  }
}

TEST(Ops, MasksAreFiniteExtremes) {
  EXPECT_EQ(find_op("max")->mask, -65504.0);
  EXPECT_EQ(find_op("min")->mask, 65504.0);
  EXPECT_EQ(find_op("exp")->mask, -10000.0);
  EXPECT_EQ(find_op("sum")->mask, 0.0);
  EXPECT_EQ(find_op("add")->mask, std::nullopt);
}

TEST(Ops, ConstantsKeepTheirOrder) {
  EXPECT_THAT(find_op("clip")->constants, ElementsAre("clipMin", "clipMax"));
  EXPECT_THAT(find_op("quantscalepertokenfp8")->constants, ElementsAre("clipMin", "clipMax", "mulConst"));
  EXPECT_THAT(find_op("add")->constants, IsEmpty());
}

TEST(Ops, FormatsPrintForMessages) {
  EXPECT_EQ(find_op("add")->input_formats.to_string(), "SEN169_FP16, IEEE_FP32");
  EXPECT_EQ(find_op("identity")->input_formats.to_string(), "any");
  EXPECT_FALSE(find_op("tanh")->input_formats.contains(DataFormat::IEEE_FP32));
  EXPECT_TRUE(find_op("qfp8ch")->output_formats.contains(DataFormat::SEN143_FP8));
}

TEST(Ops, EveryPointwiseOpHasAMeaning) {
  for (const OpInfo& op : all_ops()) {
    EXPECT_EQ(pointwise(op.name) != nullptr, op.family == OpFamily::kPointwise) << op.name;
  }
}

TEST(Meaning, ComparesWithOneAndZero) {
  EXPECT_EQ(eval("greaterthan", 2, 1), 1.0f);
  EXPECT_EQ(eval("greaterthan", 1, 2), 0.0f);
  EXPECT_EQ(eval("notequal", NAN, NAN), 1.0f);
}

TEST(Meaning, WherePicksTheSecondInputForANonZeroCondition) {
  EXPECT_EQ(eval("where3", 1, 5, 7), 5.0f);
  EXPECT_EQ(eval("where3", 0, 5, 7), 7.0f);
}

TEST(Meaning, ClipKeepsNaNAndHonoursBothBounds) {
  EXPECT_EQ(eval("clip", 9, 0, 0, 0, 6), 6.0f);
  EXPECT_EQ(eval("clip", -9, 0, 0, 0, 6), 0.0f);
  EXPECT_TRUE(std::isnan(eval("clip", NAN, 0, 0, 0, 6)));
  EXPECT_TRUE(std::isnan(eval("maximum", 1, NAN)));
  EXPECT_TRUE(std::isnan(eval("relufwd", NAN)));
}

TEST(Meaning, SoftplusIsTheIdentityPastItsThreshold) {
  EXPECT_EQ(eval("softplus", 30, 0, 0, 1, 20), 30.0f);
  EXPECT_FLOAT_EQ(eval("softplus", 0, 0, 0, 2, 20), std::log(2.0f) / 2);
}

TEST(Meaning, GeluIsTheErfForm) {
  EXPECT_NEAR(eval("gelufwd", 1), 0.8413447461f, 1e-6);
  EXPECT_EQ(eval("gelufwd", 0), 0.0f);
}

}  // namespace
}  // namespace spyre
