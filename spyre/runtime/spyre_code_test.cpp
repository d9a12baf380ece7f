#include "spyre/runtime/spyre_code.h"

#include <gmock/gmock.h>

#include "spyre/base/json.h"
#include "spyre/runtime/test_support.h"

namespace spyre {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

/// Every command of docs/reference/transfers.md#job-plans, with published addresses.
Json published_plan() {
  return parse_json(R"({"JobPreparationPlan": [
     {"command":"Allocate","properties":{"size":"51200"}},
     {"command":"InitTransfer","properties":{"init_bin_file":"init_binary.bin","dev_ptr":"120259084288","size":"32768"}}],
   "JobExecPlan": [
     {"command":"ComputeOnHost","properties":{"ihandle":"","ishape":["0"],"ohandle":"correction0","size":"2048",
                                               "hcm":{"vdci":{},"senConstants":[]}}},
     {"command":"DataTransfer","properties":{"dirn":"false","host_handle":"correction0","dev_ptr":"120259084288","size":"2048"}},
     {"command":"ComputeOnDevice","properties":{"job_bin_ptr":"120259086336"}}]})",
                    "published")
      .value();
}

Result<SpyreCode> read(const Json& plan) {
  return read_spyre_code(plan, "spyrecode.json", spyre_card());
}

std::string error_of(const Json& plan) {
  const auto code = read(plan);
  return code.ok() ? "read without error" : code.error().message;
}

/// The published plan with one value changed; null removes it.
std::string error_with(const std::string& pointer, const Json& value) {
  Json plan = published_plan();
  const Json::json_pointer at(pointer);
  if (value.is_null()) {
    Json& parent = plan[at.parent_pointer()];
    parent.is_array() ? parent.erase(std::stoul(at.back())) : static_cast<void>(parent.erase(at.back()));
  } else {
    plan[at] = value;
  }
  return error_of(plan);
}

TEST(SpyreCode, ThePublishedPlanIsACorrectionTriple) {
  const auto code = read(published_plan());
  ASSERT_TRUE(code.ok()) << code.error().to_string();
  EXPECT_EQ(code.value().allocation, Bytes(51200));
  ASSERT_EQ(code.value().init.size(), 1u);
  EXPECT_EQ(code.value().init[0].file, "init_binary.bin");
  EXPECT_EQ(code.value().init[0].offset, Bytes(0));
  EXPECT_EQ(code.value().init[0].size, Bytes(32768));
  const auto& steps = code.value().steps;
  ASSERT_EQ(steps.size(), 3u);
  EXPECT_EQ(steps[0].type(), "HostCompute");
  EXPECT_EQ(steps[1].type(), "H2D");
  EXPECT_EQ(steps[2].type(), "Compute");
  EXPECT_EQ(steps[0].role(), StepRole::kPrep);
  EXPECT_EQ(steps[1].role(), StepRole::kPrep);
  EXPECT_EQ(steps[2].role(), StepRole::kDev);
  for (const JobStep& step : steps) {
    EXPECT_TRUE(step.pipeline_barrier);
  }
  EXPECT_EQ(std::get<Compute>(steps[2].what).entry, Bytes(2048));
  EXPECT_EQ(std::get<Transfer>(steps[1].what).size, Bytes(2048));
  EXPECT_EQ(code.value().buffers, std::vector<Bytes>{Bytes(2048)});
}

TEST(SpyreCode, OnlyAProgramWithASuccessorIsNonTerminal) {
  const std::string mark = "/JobExecPlan/2/properties/non_terminal";
  EXPECT_THAT(error_with(mark, "true"), HasSubstr("non_terminal at the last ComputeOnDevice"));
  EXPECT_THAT(error_with(mark, "false"), HasSubstr("non_terminal: found \"false\", allowed: \"true\""));
  Json plan = published_plan();
  plan["JobExecPlan"].push_back(plan["JobExecPlan"][2]);
  plan[Json::json_pointer(mark)] = "true";
  const auto code = read(plan);
  ASSERT_TRUE(code.ok()) << code.error().to_string();
  EXPECT_TRUE(std::get<Compute>(code.value().steps[2].what).non_terminal);
  EXPECT_FALSE(std::get<Compute>(code.value().steps[3].what).non_terminal);
}

TEST(SpyreCode, BothPlansAreRequired) {
  EXPECT_THAT(error_with("/JobPreparationPlan", {}), HasSubstr("JobPreparationPlan"));
  EXPECT_THAT(error_with("/JobExecPlan", {}), HasSubstr("JobExecPlan"));
  EXPECT_THAT(error_with("/JobExecPlan", "text"), HasSubstr("JobExecPlan"));
  EXPECT_FALSE(read(Json::array()).ok());
}

