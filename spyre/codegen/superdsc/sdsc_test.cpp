// The fields of sdsc_N.json, checked against values worked out by hand from the published rules.

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "spyre/base/json.h"
#include "spyre/codegen/superdsc/constants.h"
#include "spyre/codegen/superdsc/corpus_for_test.h"
#include "spyre/codegen/superdsc/physical.h"
#include "spyre/codegen/superdsc/plan.h"

namespace spyre::superdsc {
namespace {

using testing::ElementsAre;

// Levels of one coordinate as (alpha, factor) pairs from cores to lanes.
Json fold(const std::vector<std::pair<int, int>>& levels) {
  Json functions = Json::array();
  Json attributes = Json::array();
  const int elements = static_cast<int>(levels.size()) - 3;
  for (int i = 0; i < static_cast<int>(levels.size()); ++i) {
    const std::string names[] = {"core_fold", "corelet_fold", "row_fold"};
    functions.push_back({{"Affine", {{"alpha_", levels[i].first}, {"beta_", 0}}}});
    attributes.push_back({{"factor_", levels[i].second},
                          {"label_", i < 3 ? names[i] : fmt::format("elem_arr_{}", elements - 1 - (i - 3))}});
  }
  return {{"spatial", 3},
          {"temporal", 0},
          {"elemArr", elements},
          {"padding", "nopad"},
          {"folds", {{"dim_prop_func", functions}, {"dim_prop_attr", attributes}}}};
}

Json coord_info(const Json& config, size_t tensor, const std::string& dim) {
  return config["scheduleTree_"][tensor]["coordinates_"]["coordInfo"][dim];
}

std::string order(const Json& config, size_t tensor) {
  return config["scheduleTree_"][tensor]["layoutDimOrder_"].dump();
}
std::string scale(const Json& config, size_t tensor) {
  return config["labeledDs_"][tensor]["scale_"].dump();
}
std::string label(const Json& config, size_t tensor) {
  return config["labeledDs_"][tensor]["dsType_"];
}
std::string stick(const Json& config, size_t tensor) {
  const Json& layout = config["primaryDsInfo_"][label(config, tensor)];
  return layout["stickDimOrder_"].dump() + layout["stickSize_"].dump();
}
// Sizes of N_ alone.
std::string sizes(const Json& config) {
  Json n = config["N_"];
  n.erase("name_");
  n.erase("paddingSizes_");
  return n.dump();
}

const char* const kWorkedAdd = R"json({"0_add": {
  "debug_handle_": null,
  "sdscFoldProps_": [{"factor_":1,"label_":"time"}],
  "sdscFolds_": {"dim_prop_func":[{"Affine":{"alpha_":1,"beta_":0}}],
                 "dim_prop_attr":[{"factor_":1,"label_":"time"}],"data_":{"[0]":"0"}},
  "coreFoldProp_": {"factor_":2,"label_":"core"},
  "coreletFoldProp_": {"factor_":1,"label_":"corelet"},
  "numCoresUsed_": 2,
  "coreIdToDsc_": {"0":0,"1":0},
  "numWkSlicesPerDim_": {"mb":2,"out":1},
  "coreIdToWkSlice_": {"0":{"mb":0,"out":0},"1":{"mb":1,"out":0}},
  "coreIdToDscSchedule": {"0":[[-1,0,0,0]],"1":[[-1,0,0,0]]},
  "dscs_": [{"add": {
    "numCoresUsed_":2,"numCoreletsUsed_":1,"coreIdsUsed_":[0,1],
    "N_": {"name_":"n","mb_":4,"out_":128},
    "coordinateMasking_": {}, "maskingConstId_": -1,
    "dataStageParam_": {"0": {"ss_": "STAGE", "el_": "STAGE"}},
    "primaryDsInfo_": {"OUTPUT": {"layoutDimOrder_":["mb","out"],"stickDimOrder_":["out"],"stickSize_":[64]}},
    "scheduleTree_": ["NODE0", "NODE1", "NODE2"],
    "labeledDs_": [
      {"ldsIdx_":0,"dsName_":"Tensor0","dsType_":"OUTPUT","scale_":[1,1],"wordLength":2,
       "dataFormat_":"SEN169_FP16","memOrg_":{"hbm":{"isPresent":1},"lx":{"isPresent":1}}},
      {"ldsIdx_":1,"dsName_":"Tensor1","dsType_":"OUTPUT","scale_":[-1,1],"wordLength":2,
       "dataFormat_":"SEN169_FP16","memOrg_":{"hbm":{"isPresent":1},"lx":{"isPresent":1}}},
      {"ldsIdx_":2,"dsName_":"Tensor2","dsType_":"OUTPUT","scale_":[1,1],"wordLength":2,
       "dataFormat_":"SEN169_FP16","memOrg_":{"hbm":{"isPresent":1},"lx":{"isPresent":1}}}],
    "constantInfo_": "{}",
    "computeOp_": [{"exUnit":"sfp","opFuncName":"add",
      "attributes_":{"dataFormat_":"SEN169_FP16","fidelity_":"regular"},"location":"Inner",
      "inputLabeledDs":["Tensor0-idx0","Tensor1-idx1"],"outputLabeledDs":["Tensor2-idx2"]}]
  }}]
}})json";

