#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <set>

#include "spyre/base/file.h"
#include "spyre/base/json.h"
#include "spyre/base/log.h"
#include "spyre/base/result.h"
#include "spyre/base/settings.h"
#include "spyre/base/text.h"
#include "spyre/base/thread_pool.h"
#include "spyre/base/units.h"

namespace spyre {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Result<int> half_of_even(int n) {
  if (n % 2 != 0) {
    return Error(ErrorKind::kInvalidArgument, "odd").note("found 3").try_instead("an even number");
  }
  return n / 2;
}

Result<int> quarter(int n) {
  SPYRE_ASSIGN_OR_RETURN(const int half, half_of_even(n));
  return half_of_even(half);
}

TEST(Result, PassesTheFirstErrorUpUnchanged) {
  EXPECT_EQ(quarter(8).value(), 2);
  EXPECT_EQ(quarter(6).error().message, "odd");
  EXPECT_EQ(quarter(3).error().to_string(), "odd\n  note found 3\n  try  an even number");
}

TEST(Error, KnowsItsNodeAndSaysWhereItComesFrom) {
  const Error error = Error(ErrorKind::kUnsupported, "no such thing")
                          .note("a fact")
                          .about({.name = "buf3", .aten = "aten.neg", .source = "model.py:7"});
  EXPECT_EQ(error.node->name, "buf3");
  EXPECT_EQ(error.to_string(),
            "no such thing\n  note it comes from aten.neg\n  note written at model.py:7\n  note a fact");
  EXPECT_EQ(Error(ErrorKind::kUnsupported, "x").about({.name = "y"}).to_string(), "x");
}

TEST(Result, AskingAnErrorForItsValueIsABug) {
  EXPECT_THROW((void)half_of_even(3).value(), InternalError);
}

TEST(Units, CountsOfOneKindAddAndDivide) {
  EXPECT_EQ(kibibytes(2) + Bytes(1), Bytes(2049));
  EXPECT_EQ(mebibytes(1) / Bytes(128), 8192);
  EXPECT_EQ(round_up(Bytes(129), Bytes(128)), Bytes(256));
  static_assert(!std::is_convertible_v<Bytes, Sticks>);
}

TEST(Text, HumanBytesKeepsSmallCountsExact) {
  EXPECT_EQ(human_bytes(Bytes(391)), "391 B");
  EXPECT_EQ(human_bytes(Bytes(1536)), "1.50 KiB");
  EXPECT_EQ(human_bytes(gibibytes(128)), "128.00 GiB");
}

TEST(Text, SplitTrimsBlanksAndKeepsEmptyParts) {
  EXPECT_THAT(split_trimmed("0, 2 ,,3", ','), ::testing::ElementsAre("0", "2", "", "3"));
  EXPECT_THAT(split_trimmed("", ','), ::testing::IsEmpty());
}

TEST(Json, ParseErrorNamesTheOrigin) {
  EXPECT_THAT(parse_json("{\"a\": }", "bundle/sdsc_0.json").error().message, HasSubstr("bundle/sdsc_0.json"));
}

TEST(Json, KeepsKeyOrder) {
  EXPECT_EQ(parse_json(R"({"b":1,"a":2})", "x").value().dump(), R"({"b":1,"a":2})");
}

TEST(File, OnlyRegularFilesOfAllowedSizeAreRead) {
  const std::filesystem::path folder =
      std::filesystem::path(testing::TempDir()) / fmt::format("file{}", ::getpid());
  std::filesystem::create_directories(folder);
  ASSERT_TRUE(write_text(folder / "text", "twelve bytes").ok());
  EXPECT_EQ(read_file(folder / "text", 12).value(), "twelve bytes");
  EXPECT_THAT(read_file(folder / "text", 11).error().message,
              HasSubstr("found 12 bytes, allowed: at most 11"));
  EXPECT_THAT(read_file(folder, 12).error().message, HasSubstr("found a folder, allowed: a regular file"));
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_THAT(read_text(folder / "pipe").error().message, HasSubstr("a regular file"));
  EXPECT_THAT(read_text("/dev/zero").error().message, HasSubstr("a regular file"));
  EXPECT_THAT(read_text(folder / "none").error().message, HasSubstr("No such file"));
  EXPECT_FALSE(read_text("/proc/self/status").value().empty());  // states no size
  // A failed write leaves nothing behind.
  EXPECT_FALSE(write_text(folder, "text").ok());
  EXPECT_FALSE(std::filesystem::exists(folder.string() + fmt::format(".tmp{}_2", ::getpid())));
  std::filesystem::remove_all(folder);
}

TEST(Log, GoesToTheSinkOnly) {
  std::string seen;
  LogSink before = set_log_sink([&](LogLevel level, std::string_view layer, std::string_view text) {
    seen = std::string(to_string(level)) + "/" + std::string(layer) + "/" + std::string(text);
  });
  log(LogLevel::kWarning, "runtime", "hello");
  set_log_sink(std::move(before));
  EXPECT_EQ(seen, "warning/runtime/hello");
}

TEST(Settings, TableIsSortedAndNamesAreUnique) {
  const auto rows = all_settings();
  EXPECT_TRUE(std::is_sorted(rows.begin(), rows.end(), [](auto& a, auto& b) { return a.name < b.name; }));
  EXPECT_EQ(std::adjacent_find(rows.begin(), rows.end(), [](auto& a, auto& b) { return a.name == b.name; }),
            rows.end());
}

TEST(Settings, EveryFallbackHasTheTypeOfItsRow) {
  for (const Setting& row : all_settings()) {
    const auto index = row.fallback.index();
    const size_t expected = row.type == SettingType::kBool    ? 0
                            : row.type == SettingType::kInt   ? 1
                            : row.type == SettingType::kFloat ? 2
                                                              : 3;
    EXPECT_EQ(index, expected) << row.name;
  }
}

TEST(Settings, MalformedValueSaysWhatIsAllowed) {
  setenv("SENCORES", "33", 1);
  EXPECT_EQ(read_int("SENCORES").error().message, "SENCORES='33' is not allowed: expected 1 to 32");
  setenv("SENCORES", "7", 1);
  EXPECT_EQ(read_int("SENCORES").value(), 7);
  unsetenv("SENCORES");
  EXPECT_EQ(read_int("SENCORES").value(), 32);
}

TEST(Settings, AllMalformedValuesAreSaidAtOnce) {
  EXPECT_TRUE(check_settings().ok());
  setenv("SENCORES", "33", 1);
  setenv("DXP_LX_FRAC_AVAIL", "nan", 1);
  const Status status = check_settings();
  unsetenv("SENCORES");
  unsetenv("DXP_LX_FRAC_AVAIL");
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().message, "DXP_LX_FRAC_AVAIL='nan' is not allowed: expected a number from 0 to 1");
  EXPECT_EQ(status.error().notes.back(), "SENCORES='33' is not allowed: expected 1 to 32");
}

