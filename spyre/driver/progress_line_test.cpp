#include "spyre/driver/progress_line.h"

#include <gmock/gmock.h>

#include <map>

#include "spyre/base/json.h"
#include "spyre/driver/compile.h"

namespace spyre {
namespace {

using testing::ElementsAre;

TEST(ProgressLine, SaysNothingInTheFirstSecondAndOneLineASecondAfterwards) {
  std::chrono::steady_clock::time_point now;
  std::vector<std::string> lines;
  ProgressLine progress(
      "softmax", [&](const std::string& line) { lines.push_back(line); }, [&] { return now; });
  for (int plans = 1; plans <= 35; ++plans) {
    now += std::chrono::milliseconds(100);
    progress("co-optimize", plans);
  }
  EXPECT_THAT(lines, ElementsAre("planning softmax: co-optimize, 10 plans looked at, 1 s",
                                 "planning softmax: co-optimize, 20 plans looked at, 2 s",
                                 "planning softmax: co-optimize, 30 plans looked at, 3 s"));
}

// Work is counted, not timed, so it is told the same number of times everywhere.
TEST(Compile, TellsOfEveryPlanItLooksAt) {
  const std::string path = SPYRE_GRAPH_CORPUS "/gated_mlp_small.ir";
  PassLog log;
  std::map<std::string, int64_t> told;
  log.on_progress([&](std::string_view pass, int64_t plans) { told[std::string(pass)] = plans; });
  const CompiledGraph compiled = compile(parse_graph(read_text(path).value(), path).value(), {}, log).value();
  EXPECT_GT(compiled.joint->evaluated, 0);
  EXPECT_EQ(told["co-optimize"], compiled.joint->evaluated);
}

}  // namespace
}  // namespace spyre