Json worked_node(int i, const char* dims, const char* addresses, const Json& mb) {
  Json node = Json::parse(fmt::format(
      R"({{"nodeType_":"allocate","name_":"allocate-Tensor{}_hbm","prev_":"","ldsIdx_":{},"component_":"hbm",
       "isStartAddrSymbolic_":1,"layoutDimOrder_":{},"maxDimSizes_":[-1,-1],
       "indirectAllocType_":"no_indirection",
       "startAddressCoreCorelet_": {{"dim_prop_func":[{{"Map":{{}}}},{{"Const":{{}}}},{{"Const":{{}}}}],
         "dim_prop_attr":[{{"factor_":2,"label_":"core"}},{{"factor_":1,"label_":"corelet"}},{{"factor_":1,"label_":"time"}}],
         "data_":{}}}}})",
      i, i, dims, addresses));
  const Json out = fold({{128, 1}, {0, 1}, {0, 1}, {64, 2}, {1, 64}});
  Json info = Json::object();
  if (std::string(dims).starts_with("[\"out")) info["out"] = out;
  info["mb"] = mb;
  info["out"] = out;
  node["coordinates_"] = {{"coordInfo", info}, {"coreIdToWkSlice_", Json::object()}};
  return node;
}

TEST(Sdsc, WorkedBroadcastAddMatchesFieldByField) {
  Json expected = Json::parse(kWorkedAdd);
  Json& config = expected["0_add"]["dscs_"][0]["add"];
  const Json stage =
      Json::parse(R"({"name_":"core","mb_":2,"out_":128,"symbolicDimInfo_":{},"maxSymbolicVolume_":{},
    "coreletSplit_":{},"rowSplit_":{},"peSfpSplit_":{},"paddingSizes_":{}})");
  config["dataStageParam_"]["0"] = {{"ss_", stage}, {"el_", stage}};
  const Json split_rows = fold({{2, 2}, {0, 1}, {0, 1}, {1, 2}});
  const Json broadcast_rows = fold({{1, 1}, {0, 1}, {0, 1}, {1, 1}});
  config["scheduleTree_"] = Json::array(
      {worked_node(0, R"(["mb","out"])", R"({"[0, 0, 0]":"-1","[1, 0, 0]":"-2"})", split_rows),
       worked_node(1, R"(["out","mb"])", R"({"[0, 0, 0]":"-3","[1, 0, 0]":"-3"})", broadcast_rows),
       worked_node(2, R"(["mb","out"])", R"({"[0, 0, 0]":"-4","[1, 0, 0]":"-5"})", split_rows)});
  const Json written = file_json(corpus_bundle("broadcast_add"), "sdsc_0.json");
  for (const auto& [key, value] : expected["0_add"].items()) EXPECT_EQ(written["0_add"][key], value) << key;
  for (const auto& [key, value] : config.items()) {
    EXPECT_EQ(written["0_add"]["dscs_"][0]["add"][key], value) << key;
  }
  EXPECT_EQ(written, expected);  // order of keys and nothing more than these
}

