#include "spyre/codegen/superdsc/bundle.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "spyre/base/json.h"
#include "spyre/codegen/superdsc/corpus_for_test.h"

namespace spyre::superdsc {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

std::string mlir(const std::string& name, const BundleOptions& options = {}) {
  return write_bundle(corpus_kernel(name), options).value().files.at("bundle.mlir");
}

TEST(Bundle, BroadcastAddReadsAsWorked) {
  EXPECT_EQ(mlir("broadcast_add"), R"(module {
  func.func @sdsc_bundle(%arg_0_base_addr: !sdscbundle.input_arg<index>, %arg_1_base_addr: !sdscbundle.input_arg<index>, %arg_2_base_addr: !sdscbundle.input_arg<index>) {
    %arg_0 = sdscbundle.input_arg_extract value from %arg_0_base_addr : !sdscbundle.input_arg<index> -> index
    %arg_1 = sdscbundle.input_arg_extract value from %arg_1_base_addr : !sdscbundle.input_arg<index> -> index
    %arg_2 = sdscbundle.input_arg_extract value from %arg_2_base_addr : !sdscbundle.input_arg<index> -> index
    %arg_0_core_offset_256 = arith.constant 256 : index
    %arg_0_core_256 = arith.addi %arg_0, %arg_0_core_offset_256 : index
    %arg_2_core_offset_256 = arith.constant 256 : index
    %arg_2_core_256 = arith.addi %arg_2, %arg_2_core_offset_256 : index
    sdscbundle.sdsc_execute (%arg_0, %arg_0_core_256, %arg_1, %arg_2, %arg_2_core_256) {sdsc_filename="sdsc_0.json", "symbol_ids"=[-1, -2, -3, -4, -5]}
    return
  }
}
)");
}

TEST(Bundle, LoopsStayLoopsAndMoveOnlyWhatAdvances) {
  const std::string text = mlir("loop");
  // Two rows of 64 fp16 a trip are 256 bytes; core 1 starts one row in.
  EXPECT_THAT(text, HasSubstr("#map_0 = affine_map<(d0)[s0] -> (s0 + 256*d0)>\n"));
  EXPECT_THAT(text, HasSubstr("    %c0 = arith.constant 0 : index\n    %c1 = arith.constant 1 : index\n"));
  EXPECT_THAT(text, HasSubstr("%loop_bound_0 = arith.constant 4 : index\n"));
  EXPECT_THAT(text, HasSubstr(R"(    scf.for %i_0 = %c0 to %loop_bound_0 step %c1 {
      %addr_0 = affine.apply #map_0(%i_0)[%arg_0]
      %addr_1 = affine.apply #map_0(%i_0)[%arg_0_core_128]
      %addr_2 = affine.apply #map_0(%i_0)[%arg_2]
      %addr_3 = affine.apply #map_0(%i_0)[%arg_2_core_128]
      sdscbundle.sdsc_execute (%addr_0, %addr_1, %arg_1, %addr_2, %addr_3) {sdsc_filename="sdsc_0.json", "symbol_ids"=[-1, -2, -3, -4, -5]}
    }
)"));
}

TEST(Bundle, NestedLoopsUseOneMapOverBothVariables) {
  const std::string text = mlir("nested_loop");
  EXPECT_THAT(text, HasSubstr("#map_0 = affine_map<(d0, d1)[s0] -> (s0 + 128*d0 + 512*d1)>\n"));
  EXPECT_THAT(text, Not(HasSubstr("#map_1")));
  EXPECT_THAT(text, HasSubstr("affine.apply #map_0(%i_0, %i_1)[%arg_1]"));
}

TEST(Bundle, RuntimeTripCountsStepThroughElements) {
  const std::string text = mlir("dynamic_loop");
  EXPECT_THAT(text, HasSubstr("%dim_s0_base: !sdscbundle.input_arg<index, granularity=2, max_value=8>) {"));
  EXPECT_THAT(text, HasSubstr("scf.for %i_0 = %c0 to %dim_s0 step %step_0 {"));
  // 256 bytes a trip of two rows, so 128 a row.
  EXPECT_THAT(text, HasSubstr("(s0 + 128*d0)"));
}

