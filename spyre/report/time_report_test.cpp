#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "spyre/base/json.h"
#include "spyre/report/time_comparison.h"
#include "spyre/report/time_facts.h"
#include "spyre/report/time_page.h"
#include "spyre/report/time_text.h"

namespace spyre::report {
namespace {

using testing::HasSubstr;
using testing::Not;

Json time_item(const std::string& name, double us, const std::string& bound, int64_t bytes) {
  return {{"name", name},
          {"kind", "operation"},
          {"file", name + ".json"},
          {"count", 1},
          {"us", us},
          {"bound_by", bound},
          {"read_bytes", bytes},
          {"written_bytes", 0},
          {"ring_bytes", 0},
          {"lx_bytes", 0},
          {"macs", 0},
          {"elements", 64},
          {"aten", "aten." + name},
          {"source", ""},
          {"help", "more cores"},
          {"help_us", us / 2}};
}

/// 10 us of a launch, then 30 us of `add` and 60 us of `sum`.
Json small_time() {
  return {{"facts", "spyre-time"},
          {"version", 1},
          {"kind", "program"},
          {"name", "small"},
          {"machine",
           {{"name", "toy"},
            {"cores", 2},
            {"lx_bytes_per_core", 2048},
            {"memory_gb_per_s", 1},
            {"macs_per_ns", 2},
            {"elements_per_ns", 2}}},
          {"totals",
           {{"total_us", 100},
            {"kernel_us", 90},
            {"launch_us", 10},
            {"memory_busy_us", 60},
            {"read_bytes", 3072},
            {"written_bytes", 0},
            {"compulsory_bytes", 2048},
            {"ring_bytes", 0},
            {"lx_top_bytes", 0}}},
          {"bound", {{"by", "memory"}, {"us", {{"memory", 60}, {"vector", 30}, {"launch", 10}}}}},
          {"waterfall",
           {{{"step", "ideal"}, {"why", "once"}, {"us", 40}},
            {{"step", "waits"}, {"why", "in turn"}, {"us", 50}},
            {{"step", "launch"}, {"why", "host"}, {"us", 10}}}},
          {"items", {time_item("add", 30, "vector", 1024), time_item("sum", 60, "memory", 2048)}},
          {"states", {"launch", "vector", "memory"}},
          {"rows",
           {{{"name", "host"}, {"slices", {0, -1, 0, 10000}}},
            {{"name", "operations"}, {"slices", {1, 0, 10000, 30000, 2, 1, 40000, 60000}}}}},
          {"counters", Json::array()},
          {"lx", Json::array()},
          {"left_out", Json::object()}};
}

TEST(TimeFacts, AReportIsAReport) {
  EXPECT_TRUE(check_time(small_time(), "facts").ok());
}

TEST(TimeFacts, NamesWhatIsMissingOrOfAnotherKind) {
  Json facts = small_time();
  facts["items"][1].erase("us");
  EXPECT_EQ(check_time(facts, "old.json").error().message,
            "old.json: items[1].us is missing: expected a number");
  facts = small_time();
  facts["version"] = 7;
  EXPECT_EQ(check_time(facts, "old.json").error().message,
            "old.json: found facts 'spyre-time' of version 7: expected 'spyre-time' of version 1");
  for (const auto& [position, value] : {std::pair(0, 3), std::pair(5, 2), std::pair(6, -1)}) {
    facts = small_time();
    facts["rows"][1]["slices"][static_cast<size_t>(position)] = value;
    EXPECT_THAT(check_time(facts, "old.json").error().message, HasSubstr("is no slice"));
  }
  facts = small_time();
  facts["rows"][1]["slices"].push_back(1);
  EXPECT_EQ(check_time(facts, "old.json").error().message,
            "old.json: rows[1].slices[2] is no slice: expected state, item, begin and length");
}

TEST(TimeFacts, ProgramsOfARunAreReportsToo) {
  Json run = small_time(), part = small_time();
  part.erase("waterfall");
  run["programs"] = {part};
  EXPECT_EQ(check_time(run, "run.json").error().message, "run.json: waterfall is missing: expected a list");
}

TEST(TimeText, TheAnswerIsTheFirstLineAndTheLongestComesFirst) {
  const std::string text = time_report_text(small_time());
  EXPECT_TRUE(text.starts_with("small: 100.00 us on toy; 60.0 % of it is bound by memory\n")) << text;
  EXPECT_LT(text.find("sum  "), text.find("add  "));
  EXPECT_THAT(text, HasSubstr("more cores (up to 30.00 us)"));
}

TEST(TimePage, CarriesItsFactsAndFetchesNothing) {
  const std::string page = time_page(small_time());
  EXPECT_THAT(page, HasSubstr(small_time().dump()));
  for (const char* fetches : {"src=", "@import", "url(", "http:", "fetch(", "XMLHttpRequest"}) {
    std::string without = page;
    for (size_t at; (at = without.find("http://www.w3.org/2000/svg")) != std::string::npos;)
      without.erase(at, 26);
    EXPECT_THAT(without, Not(HasSubstr(fetches)));
  }
}

TEST(TimePage, NamesCannotChangeThePage) {
  Json facts = small_time();
  facts["name"] = "</title><script>alert(1)</script>";
  facts["items"][0]["name"] = "</script><b>";
  const std::string page = time_page(facts);
  EXPECT_THAT(page, Not(HasSubstr("alert(1)</script>")));
  EXPECT_THAT(page, Not(HasSubstr("</script><b>")));
}

TEST(TimeComparison, AReportDoesNotDifferFromItself) {
  const Json comparison = compare_times(small_time(), small_time());
  EXPECT_TRUE(comparison["changes"].empty());
  EXPECT_EQ(comparison["names"], Json({{"from", "small before"}, {"to", "small after"}}));
}

TEST(TimeComparison, AddsUpWhatHasOneOriginAndPutsTheLargestDifferenceFirst) {
  Json other = small_time();
  other["machine"]["name"] = "fast toy";
  other["items"] = {time_item("add", 10, "vector", 1024), time_item("add", 5, "memory", 1024),
                    time_item("exp", 40, "vector", 0)};
  const Json comparison = compare_times(small_time(), other);
  EXPECT_EQ(comparison["names"]["to"], "small on fast toy");
  const Json& changes = comparison["changes"];
  ASSERT_EQ(changes.size(), 3u);
  EXPECT_EQ(changes[0]["name"], "sum");
  EXPECT_TRUE(changes[0]["to_us"].is_null());
  EXPECT_EQ(changes[0]["us"], -60.0);
  EXPECT_EQ(changes[1]["name"], "exp");
  EXPECT_TRUE(changes[1]["from_us"].is_null());
  EXPECT_EQ(changes[2]["us"], -15.0);
  EXPECT_EQ(changes[2]["to_bytes"], 2048);
  EXPECT_EQ(changes[2]["to_bound"], "vector");
  EXPECT_THAT(time_comparison_text(comparison), HasSubstr("sum"));
}

}  // namespace
}  // namespace spyre::report