TEST(Sdsc, PublishedAbsExampleHasTheSameDivision) {
  const Bundle bundle = corpus_bundle("abs");
  const Json config = dsc(bundle);
  EXPECT_EQ(super_dsc(bundle)["coreIdToWkSlice_"].dump(), R"({"0":{"mb":0,"out":0},"1":{"mb":1,"out":0}})");
  EXPECT_EQ(sizes(config), R"({"mb_":4,"out_":64})");
  EXPECT_EQ(coord_info(config, 0, "mb"), fold({{2, 2}, {0, 1}, {0, 1}, {1, 2}}));
  EXPECT_EQ(coord_info(config, 1, "out"), fold({{64, 1}, {0, 1}, {0, 1}, {64, 1}, {1, 64}}));
  const Json symbols = file_json(bundle, "spyreCodeDir/launch_spec.json")["symbols"];
  EXPECT_EQ(symbols[1]["offset"], 256);  // core 1: two rows of one 128-byte stick
}

TEST(Sdsc, MatmulListsOwnDimsAndSplitsAddressesAsWorked) {
  const Kernel kernel = corpus_kernel("matmul");
  const Json config = dsc(write_bundle(kernel).value());
  EXPECT_EQ(sizes(config), R"({"mb_":128,"out_":128,"in_":256})");
  EXPECT_EQ(order(config, 0) + stick(config, 0) + label(config, 0), R"(["mb","in"]["in"][64]INPUT)");
  EXPECT_EQ(order(config, 1) + stick(config, 1) + label(config, 1), R"(["in","out"]["out"][64]KERNEL)");
  EXPECT_EQ(order(config, 2) + stick(config, 2) + label(config, 2), R"(["mb","out"]["out"][64]OUTPUT)");
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(scale(config, i), "[1,1]");
  EXPECT_EQ(config["computeOp_"][0]["exUnit"], "pt");

  const SdscPlan plan = plan_sdsc(std::get<OpSpec>(kernel.body[0]), spyre_card()).value();
  const auto starts = [&](int tensor) {
    std::vector<int64_t> bytes;
    for (int64_t core = 0; core < 4; ++core)
      bytes.push_back(core_offset_bytes(plan, plan.tensors[tensor], core));
    return bytes;
  };
  EXPECT_THAT(starts(0), ElementsAre(0, 32768, 8192, 40960));
  EXPECT_THAT(starts(1), ElementsAre(0, 16384, 0, 16384));
  EXPECT_THAT(starts(2), ElementsAre(0, 0, 8192, 8192));
}

TEST(Sdsc, BatchMissingFromTheLeftOperandIsABroadcast) {
  const Json config = dsc(corpus_bundle("bmm_broadcast"));
  EXPECT_EQ(sizes(config), R"({"x_":2,"mb_":4,"out_":64,"in_":64})");
  EXPECT_EQ(order(config, 0) + scale(config, 0), R"(["mb","in","x"][1,1,-1])");
  EXPECT_EQ(order(config, 1) + scale(config, 1), R"(["in","out","x"][1,1,1])");
  EXPECT_EQ(order(config, 2) + scale(config, 2), R"(["mb","out","x"][1,1,1])");
}

TEST(Sdsc, APositionSelectedInOneOperandIsABatchOfOne) {
  const Json config = dsc(corpus_bundle("matmul_select"));
  EXPECT_EQ(sizes(config), R"({"mb_":8,"out_":64,"in_":64,"x_":1})");
  EXPECT_EQ(order(config, 0) + order(config, 1) + order(config, 2),
            R"(["x","mb","in"]["in","out","x"]["mb","out","x"])");
  EXPECT_EQ(scale(config, 0) + scale(config, 1) + scale(config, 2), "[1,1,1][1,1,1][1,1,1]");
}

TEST(Sdsc, MatvecGetsAColumnDimension) {
  const Json config = dsc(corpus_bundle("matvec"));
  EXPECT_EQ(sizes(config), R"({"out_":4,"in_":64,"mb_":64})");
  EXPECT_EQ(order(config, 1) + stick(config, 1), R"(["in","mb"]["mb"][64])");
  EXPECT_EQ(order(config, 2) + stick(config, 2), R"(["out","mb"]["mb"][64])");
}