TEST(Settings, AreValuesForWhoeverAsks) {
  SettingValues settings;
  EXPECT_TRUE(settings.set("SENCORES", int64_t{4}).ok());
  EXPECT_TRUE(settings.set("DXP_LX_FRAC_AVAIL", int64_t{1}).ok()) << "a whole number is a number";
  setenv("SENCORES", "7", 1);
  EXPECT_EQ(settings.read<int64_t>("SENCORES").value(), 4)
      << "the environment speaks only where nobody else does";
  EXPECT_EQ(SettingValues().read<int64_t>("SENCORES").value(), 7);
  unsetenv("SENCORES");
  EXPECT_EQ(settings.read<double>("DXP_LX_FRAC_AVAIL").value(), 1.0);
  EXPECT_TRUE(settings.read<bool>("LX_PLANNING").value());
  EXPECT_EQ(settings.set("SENCORES", int64_t{33}).error().message,
            "SENCORES='33' is not allowed: expected 1 to 32");
  EXPECT_EQ(settings.set("LX_PLANNING", int64_t{2}).error().kind, ErrorKind::kInvalidArgument);
  EXPECT_EQ(settings.set("LAYOUT_SOLVER", std::string("luck")).error().kind, ErrorKind::kInvalidArgument);
  EXPECT_EQ(settings.set("SENCORE", int64_t{4}).error().kind, ErrorKind::kNotFound);
}

