// One test per rule: a valid artifact, one thing changed, the message that must come.
#include "spyre/program/validate.h"
#include "spyre/base/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "spyre/program/read_program.h"
#include "spyre/program/test_artifact.h"

namespace spyre::testing_artifacts {

using namespace program;  // NOLINT: test support of that layer

namespace {

using ::testing::HasSubstr;

/// add over two cores: X(4,128) + b(128) -> Y(4,128).
OpSpec broadcast_add() {
  return {.function = "add",
          .dims = {{"mb", 4, 2}, {"out", 128}},
          .tensors = {{.order = {"mb", "out"}, .base = 0},
                      {.order = {"out", "mb"}, .scale = {{"mb", -1}}, .base = 4096},
                      {.order = {"mb", "out"}, .base = 8192}}};
}

OpSpec matmul() {
  return {.function = "batchmatmul",
          .dims = {{"mb", 128, 2}, {"out", 128}, {"in", 256, 2}},
          .tensors = {{.order = {"mb", "in"}, .stick = {"in"}, .base = 0},
                      {.order = {"in", "out"}, .stick = {"out"}, .base = 1 << 20},
                      {.order = {"mb", "out"}, .stick = {"out"}, .base = 2 << 20}},
          .k_fastest = true};
}

Json& root_of(Json& json) {
  return json.begin().value();
}
Json& dsc_of(Json& json) {
  return root_of(json)["dscs_"][0].begin().value();
}

Result<DeviceProgram> read(const Json& json) {
  return read_program({{"sdsc_0.json", json.dump()}});
}

/// Reads `json`, expects a refusal with that text.
void expect_refused(const Json& json, const std::string& text, ErrorKind kind = ErrorKind::kInvalidArgument) {
  const auto program = read(json);
  ASSERT_FALSE(program.ok()) << "was accepted, expected: " << text;
  EXPECT_THAT(program.error().message, HasSubstr(text));
  EXPECT_EQ(program.error().kind, kind) << program.error().message;
}

TEST(ReadSdsc, WorkedExamplesOfTheReferenceAreAccepted) {
  EXPECT_TRUE(read(write_sdsc(broadcast_add())).ok());
  EXPECT_TRUE(read(write_sdsc(matmul())).ok());
}

TEST(ReadSdsc, ScaleFollowsTheOrderOfTheLayoutClassNotOfTheTensor) {
  // Tensor1's own order is [out, mb]; its class says [mb, out], and so does scale_ [-1, 1].
  Json json = write_sdsc(broadcast_add());
  dsc_of(json)["labeledDs_"][1]["dsType_"] = "DS0";
  dsc_of(json)["labeledDs_"][1]["scale_"] = {-1, 1};
  const auto program = read(json);
  ASSERT_TRUE(program.ok()) << program.error().to_string();
  const Tensor& b = program.value().ops[0].tensors[1];
  EXPECT_EQ(b.dims[0].dim, 1);
  EXPECT_EQ(b.dims[0].scale, 1);
  EXPECT_EQ(b.dims[1].scale, -1);
}

TEST(ReadSdsc, StridesAreInElementsInnermostFirst) {
  const auto program = read(write_sdsc(broadcast_add()));
  ASSERT_TRUE(program.ok());
  const Tensor& x = program.value().ops[0].tensors[0];
  EXPECT_EQ(x.dims[0].stride, 64);   // next row: one stick on
  EXPECT_EQ(x.dims[1].stride, 256);  // next stick of a row: four rows on
  EXPECT_EQ(x.dims[1].extent, 2);
}

TEST(ReadSdsc, MatmulStartsAreThoseOfTheReference) {
  const auto program = read(write_sdsc(matmul()));
  ASSERT_TRUE(program.ok()) << program.error().to_string();
  const auto starts = [&](int tensor) {
    std::vector<int64_t> out;
    for (const CoreStart& start : program.value().ops[0].tensors[tensor].start) {
      out.push_back(start.value - tensor * (1 << 20));
    }
    return out;
  };
  EXPECT_THAT(starts(0), ::testing::ElementsAre(0, 32768, 8192, 40960));
  EXPECT_THAT(starts(1), ::testing::ElementsAre(0, 16384, 0, 16384));
  EXPECT_THAT(starts(2), ::testing::ElementsAre(0, 0, 8192, 8192));
}

TEST(ReadSdsc, OptionalPartsMayBeMissing) {
  Json json = write_sdsc(broadcast_add());
  for (const char* key : {"coreIdToDsc_", "coreIdToDscSchedule", "coreIdToWkSlice_", "coreletFoldProp_"}) {
    root_of(json).erase(key);
  }
  for (const char* key : {"numCoresUsed_", "coreIdsUsed_", "coordinateMasking_", "maskingConstId_",
                          "dataStageParam_", "constantInfo_"}) {
    dsc_of(json).erase(key);
  }
  for (Json& node : dsc_of(json)["scheduleTree_"]) {
    node.erase("coordinates_");
    node.erase("maxDimSizes_");
    node.erase("indirectAllocType_");
  }
  const auto program = read(json);
  ASSERT_TRUE(program.ok()) << program.error().to_string();
  const auto whole = read(write_sdsc(broadcast_add()));
  EXPECT_EQ(program.value(), whole.value());
}

TEST(ReadSdsc, ConstantsAreDecodedInTheirFormat) {
  OpSpec op{.function = "clip",
            .dims = {{"mb", 2}, {"out", 64}},
            .tensors = {{.order = {"mb", "out"}}, {.order = {"mb", "out"}, .base = 1024}},
            .constants = {{"clipMax", 6.0f}, {"clipMin", -0.5f}}};
  const auto program = read(write_sdsc(op));
  ASSERT_TRUE(program.ok()) << program.error().to_string();
  EXPECT_THAT(program.value().ops[0].k, ::testing::ElementsAre(-0.5f, 6.0f));  // in the row's order
}

TEST(ReadSdsc, AnOpFunctionWithoutARowIsUnsupported) {
  Json json = write_sdsc(broadcast_add());
  dsc_of(json)["computeOp_"][0]["opFuncName"] = "fnms";
  expect_refused(json, "sdsc_0.json: dscs_[0].add.computeOp_[0].opFuncName: found 'fnms', allowed: ",
                 ErrorKind::kUnsupported);
}

TEST(ReadSdsc, AFormatTheOpDoesNotHaveIsUnsupported) {
  OpSpec op{.function = "tanh", .dims = {{"mb", 2}, {"out", 64}}};
  op.tensors.assign(2, {.order = {"mb", "out"}, .stick_sizes = {32}, .format = DataFormat::IEEE_FP32});
  expect_refused(write_sdsc(op), "labeledDs_[0].dataFormat_: found IEEE_FP32, allowed: SEN169_FP16, for tanh",
                 ErrorKind::kUnsupported);
}

TEST(ReadSdsc, AMissingConstantIsNamed) {
  OpSpec op{.function = "clip", .dims = {{"mb", 2}, {"out", 64}}, .constants = {{"clipMin", 0.0f}}};
  op.tensors.assign(2, {.order = {"mb", "out"}});
  expect_refused(write_sdsc(op),
                 "constantInfo_: found no 'clipMax', allowed: the constants of clip: clipMin, clipMax");
}

// ---- the rules
// ------------------------------------------------------------------------------------------------

TEST(Rule, ExactlyOneRootKey) {
  Json json = write_sdsc(broadcast_add());
  json["another"] = Json::object();
  expect_refused(json, "sdsc_0.json: root: found 2 root keys, allowed: exactly one");
}

TEST(Rule, ExactlyOneDsc) {
  Json json = write_sdsc(broadcast_add());
  root_of(json)["dscs_"].push_back(root_of(json)["dscs_"][0]);
  expect_refused(json, "dscs_: found 2 entries, allowed: exactly one");
}

TEST(Rule, CoreIdsAreAsManyAsCoresUsed) {
  Json json = write_sdsc(broadcast_add());
  dsc_of(json)["coreIdsUsed_"] = {0};
  expect_refused(json, "dscs_[0].add.coreIdsUsed_: found 1 ids, 1 distinct, allowed: 2 distinct ids");
}

TEST(Rule, NoMoreCoresThanTheMachineHas) {
  OpSpec op = broadcast_add();
  op.dims[0] = {"mb", 64, 64};
  expect_refused(write_sdsc(op), "numCoresUsed_: found 64, allowed: 1 to 32");
}

TEST(Rule, SplitsMultiplyToTheNumberOfCores) {
  Json json = write_sdsc(broadcast_add());
  root_of(json)["numWkSlicesPerDim_"]["mb"] = 4;
  expect_refused(json, "numWkSlicesPerDim_: found a product of 4, allowed: 2");
}

TEST(Rule, RelayoutIsExemptFromTheProductOfSplits) {
  OpSpec op{.function = "shuffle",
            .dims = {{"mb", 4, 2}, {"out", 64}},
            .tensors = {{.order = {"mb", "out"}, .base = 0, .lx = true},
                        {.order = {"mb", "out"}, .base = 1024, .lx = true}}};
  op.tensors[0].own_slices = {{0, {{"mb", 0}}}, {1, {{"mb", 1}}}};
  op.tensors[1].own_slices = {{0, {{"mb", 1}}}, {1, {{"mb", 0}}}};
  Json json = write_sdsc(op);
  root_of(json)["numWkSlicesPerDim_"]["mb"] = 1;
  json.begin().value()["dscs_"][0].begin().value().erase("dataStageParam_");
  EXPECT_TRUE(read(json).ok()) << read(json).error().to_string();
}

TEST(Rule, CoresRunAnEntryThatExists) {
  Json json = write_sdsc(broadcast_add());
  root_of(json)["coreIdToDsc_"]["1"] = 1;
  expect_refused(json, "coreIdToDsc_.1: found 1, allowed: 0 to 0");
}

TEST(Rule, CoresShareOneSchedule) {
  Json json = write_sdsc(broadcast_add());
  root_of(json)["coreIdToDscSchedule"]["1"][0][2] = 1;
  expect_refused(json, "coreIdToDscSchedule.1: found a schedule of its own");
}

TEST(Rule, LayoutClassExists) {
  Json json = write_sdsc(broadcast_add());
  dsc_of(json)["labeledDs_"][1]["dsType_"] = "KERNEL";
  expect_refused(json,
                 "labeledDs_[1].dsType_: found 'KERNEL', allowed: the keys of primaryDsInfo_: DS0, DS1, DS2");
}

TEST(Rule, TensorIndicesAreInOrder) {
  Json json = write_sdsc(broadcast_add());
  dsc_of(json)["labeledDs_"][1]["ldsIdx_"] = 2;
  expect_refused(json, "labeledDs_[1].ldsIdx_: found 2, allowed: 1");
}

TEST(Rule, AtMostEightTensors) {
  Json json = write_sdsc(broadcast_add());
  for (int i = 3; i < 9; ++i) {
    Json tensor = dsc_of(json)["labeledDs_"][0];
    tensor["ldsIdx_"] = i;
    dsc_of(json)["labeledDs_"].push_back(tensor);
  }
  expect_refused(json, "labeledDs_: found 9 entries, allowed: 1 to 8");
}

TEST(Rule, OneScalePerDim) {
  Json json = write_sdsc(broadcast_add());
  dsc_of(json)["labeledDs_"][0]["scale_"] = {1, 1, 1};
  expect_refused(json, "labeledDs_[0].scale_: found 3 entries, allowed: 2");
}

TEST(Rule, OneNodePerTensor) {
  Json json = write_sdsc(broadcast_add());
  dsc_of(json)["scheduleTree_"].erase(2);
  expect_refused(json, "scheduleTree_: found 2 nodes, allowed: 3");
}

TEST(Rule, OperandReferencesResolve) {
  for (const char* bad : {"Tensor5-idx5", "Tensor1-idx0", "Tensor1", "Tensor0-idx", "-idx-1"}) {
    Json json = write_sdsc(broadcast_add());
    dsc_of(json)["computeOp_"][0]["inputLabeledDs"][1] = bad;
    expect_refused(
        json, fmt::format("computeOp_[0].inputLabeledDs: found '{}', allowed: <dsName_>-idx<ldsIdx_>", bad));
  }
}

TEST(Rule, FoldFunctionsHaveAllLevels) {
  Json json = write_sdsc(broadcast_add());
  dsc_of(json)["scheduleTree_"][0]["coordinates_"]["coordInfo"]["out"]["folds"]["dim_prop_func"].erase(0);
  expect_refused(
      json, "scheduleTree_[0].coordinates_.coordInfo.out.folds.dim_prop_func: found 4 levels, allowed: 5");
}

TEST(Rule, FoldAttributesHaveAllLevels) {
  Json json = write_sdsc(broadcast_add());
  dsc_of(json)["scheduleTree_"][1]["coordinates_"]["coordInfo"]["mb"]["folds"]["dim_prop_attr"].erase(0);
  expect_refused(
      json, "scheduleTree_[1].coordinates_.coordInfo.mb.folds.dim_prop_attr: found 3 levels, allowed: 4");
}

TEST(Rule, ExtentsDivideEvenly) {
  Json json = write_sdsc(broadcast_add());
  dsc_of(json)["N_"]["mb_"] = 5;
  expect_refused(json, "N_.mb_: found 5, allowed: a multiple of its 2 slices");
}

TEST(Rule, PerCoreSizesAgreeWithTheTotal) {
  Json json = write_sdsc(broadcast_add());
  dsc_of(json)["dataStageParam_"]["0"]["ss_"]["mb_"] = 4;
  expect_refused(json, "dataStageParam_.0.ss_.mb_: found 4, allowed: 2");
}

TEST(Rule, SlicesAreInRangeAndDistinct) {
  Json json = write_sdsc(broadcast_add());
  root_of(json)["coreIdToWkSlice_"]["1"]["mb"] = 2;
  expect_refused(json, "coreIdToWkSlice_.1.mb: found 2, allowed: 0 to 1");
  root_of(json)["coreIdToWkSlice_"]["1"]["mb"] = 0;
  expect_refused(json, "coreIdToWkSlice_.1: found the slice of another core");
}

TEST(Rule, SlicesAreWholeSticks) {
  OpSpec op = broadcast_add();
  op.dims[1] = {"out", 96};
  expect_refused(write_sdsc(op),
                 "dataStageParam_.0.ss_.out_ of Tensor0: found 96 elements per core, allowed: a multiple "
                 "of the stick size 64");
}

TEST(Rule, IndexTensorsMayHaveLessThanOneStick) {
  OpSpec op{.function = "identity",
            .dims = {{"mb", 8, 2}, {"out", 64}},
            .tensors = {index_tensor(1), indexed_rows(), {.order = {"mb", "out"}}}};
  EXPECT_TRUE(read(write_sdsc(op)).ok()) << read(write_sdsc(op)).error().to_string();
  op.dims[0] = {"mb", 40};
  expect_refused(write_sdsc(op),
                 "of Tensor0: found 40 elements per core, allowed: a multiple of the stick size 32");
}

TEST(Rule, MatmulSticksAreContractedAndGenerated) {
  OpSpec op = matmul();
  op.tensors[0].stick = {"mb"};
  expect_refused(write_sdsc(op), "primaryDsInfo_.stickDimOrder_ of Tensor0: found [mb], allowed: [in]");
  op = matmul();
  op.tensors[1].stick = {"in"};
  expect_refused(write_sdsc(op), "primaryDsInfo_.stickDimOrder_ of Tensor1: found [in], allowed: [out]");
}

TEST(Rule, MatmulHasOneContractedDim) {
  OpSpec op = matmul();
  op.dims.push_back({"x", 2});
  op.tensors[0].order.push_back("x");
  op.tensors[1].order.push_back("x");
  expect_refused(write_sdsc(op), "labeledDs_: found 2 contracted dims, allowed: one");
}

TEST(Rule, MatmulHasAtMostTwoPreservedDims) {
  OpSpec op = matmul();
  for (const char* label : {"x", "y"}) {
    op.dims.insert(op.dims.begin(), {label, 2});
    op.tensors[0].order.push_back(label);
    op.tensors[2].order.push_back(label);
  }
  expect_refused(write_sdsc(op), "labeledDs_: found 3 preserved dims, allowed: at most two");
}

TEST(Rule, MatmulSharesAtMostTwoDims) {
  OpSpec op = matmul();
  for (const char* label : {"x", "y", "i"}) {
    op.dims.insert(op.dims.begin(), {label, 2});
    for (TensorSpec& tensor : op.tensors) {
      tensor.order.push_back(label);
    }
  }
  expect_refused(write_sdsc(op), "labeledDs_: found 3 dims shared by all three, allowed: at most two");
}

TEST(Rule, PointwiseTensorsShareOneStick) {
  OpSpec op{.function = "abs",
            .dims = {{"mb", 64}, {"out", 64}},
            .tensors = {{.order = {"mb", "out"}}, {.order = {"out", "mb"}, .stick = {"mb"}}}};
  expect_refused(write_sdsc(op),
                 "primaryDsInfo_.stickDimOrder_ of Tensor0: found [out], allowed: [mb], as the result");
}

TEST(Rule, ConversionsKeepTheStick) {
  OpSpec op{
      .function = "dl16tofp32",
      .dims = {{"mb", 64}, {"out", 64}},
      .tensors = {
          {.order = {"mb", "out"}},
          {.order = {"out", "mb"}, .stick = {"mb"}, .stick_sizes = {32}, .format = DataFormat::IEEE_FP32}}};
  expect_refused(write_sdsc(op),
                 "stickDimOrder_ of Tensor0: found [out], allowed: [mb], as the result, one dim");
}

TEST(Rule, RelayoutsStayInLx) {
  OpSpec op{.function = "shuffle",
            .dims = {{"mb", 4}, {"out", 64}},
            .tensors = {{.order = {"mb", "out"}}, {.order = {"mb", "out"}, .base = 1024, .lx = true}}};
  expect_refused(write_sdsc(op), "scheduleTree_.component_ of Tensor0: found hbm, allowed: lx");
}

TEST(Rule, ASearchHasOneSearchedAndOneRankDim) {
  OpSpec op{.function = "topkvalue",
            .dims = {{"mb", 8}, {"out", 64}},
            .tensors = {{.order = {"mb", "out"}}, {.order = {"mb", "out"}}}};
  expect_refused(write_sdsc(op), "labeledDs_: found 0 searched and 0 rank dims, allowed: one of each");
}

TEST(Rule, ABroadcastStickIsBroadcastWhole) {
  OpSpec op{
      .function = "batchmatmulfp8",
      .dims = {{"mb", 4}, {"out", 64}, {"in", 128}},
      .tensors = {
          {.order = {"mb", "in"}, .stick = {"in"}, .stick_sizes = {128}, .format = DataFormat::SEN143_FP8},
          {.order = {"in", "out"},
           .stick = {"in", "out"},
           .stick_sizes = {2, 64},
           .format = DataFormat::SEN143_FP8},
          {.order = {"mb", "out"}}}};
  ASSERT_TRUE(read(write_sdsc(op)).ok()) << read(write_sdsc(op)).error().to_string();
  // A copy of such a weight, one of its stick dims absent.
  OpSpec copy{
      .function = "identity", .dims = {{"in", 128}, {"out", 64}}, .tensors = {op.tensors[1], op.tensors[1]}};
  copy.tensors[0].scale["in"] = -1;
  expect_refused(write_sdsc(copy),
                 "labeledDs_.scale_ of Tensor0: found one stick dim broadcast and another not");
}

TEST(Rule, OnlyReductionsLeaveDimsOut) {
  OpSpec op = broadcast_add();
  op.tensors[2].scale["mb"] = -1;
  expect_refused(write_sdsc(op), "labeledDs_.scale_ of Tensor2: found no 'mb' in the result");
}

TEST(Rule, AddressesAreStickAligned) {
  OpSpec op = broadcast_add();
  op.tensors[2].base = 8200;
  expect_refused(write_sdsc(op),
                 "startAddressCoreCorelet_.data_[0] of Tensor2: found 8200, allowed: a multiple of 128");
}

TEST(Rule, LxTensorsFitTheScratchpad) {
  OpSpec op = broadcast_add();
  op.tensors[2].lx = true;
  op.tensors[2].base = (2 << 20) - 512;  // per core: 2 rows x 2 sticks = 512 bytes
  EXPECT_TRUE(read(write_sdsc(op)).ok()) << read(write_sdsc(op)).error().to_string();
  op.tensors[2].gap = {
      {op.tensors[2].order.back(), 100}};  // the last rows of a buffer, whose gap is the rest
  EXPECT_TRUE(read(write_sdsc(op)).ok()) << read(write_sdsc(op)).error().to_string();
  op.tensors[2].base += 128;
  expect_refused(write_sdsc(op),
                 "of Tensor2: found 2096768 with 512 bytes after it, allowed: an end within the 2097152");
}

TEST(Rule, ACoreReachesItsSlice) {
  OpSpec op{.function = "abs", .dims = {{"mb", 3 << 20}, {"out", 64}}};
  op.tensors.assign(2, {.order = {"mb", "out"}});
  expect_refused(write_sdsc(op),
                 "scheduleTree_ of Tensor0: found a slice that spans 402653184 bytes, allowed: 268435456");
}

TEST(Rule, MaskConstantExactlyWhenMasked) {
  Json json = write_sdsc(broadcast_add());
  dsc_of(json)["maskingConstId_"] = 0;
  expect_refused(json, "maskingConstId_: found 0, allowed: -1, as coordinateMasking_ is empty");
  dsc_of(json)["maskingConstId_"] = -1;
  dsc_of(json)["coordinateMasking_"] = {{"out", Json::array({Json::array({100, 28})})}};
  expect_refused(json, "maskingConstId_: found -1, allowed: the id of the mask value");
}

TEST(Rule, EverySymbolOfAnExecutedFileIsBound) {
  OpSpec op = broadcast_add();
  op.symbolic = true;
  const auto bundle = [](const char* operands, const char* ids) {
    return fmt::format(
        "func.func @b(%arg_0_base_addr: !sdscbundle.input_arg<index>) {{\n"
        "%a = sdscbundle.input_arg_extract value from %arg_0_base_addr : !sdscbundle.input_arg<index> -> "
        "index\n"
        "sdscbundle.sdsc_execute ({}) {{sdsc_filename=\"sdsc_0.json\", \"symbol_ids\"=[{}]}} return }}",
        operands, ids);
  };
  const std::string sdsc = write_sdsc(op).dump();
  const auto good = read_program(
      {{"bundle.mlir", bundle("%a, %a, %a, %a, %a", "-1, -2, -3, -4, -5")}, {"sdsc_0.json", sdsc}});
  EXPECT_TRUE(good.ok()) << good.error().to_string();
  const auto unbound =
      read_program({{"bundle.mlir", bundle("%a, %a, %a, %a", "-1, -2, -3, -5")}, {"sdsc_0.json", sdsc}});
  ASSERT_FALSE(unbound.ok());
  EXPECT_EQ(unbound.error().message,
            "bundle.mlir: symbol_ids: found no -4, a start address of Tensor2 in sdsc_0.json, allowed: every "
            "symbol of the "
            "executed file");
  const auto uneven = read_program({{"bundle.mlir", bundle("%a", "-1, -2")}, {"sdsc_0.json", sdsc}});
  ASSERT_FALSE(uneven.ok());
  EXPECT_THAT(uneven.error().message,
              HasSubstr("found 2 symbol_ids for 1 operands, allowed: one id per operand"));
}

}  // namespace
}  // namespace spyre::testing_artifacts
