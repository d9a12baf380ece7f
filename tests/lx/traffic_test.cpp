#include <gtest/gtest.h>

#include "spyre/base/json.h"
#include "spyre/device/exec/count_run.h"
#include "spyre/lx/compulsory.h"
#include "spyre/lx/plan_cost.h"
#include "tests/lx/planned_run.h"

// Device memory traffic of what the card executes, by its own counters.
namespace spyre {
namespace {

exec::Traffic traffic_of(const CompiledGraph& compiled) {
  return exec::count_run(program::read_program(compiled.bundle.files).value()).value().total().traffic;
}

// The worked example of scratchpad planning: softmax over axis 0 of 512 x 1024 on one core, in elements.
class SoftmaxStages : public ::testing::Test {
 protected:
  static constexpr int64_t M = 512, N = 1024;

  static int64_t elements(const lx::PlannerOptions& scratchpad = {}, bool planned = true) {
    const CompileOptions options{.cores = 1, .lx_planning = planned, .scratchpad = scratchpad};
    const CompiledGraph compiled =
        compile(lx_test::graph_at(SPYRE_GRAPH_CORPUS "/softmax_columns.ir"), options).value();
    const lx_test::Executed run = lx_test::run(compiled);
    EXPECT_TRUE(run.findings.empty());
    EXPECT_EQ(run.traffic, traffic_of(compiled));  // counting without running gives the same
    return (run.traffic.hbm_read + run.traffic.hbm_written) / 2;
  }
};

TEST_F(SoftmaxStages, OneNothingInLx) {
  EXPECT_EQ(elements({}, /*planned=*/false), 8 * M * N + 4 * N);
}

TEST_F(SoftmaxStages, TwoReductionsInLx) {
  EXPECT_EQ(elements({.capacity = Bytes(4 * N)}), 8 * M * N);
}

TEST_F(SoftmaxStages, ThreeIntermediatesInLx) {
  EXPECT_EQ(elements({.moves = lx::MoveSet::all().without({lx::Move::kCopyIn})}), 3 * M * N);
}

TEST_F(SoftmaxStages, FourTheInputTooByDefault) {
  EXPECT_EQ(elements(), 2 * M * N);
}

// 4 MiB on four cores: more than one scratchpad holds, a quarter of it fits.
TEST(Softmax, FourCoresHoldWhatOneDoesNot) {
  constexpr int64_t kRows = 1024, kColumns = 2048;
  std::string text = read_text(SPYRE_GRAPH_CORPUS "/softmax_columns.ir").value();
  const auto replace = [&](const std::string& from, const std::string& to) {
    for (size_t i = text.find(from); i != std::string::npos; i = text.find(from, i + to.size()))
      text.replace(i, from.size(), to);
  };
  replace("1024", "2048");
  replace("512", "1024");
  const Graph graph = parse_graph(text).value();
  const auto elements = [&](int64_t cores) {
    const exec::Traffic traffic = traffic_of(compile(graph, {.cores = cores}).value());
    return (traffic.hbm_read + traffic.hbm_written) / 2;
  };
  EXPECT_EQ(elements(4), 2 * kRows * kColumns);
  EXPECT_GT(elements(1), 2 * kRows * kColumns);
}

// The model that plans are chosen by counts the bytes that the card counts.
TEST(PlanCost, CountsTheBytesTheCardCounts) {
  for (const char* folder : {SPYRE_GRAPH_CORPUS, SPYRE_LAYER_CORPUS}) {
    for (const auto& path : lx_test::graphs_in(folder)) {
      for (const CompileOptions& options :
           {CompileOptions{.lx_planning = false}, CompileOptions{}, CompileOptions{.keep_sums = false}}) {
        const CompiledGraph compiled = compile(lx_test::graph_at(path), options).value();
        const lx::PlanCost cost = lx::cost_of(compiled.graph).value();
        const exec::Traffic traffic = traffic_of(compiled);
        EXPECT_EQ(cost.read.count(), traffic.hbm_read) << path;
        EXPECT_EQ(cost.written.count(), traffic.hbm_written) << path;
      }
    }
  }
}

struct LayerBound {
  const char* name;
  double kept, free;  // traffic over the compulsory: sums in the same order, and in any
};

// Whole layers at real shapes move little more than every input and result once. Where sums keep their order,
// the second projection of an MLP cannot: every core needs all it multiplies by, or all of the weight.
TEST(Layers, MoveLittleMoreThanTheyMust) {
  for (const LayerBound& bound :
       {LayerBound{"softmax", 1.01, 1.01}, LayerBound{"rms_norm", 1.01, 1.01},
        LayerBound{"attention", 1.01, 1.01}, LayerBound{"gated_mlp", 1.35, 1.01},
        LayerBound{"granite_layer", 1.28, 1.01}, LayerBound{"llama_layer", 1.28, 1.01},
        LayerBound{"bert_layer", 2.01, 1.101}}) {
    const Graph graph = lx_test::graph_at(std::string(SPYRE_LAYER_CORPUS "/") + bound.name + ".ir");
    for (const bool keep_sums : {true, false}) {
      const CompiledGraph compiled = compile(graph, {.keep_sums = keep_sums}).value();
      const exec::Traffic traffic = traffic_of(compiled);
      const auto least = static_cast<double>(lx::compulsory_bytes(compiled.graph).value().count());
      EXPECT_LE(static_cast<double>(traffic.hbm_read + traffic.hbm_written) / least,
                keep_sums ? bound.kept : bound.free)
          << bound.name;
      EXPECT_LE(compiled.joint->joint.total(lx::Objective::kTraffic),
                compiled.joint->separate.total(lx::Objective::kTraffic))
          << bound.name;
    }
  }
}

}  // namespace
}  // namespace spyre