TEST(Sdsc, StickSumIsPaddedMaskedAndKeepsOneStickPerRow) {
  const Json config = dsc(corpus_bundle("sum_stick"));
  EXPECT_EQ(sizes(config), R"({"mb_":4,"out_":128})");
  EXPECT_EQ(order(config, 0) + label(config, 0) + scale(config, 0), R"(["mb","out"]OUTPUT[1,1])");
  EXPECT_EQ(order(config, 1) + label(config, 1) + scale(config, 1), R"(["mb","out"]OUTPUT[1,-2])");
  EXPECT_EQ(config["coordinateMasking_"].dump(), R"({"out":[[100,28]]})");
  EXPECT_EQ(config["maskingConstId_"], 0);
  EXPECT_EQ(config["constantInfo_"]["0"]["name_"], "samv-maskvalue");
  EXPECT_EQ(config["computeOp_"][0]["opFuncName"], "sum");
  EXPECT_EQ(config["computeOp_"][0]["inputLabeledDs"].dump(), R"(["Tensor0-idx0","Tensor1-idx1"])");
  EXPECT_EQ(coord_info(config, 1, "out"), fold({{64, 1}, {0, 1}, {0, 1}, {64, 1}, {0, 64}}));
}

TEST(Sdsc, NonStickSumIsRenamedAndListsTheReducedDimLast) {
  const Bundle bundle = corpus_bundle("sum_nonstick");
  const Json config = dsc(bundle);
  EXPECT_EQ(sizes(config), R"({"mb_":128,"out_":4})");
  EXPECT_EQ(config["primaryDsInfo_"]["OUTPUT"]["layoutDimOrder_"].dump(), R"(["out","mb"])");
  EXPECT_EQ(order(config, 0) + stick(config, 0) + scale(config, 0), R"(["out","mb"]["mb"][64][1,1])");
  EXPECT_EQ(order(config, 1) + stick(config, 1) + scale(config, 1), R"(["mb","out"]["mb"][64][-1,1])");
  EXPECT_EQ(file_json(bundle, "sdsc_0.json").begin().key(), "0_sumnonstick");
  EXPECT_EQ(config["maskingConstId_"], -1);
}

TEST(Sdsc, SplitReductionSharesTheOutputAddress) {
  const Json config = dsc(corpus_bundle("mean_split"));
  EXPECT_EQ(config["scheduleTree_"][0]["startAddressCoreCorelet_"]["data_"].dump(),
            R"({"[0, 0, 0]":"-1","[1, 0, 0]":"-2"})");
  EXPECT_EQ(config["scheduleTree_"][1]["startAddressCoreCorelet_"]["data_"].dump(),
            R"({"[0, 0, 0]":"-3","[1, 0, 0]":"-3"})");
  // 1/256 = 2^-8: exponent field 31 - 8 = 23, fraction 0.
  EXPECT_EQ(config["constantInfo_"]["0"]["data_"]["data_"]["[0, 0, 0]"][0], std::to_string(23 << 9));
}

TEST(Sdsc, RestickifyHasTwoLayouts) {
  const Json config = dsc(corpus_bundle("restickify"));
  EXPECT_EQ(sizes(config), R"({"mb_":128,"out_":192})");
  EXPECT_EQ(order(config, 0) + stick(config, 0) + label(config, 0), R"(["mb","out"]["out"][64]OUTPUT)");
  EXPECT_EQ(order(config, 1) + stick(config, 1) + label(config, 1), R"(["out","mb"]["mb"][64]KERNEL)");
  EXPECT_EQ(scale(config, 0) + scale(config, 1), "[1,1][1,1]");
  EXPECT_FALSE(config["scheduleTree_"][0].contains("backGapCore_"));
}

TEST(Sdsc, RestickifyShortfallIsToldApartFromAGap) {
  const Json config = dsc(corpus_bundle("restickify_short"));
  EXPECT_EQ(sizes(config), R"({"mb_":64,"out_":128})");
  const Json& in = config["scheduleTree_"][0];
  EXPECT_EQ(in["backGapCore_"].dump(), R"({"mb":{"-1":"60"}})");  // four rows of 64
  EXPECT_EQ(in["spyreShortfallCore_"], in["backGapCore_"]);
  EXPECT_EQ(config["scheduleTree_"][1]["spyreShortfallCore_"].dump(), R"({"out":{"-1":"28"}})");
}

TEST(Sdsc, ScalarIsBroadcastEverywhere) {
  const Json config = dsc(corpus_bundle("where_scalar"));
  EXPECT_EQ(order(config, 2) + stick(config, 2) + scale(config, 2), R"(["mb","out"]["out"][64][-1,-2])");
}