TEST(Settings, NamesInConfigAreUnique) {
  std::set<std::string_view> names;
  for (const Setting& row : all_settings()) {
    EXPECT_TRUE(row.config.empty() || names.insert(row.config).second) << row.config;
  }
  EXPECT_TRUE(names.contains("sencores"));
}

TEST(Settings, UnknownNamesComeWithTheNearestOne) {
  EXPECT_TRUE(unknown_settings().empty());
  setenv("SPYRE_LX_PLANER_EVICTION", "0", 1);
  setenv("TORCH_SPYRE_DEBUGG", "1", 1);
  setenv("SPYRE_LX_PLANNING", "0", 1);
  setenv("SPYRELIKE", "1", 1);    // does not start like ours
  setenv("SPYRE_TOOLS", "x", 1);  // of our tests
  const std::vector<UnknownSetting> unknown = unknown_settings();
  for (const char* name :
       {"SPYRE_LX_PLANER_EVICTION", "TORCH_SPYRE_DEBUGG", "SPYRE_LX_PLANNING", "SPYRELIKE", "SPYRE_TOOLS"}) {
    unsetenv(name);
  }
  std::vector<std::string> found;
  for (const UnknownSetting& u : unknown) found.push_back(u.name + " " + u.nearest);
  EXPECT_THAT(found, ElementsAre("SPYRE_LX_PLANER_EVICTION SPYRE_LX_PLANNER_EVICTION",
                                 "SPYRE_LX_PLANNING LX_PLANNING", "TORCH_SPYRE_DEBUGG TORCH_SPYRE_DEBUG"));
}

TEST(Settings, BoolTakesUpstreamsWords) {
  for (const char* word : {"0", "false", "off", "OFF"}) {
    setenv("TORCH_SPYRE_DOWNCAST_WARN", word, 1);
    EXPECT_FALSE(read_bool("TORCH_SPYRE_DOWNCAST_WARN").value()) << word;
  }
  unsetenv("TORCH_SPYRE_DOWNCAST_WARN");
}

TEST(Json, ObjectsKeepTheOrderOfTheirMembersAndMoveThemAsTheyGrow) {
  Json object = {{"z", Json::array({1, 2})}, {"a", 3}};
  const Json* const inside = &object["z"][1];
  for (int i = 0; i < 100; ++i) object[std::to_string(i)] = i;
  EXPECT_EQ(&object["z"][1], inside);
  EXPECT_EQ(object.begin().key(), "z");
  object.erase("z");
  EXPECT_EQ(object.begin().key(), "a");
  EXPECT_EQ(object.size(), 101u);
  EXPECT_EQ(parse_json(R"({"b": 1, "a": 2, "b": 3})", "text").value().dump(), R"({"b":3,"a":2})");
}

TEST(ParallelFor, CoversTheRangeOnceAndRethrows) {
  std::vector<int> hits(100'003);
  parallel_for(static_cast<int64_t>(hits.size()), 100, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      ++hits[static_cast<size_t>(i)];
    }
  });
  EXPECT_EQ(std::accumulate(hits.begin(), hits.end(), 0), 100'003);
  EXPECT_EQ(*std::max_element(hits.begin(), hits.end()), 1);
  EXPECT_THROW(parallel_for(1000, 1, [](int64_t, int64_t) { throw std::runtime_error("x"); }),
               std::runtime_error);
}

TEST(ParallelFor, NestedCallsStayOnTheirThread) {
  std::atomic<int> sum{0};
  parallel_for(
      8, 1, [&](int64_t, int64_t) { parallel_for(10, 1, [&](int64_t b, int64_t e) { sum += int(e - b); }); });
  EXPECT_EQ(sum % 10, 0);
  EXPECT_GT(sum, 0);
}

}  // namespace
}  // namespace spyre