TEST(SpyreCode, PreparationIsOneAllocateThenTransfers) {
  EXPECT_THAT(error_with("/JobPreparationPlan/1", {}), HasSubstr("JobPreparationPlan: found 1 commands"));
  EXPECT_THAT(error_with("/JobPreparationPlan/0/command", "InitTransfer"),
              HasSubstr("JobPreparationPlan[0].command: found \"InitTransfer\", allowed: Allocate"));
  EXPECT_THAT(error_with("/JobPreparationPlan/1/command", "Allocate"),
              HasSubstr("JobPreparationPlan[1].command: found \"Allocate\", allowed: InitTransfer"));
  EXPECT_THAT(error_with("/JobPreparationPlan/0/properties/size", {}), HasSubstr("size"));
  EXPECT_THAT(error_with("/JobPreparationPlan/0/properties", {}), HasSubstr("properties"));
}

TEST(SpyreCode, NumbersAreNonNegativeDecimalStrings) {
  for (const Json& junk : {Json("-1"), Json("0x10"), Json("1e3"), Json(" 1"), Json(""), Json(51200),
                           Json("9223372036854775808")}) {
    EXPECT_THAT(error_with("/JobPreparationPlan/0/properties/size", junk),
                HasSubstr("JobPreparationPlan[0].properties.size: found"))
        << junk;
  }
}

TEST(SpyreCode, ErrorsOfTheExecPlanSaySo) {
  const std::string prefix = "Failed to parse SpyreCode command: spyrecode.json: JobExecPlan";
  EXPECT_THAT(error_with("/JobExecPlan/2/command", "Sleep"),
              StartsWith(prefix + "[2].command: found \"Sleep\", allowed: ComputeOnDevice"));
  for (const char* missing : {"/JobExecPlan/0/properties/ihandle", "/JobExecPlan/0/properties/ishape",
                              "/JobExecPlan/0/properties/ohandle", "/JobExecPlan/0/properties/size",
                              "/JobExecPlan/0/properties/hcm", "/JobExecPlan/1/properties/dirn",
                              "/JobExecPlan/1/properties/host_handle", "/JobExecPlan/1/properties/dev_ptr",
                              "/JobExecPlan/1/properties/size", "/JobExecPlan/2/properties/job_bin_ptr",
                              "/JobExecPlan/2/properties", "/JobExecPlan/2/command"}) {
    const std::string error = error_with(missing, {});
    EXPECT_THAT(error, StartsWith(prefix)) << missing;
    EXPECT_THAT(error, HasSubstr(std::string(missing).substr(std::string(missing).rfind('/') + 1)));
  }
}

TEST(SpyreCode, PointersLieInTheRegionAtSticks) {
  const std::string after = std::to_string(120259084288 + 51200 + 128);
  EXPECT_THAT(error_with("/JobExecPlan/2/properties/job_bin_ptr", after),
              HasSubstr("inside the program region"));
  EXPECT_THAT(error_with("/JobExecPlan/2/properties/job_bin_ptr", "2048"),
              HasSubstr("inside the program region"));
  EXPECT_THAT(error_with("/JobExecPlan/2/properties/job_bin_ptr", "120259084289"),
              HasSubstr("a multiple of 128"));
  EXPECT_THAT(error_with("/JobPreparationPlan/1/properties/size", "51201"),
              HasSubstr("inside the program region"));
  EXPECT_THAT(error_with("/JobExecPlan/1/properties/size", "9223372036854775807"),
              HasSubstr("inside the program"));
}

TEST(SpyreCode, HandlesAreMadeOnceAndUsedAfterwards) {
  EXPECT_THAT(error_with("/JobExecPlan/1/properties/host_handle", "other"),
              HasSubstr("host_handle: found \"other\", allowed: a handle that an earlier command made"));
  EXPECT_THAT(error_with("/JobExecPlan/0/properties/ihandle", "other"),
              HasSubstr("ihandle: found \"other\""));
  EXPECT_THAT(error_with("/JobExecPlan/0/properties/ohandle", ""), HasSubstr("a new, non-empty handle"));
  Json plan = published_plan();
  plan["JobExecPlan"].insert(plan["JobExecPlan"].begin(), Json(plan["JobExecPlan"][0]));
  EXPECT_THAT(error_of(plan), HasSubstr("JobExecPlan[1].properties.ohandle: found \"correction0\""));
  plan = published_plan();
  plan["JobExecPlan"][1]["properties"]["dirn"] = "true";
  EXPECT_THAT(error_of(plan), HasSubstr("host_handle: found \"correction0\", allowed: a new"));
  EXPECT_THAT(error_with("/JobExecPlan/1/properties/dirn", "maybe"), HasSubstr("dirn: found \"maybe\""));
  EXPECT_THAT(error_with("/JobExecPlan/1/properties/size", "2176"), HasSubstr("found 2176 bytes to send"));
}