TEST(Sdsc, ConstantsAreBitPatternsInInsertionOrder) {
  const Json constants = dsc(corpus_bundle("clamp"))["constantInfo_"];
  EXPECT_EQ(constants["0"]["name_"], "clipMin");
  EXPECT_EQ(constants["1"]["name_"], "clipMax");
  EXPECT_EQ(constants["1"]["dataFormat_"], "SEN169_FP16");
  // 6 = 1.5 * 2^2: exponent field 33, fraction 256.
  EXPECT_EQ(
      constants["1"]["data_"].dump(),
      fmt::format(R"({{"dim_prop_func":[{{"Const":{{}}}},{{"Const":{{}}}},{{"Map":{{}}}}],)"
                  R"("dim_prop_attr":[{{"factor_":1,"label_":"core"}},{{"factor_":1,"label_":"corelet"}},)"
                  R"({{"factor_":1,"label_":"time"}}],"data_":{{"[0, 0, 0]":["{}"]}}}})",
                  (33 << 9) + 256));
}

TEST(Constants, FollowTheCardsFloat) {
  const auto bits = [](double v) { return encode_constant(v, DataFormat::SEN169_FP16).value(); };
  EXPECT_EQ(bits(1.0), 0x3E00u);
  EXPECT_EQ(bits(-1.0), 0xBE00u);
  EXPECT_EQ(bits(0.5), 0x3C00u);
  EXPECT_EQ(bits(1.5), 0x3F00u);
  EXPECT_EQ(bits(100.0), 0x4B20u);
  EXPECT_EQ(bits(0.0), 0u);
  EXPECT_EQ(bits(65504.0), 0x5DFFu);       // finfo(float16).max stays within fp16
  EXPECT_EQ(bits(INFINITY), 0x7FFEu);      // the largest finite value: infinity has no code
  EXPECT_EQ(bits(8573157376.0), 0x7FFEu);  // the largest finite value
  EXPECT_EQ(bits(1e11), 0x7FFEu);          // beyond it as well
  EXPECT_EQ(bits(NAN), 0x7FFFu);
  EXPECT_EQ(bits(4.665707820095122e-10), 0x0001u);  // the smallest positive value, an ordinary number here
  EXPECT_EQ(bits(1e-12), 0u);
  EXPECT_EQ(encode_constant(1.0, DataFormat::IEEE_FP32).value(), 0x3F800000u);
  EXPECT_FALSE(encode_constant(1.0, DataFormat::SENINT8).ok());
}

TEST(Sdsc, SoftmaxMasksPaddingWithTheIdentityOfEachOp) {
  const Bundle bundle = corpus_bundle("softmax");
  const auto mask = [&](int n) {
    const Json config = dsc(bundle, n);
    if (config["maskingConstId_"] == -1) return std::string("none");
    const Json& constant = config["constantInfo_"][std::to_string(config["maskingConstId_"].get<int>())];
    return constant["data_"]["data_"]["[0, 0, 0]"][0].get<std::string>();
  };
  EXPECT_EQ(mask(0), std::to_string(0x8000 | 0x7FFE));  // max: the least finite value
  EXPECT_EQ(mask(1), "none");                           // sub
  EXPECT_EQ(mask(2), std::to_string(encode_constant(-10000, DataFormat::SEN169_FP16).value()));
  EXPECT_EQ(mask(3), "0");     // sum
  EXPECT_EQ(mask(4), "none");  // realdiv
}

TEST(Sdsc, LxTensorsHaveOneAddressAndNoSymbol) {
  const Json config = dsc(corpus_bundle("softmax"), 2);
  const Json& node = config["scheduleTree_"][0];
  EXPECT_EQ(node["name_"], "allocate-Tensor0_lx");
  EXPECT_EQ(node["component_"], "lx");
  EXPECT_FALSE(node.contains("isStartAddrSymbolic_"));
  EXPECT_EQ(node["startAddressCoreCorelet_"]["data_"].dump(), R"({"[0, 0, 0]":"0","[1, 0, 0]":"0"})");
  EXPECT_EQ(config["labeledDs_"][0]["memOrg_"].dump(), R"({"lx":{"isPresent":1}})");
}

