#include "spyre/device/timing/chrome_trace.h"

#include <gtest/gtest.h>

#include <map>

#include "spyre/base/json.h"
#include "spyre/device/timing/test_published.h"

namespace spyre::timing {
namespace {

/// The trace of a fused softmax and a matmul whose sums travel the ring, read back.
class Trace : public testing::Test {
 protected:
  void trace(const program::DeviceProgram& program) {
    timeline_ = time_of(program, fitted_rates());
    json_ = parse_json(chrome_trace(timeline_, program), "trace").value();
  }

  /// Slices by process and thread, in the order they stand there: begin and end, us.
  std::map<std::pair<int, int>, std::vector<std::pair<double, double>>> tracks() const {
    std::map<std::pair<int, int>, std::vector<std::pair<double, double>>> found;
    for (const Json& event : json_["traceEvents"]) {
      if (event["ph"] != "X") continue;
      const double begin = event["ts"];
      found[{event["pid"], event["tid"]}].emplace_back(begin, begin + event["dur"].get<double>());
    }
    return found;
  }

  /// A counter's value times how long it holds, summed over its series: us times per ns.
  double sum_of(const std::string& counter, const std::string& series) const {
    double sum = 0, value = 0, since = 0;
    for (const Json& event : json_["traceEvents"]) {
      if (event["ph"] != "C" || event["name"] != counter) continue;
      sum += value * (event["ts"].get<double>() - since);
      since = event["ts"];
      value = event["args"][series];
    }
    return sum * 1000;
  }

  Timeline timeline_;
  Json json_;
};

TEST_F(Trace, SlicesFillEveryTrackWithoutOverlap) {
  trace(softmax(512, 2048, 32, Stage::kIntermediates));
  const auto found = tracks();
  EXPECT_EQ(found.size(), 1u + 32);
  for (const auto& [track, slices] : found) {
    double at = 0;
    for (const auto& [begin, end] : slices) {
      EXPECT_NEAR(begin, at, 1e-9);
      at = end;
    }
    EXPECT_NEAR(at, timeline_.kernel.us(), 1e-3);
  }
}

TEST_F(Trace, CountersAddUpToTheTimeline) {
  trace(matmul_program({.m = 64, .n = 2048, .k = 1024}, {.m = 2, .n = 4, .k = 4}));
  EXPECT_NEAR(sum_of("off-chip GB/s", "read"), static_cast<double>(timeline_.read.count()), 100);
  EXPECT_NEAR(sum_of("off-chip GB/s", "written"), static_cast<double>(timeline_.written.count()), 100);
  EXPECT_NEAR(sum_of("MAC/ns", "value"), 64.0 * 2048 * 1024, 64.0 * 2048 * 1024 * 1e-4);
  // Eight groups of four cores, three messages each of 32 x 512 sums in 4 bytes.
  EXPECT_NEAR(sum_of("ring GB/s", "value"), 8 * 3 * 32 * 512 * 4, 100);
}

TEST_F(Trace, ExecutesSayWhatBoundsThem) {
  trace(program_of({unary("neg", 64, 0, kFar, 32)}));
  for (const Json& event : json_["traceEvents"]) {
    if (event["ph"] != "X" || event["pid"] != 1) continue;
    EXPECT_EQ(event["name"], "0 sdsc_0.json (neg)");
    EXPECT_EQ(event["args"]["bound_by"], "memory");
    EXPECT_EQ(event["args"]["read"], 64 * 128);
  }
}

}  // namespace
}  // namespace spyre::timing