TEST(SpyreCode, WhatIsPreparedIsUsed) {
  EXPECT_THAT(error_with("/JobExecPlan", Json::array()), HasSubstr("found no command"));
  Json plan = published_plan();
  plan["JobExecPlan"].erase(2);
  EXPECT_TRUE(read(plan).ok()) << "a plan need not compute";
  plan = published_plan();
  std::swap(plan["JobExecPlan"][1], plan["JobExecPlan"][2]);
  EXPECT_THAT(error_of(plan), HasSubstr("a preparation after the last ComputeOnDevice"));
  plan = published_plan();
  plan["JobExecPlan"] = Json::array({plan["JobExecPlan"][2]});
  EXPECT_TRUE(read(plan).ok()) << "baked addresses need no correction";
}

TEST(SpyreCode, ResultsOfAProgramRegionCanBeFetched) {
  Json plan = published_plan();
  plan["JobExecPlan"].push_back(
      {{"command", "DataTransfer"},
       {"properties",
        {{"dirn", "true"}, {"host_handle", "back"}, {"dev_ptr", "120259084288"}, {"size", "128"}}}});
  const auto code = read(plan);
  ASSERT_TRUE(code.ok()) << code.error().to_string();
  EXPECT_EQ(code.value().steps[3].type(), "D2H");
  EXPECT_EQ(code.value().steps[3].role(), StepRole::kDev);
}

TEST(SpyreCode, WhatIsFetchedMayLieInALaunchTensor) {
  Json plan = published_plan();
  plan["JobExecPlan"] = Json::array(
      {{{"command", "DataTransfer"},
        {"properties", {{"dirn", "true"}, {"host_handle", "back"}, {"dev_ptr", ""}, {"size", "128"}}}}});
  Json& pointer = plan["JobExecPlan"][0]["properties"]["dev_ptr"];
  pointer = std::to_string((int64_t{2} << 34) + 256);
  const auto code = read(plan);
  ASSERT_TRUE(code.ok()) << code.error().to_string();
  const auto& move = std::get<Transfer>(code.value().steps[0].what);
  EXPECT_EQ(move.tensor, 2);
  EXPECT_EQ(move.offset, Bytes(256));
  pointer = "100";
  EXPECT_THAT(error_of(plan), HasSubstr("a multiple of 128"));
  pointer = std::to_string(int64_t{8} << 34);
  EXPECT_THAT(error_of(plan), HasSubstr("inside the program region"));
}

TEST(SpyreCode, ParametersSayWhereTheirValuesComeFrom) {
  Json plan = published_plan();
  plan["JobExecPlan"][0]["properties"]["hcm"]["vdci"]["parameters"] = parse_json(R"([
      {"kind": "pool"}, {"kind": "kernel", "arg_index": 2},
      {"kind": "dimension", "arg_index": 1, "dim_index": 0, "symbol": "s0", "granularity": 4, "max_value": 16}])",
                                                                                 "parameters")
                                                                          .value();
  const auto code = read(plan);
  ASSERT_TRUE(code.ok()) << code.error().to_string();
  const auto& parameters = *std::get<HostCompute>(code.value().steps[0].what).parameters;
  ASSERT_EQ(parameters.size(), 3u);
  EXPECT_EQ(parameters[0].kind, ParameterSource::Kind::kPool);
  EXPECT_EQ(parameters[1].arg_index, 2);
  EXPECT_EQ(parameters[2].granularity, 4);
  EXPECT_EQ(parameters[2].max_value, 16);

  plan["JobExecPlan"][0]["properties"]["hcm"]["vdci"]["parameters"][1]["kind"] = "colour";
  EXPECT_THAT(error_of(plan), HasSubstr("kind: found \"colour\""));
  plan["JobExecPlan"][0]["properties"]["hcm"]["vdci"]["parameters"][1] = {{"kind", "kernel"}};
  EXPECT_THAT(error_of(plan), HasSubstr("arg_index"));
}

TEST(SpyreCode, TheBlobHoldsItsParameters) {
  Json plan = published_plan();
  plan["JobExecPlan"][0]["properties"]["size"] = "0";
  plan["JobExecPlan"][1]["properties"]["size"] = "0";
  EXPECT_TRUE(read(plan).ok());
  plan["JobExecPlan"][0]["properties"]["hcm"]["vdci"]["parameters"] = Json::array({{{"kind", "pool"}}});
  EXPECT_THAT(error_of(plan), HasSubstr("size: found \"0\", allowed: room for 1 parameters"));
}

TEST(SpyreCode, BinariesLieBesideThePlan) {
  for (const char* file : {"", "../init_binary.bin", "/etc/passwd", "."}) {
    EXPECT_THAT(error_with("/JobPreparationPlan/1/properties/init_bin_file", file),
                HasSubstr("a file beside spyrecode.json"));
  }
}

}  // namespace
}  // namespace spyre