TEST(Sdsc, SlicesMoveTheStartAndLeaveAGap) {
  const Bundle bundle = corpus_bundle("slice");
  const Json node = dsc(bundle)["scheduleTree_"][0];
  EXPECT_EQ(node["backGapCore_"].dump(), R"({"mb":{"-1":"4"},"out":{"-1":"128"}})");
  // Base -1 is numbered but never used; tile 1 (6 rows) and row 2: (6 + 2) sticks of 128 bytes.
  EXPECT_EQ(node["startAddressCoreCorelet_"]["data_"].dump(), R"({"[0, 0, 0]":"-2","[1, 0, 0]":"-3"})");
  const Json symbols = file_json(bundle, "spyreCodeDir/launch_spec.json")["symbols"];
  EXPECT_EQ(symbols[1].dump(), R"({"id":-2,"kind":"kernel_slice","arg_index":0,"offset":1024})");
  EXPECT_EQ(symbols[2].dump(), R"({"id":-3,"kind":"kernel_derived","arg_index":0,"offset":1152})");
}

TEST(Sdsc, SlicesInLxCountFromTheCoresOwnCopy) {
  Kernel kernel = corpus_kernel("slice");
  OpSpec& op = std::get<OpSpec>(kernel.body[0]);
  op.iteration_space[0].split = 1;
  op.core_id_to_work_slice[0].second = Expr();
  op.args[0].allocation = {Place::kLx, 4096};
  const Json node = dsc(write_bundle(kernel).value())["scheduleTree_"][0];
  EXPECT_EQ(node["startAddressCoreCorelet_"]["data_"].dump(), R"({"[0, 0, 0]":"5120"})");  // 4096 + 8 sticks
  EXPECT_EQ(node["backGapCore_"].dump(), R"({"mb":{"0":"4"},"out":{"0":"128"}})");
}

TEST(Sdsc, ASelectedInnermostPositionBecomesADimensionOfOne) {
  const Json config = dsc(corpus_bundle("select"));
  EXPECT_EQ(sizes(config), R"({"mb_":3,"out_":64,"y_":1})");
  EXPECT_EQ(order(config, 0), R"(["y","out","mb"])");
  EXPECT_EQ(config["scheduleTree_"][0]["backGapCore_"].dump(), R"({"y":{"-1":"3"}})");
  EXPECT_EQ(order(config, 1) + scale(config, 1), R"(["mb","out","y"][1,1,1])");
}

TEST(Sdsc, LayernormScaleGetsASyntheticStick) {
  const Bundle bundle = corpus_bundle("layernorm");
  const Json config = dsc(bundle, 1);
  EXPECT_EQ(sizes(config), R"({"out_":4,"x_":64})");
  EXPECT_EQ(order(config, 0) + stick(config, 0) + scale(config, 0), R"(["out","x"]["x"][64][1,-2])");
  EXPECT_EQ(order(config, 1) + stick(config, 1) + scale(config, 1), R"(["out","x"]["x"][64][1,1])");
  EXPECT_EQ(scale(dsc(bundle, 0), 1), "[1,-2]");
  EXPECT_EQ(dsc(bundle, 2)["labeledDs_"].size(), 6u);
}

TEST(Sdsc, ConversionsKeepARowAndTwoSticks) {
  const Json config = dsc(corpus_bundle("widen_narrow"));
  EXPECT_EQ(sizes(config), R"({"mb_":1,"out_":64})");
  EXPECT_EQ(order(config, 0) + stick(config, 0) + label(config, 0), R"(["mb","out"]["out"][64]OUTPUT)");
  EXPECT_EQ(order(config, 1) + stick(config, 1) + label(config, 1), R"(["mb","out"]["out"][32]KERNEL)");
  EXPECT_EQ(config["labeledDs_"][1]["wordLength"], 4);
}

TEST(Sdsc, Fp8MatmulStatesItsSticks) {
  const Json config = dsc(corpus_bundle("fp8_matmul"), 2);
  EXPECT_EQ(stick(config, 0), R"(["in"][128])");
  EXPECT_EQ(stick(config, 1), R"(["in","out"][2,64])");
  EXPECT_EQ(stick(config, 2), R"(["out"][64])");
  EXPECT_EQ(coord_info(config, 0, "in"), fold({{128, 1}, {0, 1}, {0, 1}, {128, 1}, {8, 8}, {64, 2}, {1, 8}}));
  EXPECT_EQ(config["labeledDs_"][0]["wordLength"], 1);
  EXPECT_EQ(config["computeOp_"][0]["attributes_"]["dataFormat_"], "SEN143_FP8");
}

