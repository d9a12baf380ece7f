#include <gmock/gmock.h>

#include "spyre/base/json.h"
#include "spyre/report/plan_comparison.h"
#include "spyre/report/plan_facts.h"
#include "spyre/report/plan_page.h"
#include "spyre/report/plan_text.h"

namespace spyre::report {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Json buffer(const char* name, Json address, int64_t saves, int64_t moves, const char* remark) {
  return {{"buffer", name},
          {"place", address.is_null() ? "hbm" : "lx"},
          {"first", 0},
          {"last", 1},
          {"bytes_per_core", 256},
          {"address", address},
          {"in_place_of", ""},
          {"copy_of", ""},
          {"clone", false},
          {"copied_out", false},
          {"saves", saves},
          {"moves", moves},
          {"live", {1, 4}},
          {"made_by", {"a"}},
          {"read_by", {"b"}},
          {"remark", remark}};
}

// a stays in LX and saves 1024 B; y is a result and moves 512 B.
Json small_plan() {
  return {
      {"graph", "small"},
      {"cores", 2},
      {"capacity", 4096},
      {"solver", "exact"},
      {"optimal", true},
      {"work", 7},
      {"peak", 256},
      {"saved", 1024},
      {"at_stake", 2048},
      {"bound", 1280},
      {"moved", 512},
      {"compulsory", 512},
      {"cost", {{"us", 2.5}, {"memory_us", 2.0}, {"compute_us", 0.5}, {"vector_us", 0.0}, {"ring_us", 0.0}}},
      {"nodes", {{{"name", "a"}, {"op", "exp"}}, {{"name", "b"}, {"op", "neg"}}}},
      {"buffers", {buffer("a", 0, 1024, 0, ""), buffer("y", nullptr, 0, 512, "graph output")}}};
}

TEST(PlanText, SaysWhereBuffersLiveAndWhatTheOthersCost) {
  const std::string text = plan_text(small_plan());
  EXPECT_THAT(text, HasSubstr("a           0..1          256  LX 0                  1024            0  \n"));
  EXPECT_THAT(
      text,
      HasSubstr("y           0..1          256  device memory            0          512  graph output\n"));
}

TEST(PlanText, SaysHowFarThePlanIsFromTheBound) {
  EXPECT_THAT(
      plan_text(small_plan()),
      HasSubstr("1024 of 2048 B of device memory traffic; no placement avoids more than 1280 B, 256 B more"));
  Json plan = small_plan();
  plan["bound"] = 1024;
  EXPECT_THAT(plan_text(plan), HasSubstr("avoids more than 1024 B\n"));
}

TEST(PlanText, ListsAlternativesWhenThereAreSome) {
  Json plan = small_plan();
  EXPECT_THAT(plan_text(plan), Not(HasSubstr("other solvers")));
  plan["alternatives"] = {
      {{"solver", "greedy"}, {"saved", 512}, {"moved", 1024}, {"us", 3.5}, {"optimal", false}, {"work", 3}}};
  EXPECT_TRUE(check_plan(plan, "plan").ok());
  EXPECT_THAT(plan_text(plan), HasSubstr("greedy                        512         1024       3.50"));
}

TEST(PlanFacts, APlanIsAPlan) {
  EXPECT_TRUE(check_plan(small_plan(), "plan").ok());
}

TEST(PlanFacts, NamesTheFieldThatIsMissingOrOfAnotherType) {
  Json plan = small_plan();
  plan["buffers"][1].erase("moves");
  EXPECT_EQ(check_plan(plan, "old.json").error().message,
            "old.json: buffers[1].moves is missing: expected a number");
  plan = small_plan();
  plan["cost"]["us"] = "fast";
  EXPECT_EQ(check_plan(plan, "old.json").error().message,
            "old.json: cost.us is of type string: expected a number");
  EXPECT_EQ(check_plan(Json::array(), "old.json").error().message,
            "old.json: the whole is array: expected an object");
}

TEST(PlanComparison, APlanDoesNotDifferFromItself) {
  const Json comparison = compare_plans(small_plan(), small_plan());
  EXPECT_TRUE(comparison["changes"].empty());
  EXPECT_EQ(comparison["moved_address"], 0);
}

TEST(PlanComparison, ShowsBuffersThatLiveElsewhereAndTheBytes) {
  Json other = small_plan();
  other["buffers"][0] = buffer("a", nullptr, 1024, 1024, "no room on scratchpad");
  other["saved"] = 0;
  other["moved"] = 1536;
  const Json comparison = compare_plans(small_plan(), other);
  ASSERT_EQ(comparison["changes"].size(), 1u);
  EXPECT_EQ(
      comparison["changes"][0],
      Json({{"buffer", "a"}, {"from", "LX 0"}, {"to", "device memory"}, {"saved", -1024}, {"moved", 1024}}));
  const std::string text = comparison_text(comparison);
  EXPECT_THAT(text, HasSubstr("a       LX 0           device memory         -1024         +1024\n"));
  EXPECT_THAT(text, HasSubstr("saved   1024 -> 0 B (-1024)"));
}

TEST(PlanComparison, AnotherAddressIsCountedAndNotListed) {
  Json other = small_plan();
  other["buffers"][0]["address"] = 512;
  const Json comparison = compare_plans(small_plan(), other);
  EXPECT_TRUE(comparison["changes"].empty());
  EXPECT_EQ(comparison["moved_address"], 1);
}

TEST(PlanComparison, BuffersOfOnePlanAloneHaveNoPlaceInTheOther) {
  Json other = small_plan();
  other["buffers"].push_back(buffer("a#1", 1024, 256, 0, "shuffled from a"));
  const Json changes = compare_plans(small_plan(), other)["changes"];
  ASSERT_EQ(changes.size(), 1u);
  EXPECT_TRUE(changes[0]["from"].is_null());
  EXPECT_EQ(changes[0]["to"], "LX 1024");
}

TEST(PlanPage, CarriesThePlanAndFetchesNothing) {
  const std::string page = plan_page(small_plan());
  EXPECT_THAT(page, HasSubstr(small_plan().dump()));
  EXPECT_THAT(page, Not(HasSubstr("src=")));
  EXPECT_THAT(page, Not(HasSubstr("@import")));
  EXPECT_THAT(page, Not(HasSubstr("url(http")));
}

TEST(PlanPage, NamesCannotChangeThePage) {
  Json plan = small_plan();
  plan["graph"] = "</title><script>alert(1)</script>";
  plan["buffers"][0]["buffer"] = "</script><b>";
  const std::string page = plan_page(plan);
  EXPECT_THAT(page, Not(HasSubstr("alert(1)</script>")));
  EXPECT_THAT(page, Not(HasSubstr("</script><b>")));
  EXPECT_THAT(page, HasSubstr("<title>&lt;/title&gt;"));
}

}  // namespace
}  // namespace spyre::report