TEST(Bundle, RuntimeExtentsAreBoundFirst) {
  const std::string text = mlir("dynamic");
  EXPECT_THAT(text, HasSubstr("%sym_0_0_base: !sdscbundle.input_arg<index, granularity=4, max_value=16>"));
  // Core 1 starts half the extent in: 128 bytes a row over two cores are 64 a unit of the extent.
  EXPECT_THAT(text, HasSubstr("#map_0 = affine_map<(d0)[s0] -> (s0 + 64*d0)>"));
  EXPECT_THAT(text, HasSubstr(R"(    %addr_0 = affine.apply #map_0(%sym_0_0)[%arg_0]
    %addr_1 = affine.apply #map_0(%sym_0_0)[%arg_1]
    sdscbundle.sdsc_execute (%sym_0_0, %arg_0, %addr_0, %arg_1, %addr_1) {sdsc_filename="sdsc_0.json", "symbol_ids"=[-1, -2, -3, -4, -5]}
)"));
  const Json symbols = file_json(corpus_bundle("dynamic"), "spyreCodeDir/launch_spec.json")["symbols"];
  EXPECT_EQ(symbols[2].dump(),
            R"({"id":-3,"kind":"kernel_derived_symbolic","arg_index":0,"offset":0,"per_extent":{"s0":64}})");
}

TEST(Bundle, PoolIsAllocatedOrPassed) {
  EXPECT_THAT(mlir("softmax"), HasSubstr("    %pool = sdscbundle.device_mem_allocate 512 bytes : index\n"));
  const std::string passed = mlir("softmax", {.frontend_pool_allocation = true});
  EXPECT_THAT(passed,
              HasSubstr("@sdsc_bundle(%pool_base_addr: !sdscbundle.input_arg<index>, %arg_0_base_addr"));
  EXPECT_THAT(passed, HasSubstr("%pool = sdscbundle.input_arg_extract value from %pool_base_addr"));
  EXPECT_THAT(passed, Not(HasSubstr("device_mem_allocate")));
  EXPECT_THAT(passed, HasSubstr("%pool_addr_256 = arith.addi %pool, %pool_offset_256 : index"));
}

TEST(Bundle, EqualOpsShareOneFileAndRebindItsSymbols) {
  const Bundle shared = corpus_bundle("repeated");
  EXPECT_FALSE(shared.files.contains("sdsc_1.json"));
  const std::string& text = shared.files.at("bundle.mlir");
  EXPECT_THAT(text,
              HasSubstr("(%arg_0, %pool_addr_0) {sdsc_filename=\"sdsc_0.json\", \"symbol_ids\"=[-1, -2]}"));
  EXPECT_THAT(
      text,
      HasSubstr("(%pool_addr_0, %pool_addr_512) {sdsc_filename=\"sdsc_0.json\", \"symbol_ids\"=[-1, -2]}"));
  EXPECT_THAT(text,
              HasSubstr("(%pool_addr_512, %arg_1) {sdsc_filename=\"sdsc_0.json\", \"symbol_ids\"=[-1, -2]}"));

  const Bundle apart = write_bundle(corpus_kernel("repeated"), {.share_equal_sdscs = false}).value();
  EXPECT_TRUE(apart.files.contains("sdsc_2.json"));
  EXPECT_THAT(apart.files.at("bundle.mlir"),
              HasSubstr("{sdsc_filename=\"sdsc_2.json\", \"symbol_ids\"=[-5, -6]}"));
}

TEST(Bundle, ProvenanceIsWrittenButDoesNotKeepOpsApart) {
  const Json handle = super_dsc(corpus_bundle("repeated"))["debug_handle_"];
  EXPECT_EQ(handle["id"], "7");
  EXPECT_EQ(handle["source"]["file"], "model.py");
}

TEST(Bundle, ProvenanceOfAnyBytesIsWrittenAsText) {
  Kernel kernel = corpus_kernel("repeated");
  std::get<OpSpec>(kernel.body[0]).debug_handle->file = "mo\xFF\xFE.py";
  const auto bundle = write_bundle(kernel);
  ASSERT_TRUE(bundle.ok());
  EXPECT_THAT(bundle.value().files.at("sdsc_0.json"), HasSubstr("\"mo\xEF\xBF\xBD\xEF\xBF\xBD.py\""));
}

TEST(Bundle, SymbolsAreNumberedOverTheWholeBundle) {
  const std::string text = mlir("softmax");
  EXPECT_THAT(text, HasSubstr("\"sdsc_1.json\", \"symbol_ids\"=[-5, -6, -7, -8]"));
  EXPECT_THAT(text, HasSubstr("() {sdsc_filename=\"sdsc_2.json\", \"symbol_ids\"=[]}"));
  EXPECT_THAT(text, HasSubstr("\"sdsc_4.json\", \"symbol_ids\"=[-9, -10]"));
}

TEST(Bundle, SameKernelGivesSameBytes) {
  for (const std::string& name : corpus_names()) EXPECT_EQ(corpus_bundle(name), corpus_bundle(name)) << name;
}

TEST(Bundle, LaunchSpecSaysWhatTheCallerPasses) {
  const Json spec = file_json(corpus_bundle("dynamic"), "spyreCodeDir/launch_spec.json");
  EXPECT_EQ(spec["version"], 1);
  EXPECT_EQ(spec["kernel_name"], "dynamic");
  EXPECT_EQ(spec["pool_size"], 0);
  EXPECT_EQ(spec["bundle_symbolic_args"], true);
  EXPECT_EQ(
      spec["args"][0].dump(),
      R"({"arg_index":0,"role":"input","shape":["s0",64],"dtype":"float16","layout":{"device_size":[1,16,64],)"
      R"("stride_map":[64,64,1],"device_dtype":"SEN169_FP16","element_arrangement":"STANDARD"}})");
  const Bundle passed = write_bundle(corpus_kernel("softmax"), {.frontend_pool_allocation = true}).value();
  EXPECT_EQ(file_json(passed, "spyreCodeDir/launch_spec.json")["pool_size"], 512);
}

TEST(Bundle, SymbolKindsFollowTheSignature) {
  const Bundle passed = write_bundle(corpus_kernel("softmax"), {.frontend_pool_allocation = true}).value();
  EXPECT_EQ(file_json(passed, "symbol_kinds.json").dump(),
            R"([{"kind":"pool"},{"kind":"kernel","arg_index":0},{"kind":"kernel","arg_index":1}])");
  EXPECT_EQ(
      file_json(corpus_bundle("dynamic_loop"), "symbol_kinds.json")[2].dump(),
      R"({"kind":"loop_dimension","arg_index":0,"dim_index":0,"symbol":"s0","granularity":2,"max_value":8})");
}

// ---- the program image, read back with nothing but its description ----

uint64_t number_at(const std::string& bytes, size_t at, int size) {
  uint64_t value = 0;
  for (int i = size; i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
  return value;
}

TEST(SpyreCode, PlanLoadsTheImageAndCorrectsItsParameters) {
  const Bundle bundle = corpus_bundle("broadcast_add");
  const std::string& image = bundle.files.at("spyreCodeDir/init_binary.bin");
  const Json code = file_json(bundle, "spyreCodeDir/spyrecode.json");
  const Json& prepare = code["JobPreparationPlan"];
  EXPECT_EQ(prepare[0]["command"], "Allocate");
  EXPECT_EQ(prepare[0]["properties"]["size"], std::to_string(image.size()));
  EXPECT_EQ(prepare[1]["command"], "InitTransfer");
  EXPECT_EQ(prepare[1]["properties"]["dev_ptr"], "120259084288");
  const Json& run = code["JobExecPlan"];
  ASSERT_EQ(run.size(), 3u);
  EXPECT_EQ(run[0]["command"], "ComputeOnHost");
  EXPECT_EQ(run[0]["properties"]["size"], "128");  // three parameters, one stick
  EXPECT_EQ(run[0]["properties"]["hcm"]["vdci"]["parameters"].size(), 3u);
  EXPECT_EQ(run[1]["properties"]["dirn"], "false");
  EXPECT_EQ(run[1]["properties"]["host_handle"], run[0]["properties"]["ohandle"]);
  EXPECT_EQ(run[2]["properties"]["job_bin_ptr"], std::to_string(120259084288 + 128));
  EXPECT_EQ(image.size() % 128, 0u);
}

TEST(SpyreCode, ImageHoldsTheBundleText) {
  const Bundle bundle = corpus_bundle("softmax");
  const std::string program = bundle.files.at("spyreCodeDir/init_binary.bin").substr(128);
  EXPECT_EQ(program.substr(0, 8), "SPYREIMG");
  EXPECT_EQ(number_at(program, 8, 4), 1u);   // version
  EXPECT_EQ(number_at(program, 16, 4), 2u);  // parameters
  EXPECT_EQ(number_at(program, 24, 8), program.size());
  const uint64_t files = number_at(program, 12, 4);
  EXPECT_EQ(files, 7u);  // bundle.mlir, five sdscs, launch_spec.json
  size_t at = 32;
  for (uint64_t i = 0; i < files; ++i) {
    const uint64_t offset = number_at(program, at, 8);
    const uint64_t size = number_at(program, at + 8, 8);
    const std::string name = program.substr(at + 20, number_at(program, at + 16, 4));
    at += 20 + name.size();
    const std::string path = name == "launch_spec.json" ? "spyreCodeDir/" + name : name;
    EXPECT_EQ(program.substr(offset, size), bundle.files.at(path)) << name;
    EXPECT_EQ(offset % 128, 0u);
  }
}

TEST(SpyreCode, AKernelCutInTwoIsOneJobOfTwoPrograms) {
  const Kernel kernel = corpus_kernel("softmax");  // five ops
  const Bundle bundle =
      write_bundle(kernel, {.parts = {{.items = 2, .non_terminal = true}, {.items = 3}}}).value();
  const Json run = file_json(bundle, "spyreCodeDir/spyrecode.json")["JobExecPlan"];
  ASSERT_EQ(run.size(), 6u);
  EXPECT_EQ(run[2]["properties"]["non_terminal"], "true");
  EXPECT_FALSE(run[5]["properties"].contains("non_terminal"));
  const std::string& region = bundle.files.at("spyreCodeDir/init_binary.bin");
  for (const int compute : {2, 5}) {
    const int64_t at =
        std::stoll(run[compute]["properties"]["job_bin_ptr"].get<std::string>()) - 120259084288;
    EXPECT_EQ(region.substr(static_cast<size_t>(at), 8), "SPYREIMG") << compute;
  }
  // Both find what crosses in the caller's pool, whichever of them uses it.
  EXPECT_EQ(file_json(bundle, "bundle_0/symbol_kinds.json").dump(),
            R"([{"kind":"pool"},{"kind":"kernel","arg_index":0}])");
  EXPECT_EQ(file_json(bundle, "bundle_1/symbol_kinds.json").dump(),
            R"([{"kind":"pool"},{"kind":"kernel","arg_index":1}])");
  const Json launch = file_json(bundle, "spyreCodeDir/launch_spec.json");
  EXPECT_EQ(launch["pool_size"], kernel.pool_bytes);
  EXPECT_FALSE(launch.contains("symbols"));
  EXPECT_TRUE(file_json(bundle, "bundle_0/launch_spec.json").contains("symbols"));
  EXPECT_TRUE(bundle.files.contains("bundle_0/sdsc_1.json") && bundle.files.contains("bundle_1/bundle.mlir"));
  EXPECT_FALSE(bundle.files.contains("bundle.mlir"));
}

}  // namespace
}  // namespace spyre::superdsc