TEST(Sdsc, GatherMarksIndexAndValue) {
  const Json config = dsc(corpus_bundle("gather"));
  const Json& index = config["scheduleTree_"][0];
  EXPECT_EQ(index["indirectAllocType_"], "index_tensor");
  EXPECT_EQ(index["indexTensorType_"], "index");
  EXPECT_EQ(index["relatedIndirectAccessAlloc_"], "allocate-Tensor1_hbm");
  EXPECT_EQ(label(config, 0) + scale(config, 0), "KERNEL_IDX[1]");
  EXPECT_EQ(config["labeledDs_"][0]["memOrg_"].dump(), R"({"hbm":{"isPresent":1}})");
  const Json& value = config["scheduleTree_"][1];
  EXPECT_EQ(value["indirectAllocType_"], "value_tensor");
  EXPECT_EQ(value["maxDimSizes_"].dump(), "[1,-1]");
  EXPECT_EQ(value["backGapCore_"].dump(), R"({"mb":{"-1":"6"}})");  // ten rows, four picks
  EXPECT_EQ(value["startAddressCoreCorelet_"]["data_"].dump(), R"({"[0, 0, 0]":"-3","[1, 0, 0]":"-3"})");
  EXPECT_EQ(label(config, 1) + label(config, 2), "OUTPUTOUTPUT");
  const Json& compute = config["computeOp_"][0];
  EXPECT_EQ(compute["inputLabeledDs"].dump(), R"(["Tensor1-idx1"])");
  EXPECT_EQ(compute["indirectAccessIndexLabeledDs"].dump(), R"(["Tensor0-idx0"])");
  EXPECT_EQ(compute["attributes_"]["dataFormat_"], "SEN169_FP16");
}

TEST(Sdsc, AGridOfIndicesRunsOverTheTableWithoutMovingInIt) {
  const Json value = dsc(corpus_bundle("gather_grid"))["scheduleTree_"][1];
  EXPECT_EQ(value["layoutDimOrder_"].dump(), R"(["x","out","mb"])");
  EXPECT_EQ(value["maxDimSizes_"].dump(), "[1,-1,2]");
  EXPECT_EQ(value["backGapCore_"].dump(), R"({"x":{"-1":"2"}})");  // five rows, three picks a line
}

TEST(Sdsc, ScatterPutsTheIndirectionInTheOutput) {
  const Json config = dsc(corpus_bundle("scatter"));
  EXPECT_EQ(config["scheduleTree_"][1]["indirectAllocType_"], "no_indirection");
  EXPECT_EQ(config["scheduleTree_"][2]["indirectAllocType_"], "value_tensor");
  EXPECT_EQ(config["scheduleTree_"][0]["relatedIndirectAccessAlloc_"], "allocate-Tensor2_hbm");
}

TEST(Sdsc, TopkListsOneInputAndOwnDims) {
  const Json config = dsc(corpus_bundle("topk"));
  EXPECT_EQ(sizes(config), R"({"mb_":4,"x_":64,"out_":10})");
  EXPECT_EQ(order(config, 0) + order(config, 1), R"(["out","x"]["mb","x"])");
  EXPECT_EQ(config["computeOp_"][0]["inputLabeledDs"].dump(), R"(["Tensor0-idx0"])");
  EXPECT_EQ(config["computeOp_"][0]["opFuncName"], "topkvalue");
}

TEST(Sdsc, TopOneGetsARankDimension) {
  OpSpec op = std::get<OpSpec>(corpus_kernel("topk").body[0]);
  op.iteration_space.erase(op.iteration_space.begin());
  op.core_id_to_work_slice.erase(op.core_id_to_work_slice.begin());
  op.args[1].device_coordinates[1] = Expr();
  op.args[1].device_size[1] = 1;
  const SdscPlan plan = plan_sdsc(op, spyre_card()).value();
  EXPECT_EQ(plan.dims.back().label, "y");
  EXPECT_EQ(plan.output().dims.front().dim, 2);
}

TEST(Sdsc, PoolStatesItsWindows) {
  const Json config = dsc(corpus_bundle("avgpool"));
  EXPECT_EQ(sizes(config), R"({"i_":2,"j_":2,"out_":64,"ki_":2,"kj_":2})");
  EXPECT_EQ(config["N_"]["paddingSizes_"]["i"].dump(),
            R"({"padFront_":0,"padBack_":0,"totalSize_":4,"stride_":2,"dilation_":1,"windowDim_":"ki"})");
  EXPECT_EQ(order(config, 0) + scale(config, 0), R"(["j","i","out"][1,1,1])");
  EXPECT_EQ(config["scheduleTree_"][0]["padding_"].dump(),
            R"({"j":"padded_fullspan_wunneeded","i":"padded_fullspan_wunneeded"})");
  EXPECT_EQ(config["pdsRelation_"].dump(), R"({"isPdsReuse":1})");
  EXPECT_EQ(config["primaryDsInfo_"]["OUTPUT"]["stickRepl_"].dump(), "[1]");
  EXPECT_EQ(coord_info(config, 0, "i"), fold({{4, 1}, {0, 1}, {0, 1}, {1, 4}}));
}

TEST(Sdsc, ConvKeepsWindowDimsInTheKernelOnly) {
  const Json config = dsc(corpus_bundle("conv2d"));
  EXPECT_EQ(order(config, 0) + label(config, 0), R"(["j","i","mb","in"]INPUT)");
  EXPECT_EQ(order(config, 1) + label(config, 1), R"(["in","ki","kj","out"]KERNEL)");
  EXPECT_EQ(order(config, 2) + label(config, 2), R"(["j","i","mb","out"]OUTPUT)");
  EXPECT_EQ(config["computeOp_"][0]["exUnit"], "pt");
}

TEST(Sdsc, DepthwiseCountsThePaddingItReaches) {
  const Json config = dsc(corpus_bundle("depthwise"));
  const Json& window = config["N_"]["paddingSizes_"]["j"];
  EXPECT_EQ(window["padFront_"], 1);
  EXPECT_EQ(window["padBack_"], 1);
  EXPECT_EQ(window["totalSize_"], 6);
  EXPECT_TRUE(window.contains("unneededPad_"));
  EXPECT_EQ(config["scheduleTree_"][0]["padding_"]["i"], "padded_nozeropad");
  EXPECT_EQ(config["computeOp_"][0]["inputLabeledDs"].size(), 3u);
  EXPECT_EQ(label(config, 0) + label(config, 1), "OUTPUTINPUT");
}

TEST(Sdsc, ShuffleSaysWhichSliceEachCoreHolds) {
  const Json config = dsc(corpus_bundle("shuffle"), 1);
  const auto slices = [&](size_t i) {
    return config["scheduleTree_"][i]["coordinates_"]["coreIdToWkSlice_"].dump();
  };
  EXPECT_EQ(slices(0), R"({"0":{"mb":0,"out":0},"1":{"mb":1,"out":0}})");
  EXPECT_EQ(slices(1), R"({"0":{"mb":0,"out":0},"1":{"mb":0,"out":1}})");
  EXPECT_EQ(coord_info(config, 0, "mb"), fold({{2, 2}, {0, 1}, {0, 1}, {1, 2}}));
}

TEST(Sdsc, DynamicExtentsAreSymbolsWithBounds) {
  const Bundle bundle = corpus_bundle("dynamic");
  const Json outer = super_dsc(bundle);
  EXPECT_EQ(outer["inputSymbolsAndTags_"].dump(), R"({"-1":"s0"})");
  const Json config = dsc(bundle);
  EXPECT_EQ(config["dimToSymbolMapping_"].dump(), R"({"mb":[-1]})");
  EXPECT_EQ(config["dataStageParam_"]["0"]["ss_"]["symbolicDimInfo_"].dump(),
            R"({"mb":{"maxSize_":8,"granularity_":2}})");
}

TEST(Sdsc, CopiedIntegersTravelUnderTheFloatName) {
  OpSpec op = std::get<OpSpec>(corpus_kernel("add_int32").body[0]);
  op.op = OpId::identity;
  op.args.erase(op.args.begin());
  Kernel kernel = corpus_kernel("add_int32");
  kernel.body = {op};
  const Json config = dsc(write_bundle(kernel).value());
  EXPECT_EQ(config["labeledDs_"][0]["dataFormat_"], "IEEE_FP32");
  EXPECT_EQ(dsc(corpus_bundle("add_int32"))["labeledDs_"][0]["dataFormat_"], "IEEE_INT32");
}

}  // namespace
}  // namespace spyre::superdsc
