#include <gtest/gtest.h>

#include "spyre/lx/plan_cost.h"
#include "spyre/lx/test_programs.h"
#include "spyre/solve/solver.h"
#include "tests/lx/planned_run.h"

// Tensors with idle gaps, in a scratchpad too small for all of them: evicted and fetched again, or spared that by
// another order. Traffic is what the card counts while it runs.
namespace spyre {
namespace {

constexpr int64_t kTensor = 64 * 128;
const lx::PlannerOptions kNoEviction{.moves = lx::MoveSet::all().without({lx::Move::kEvict})};

struct Case {
  const char* name;
  std::string program;
  int64_t capacity;  // in tensors
  // Traffic in tensors: neither, eviction, another order.
  int64_t kept, evicted, reordered;
};

std::vector<Case> cases() {
  return {{"idle_once", test::idle_once(), 1, 4 + 7, 3 + 7, 2 + 7},
          {"made_then_idle", test::made_then_idle(), 1, 5 + 8, 4 + 8, 2 + 8},
          {"takes_turns", test::takes_turns(), 3, 11 + 21, 7 + 21, 5 + 21}};
}

lx_test::Executed executed(const Case& c, CompileOptions options, int64_t cores = 1) {
  options.cores = cores;
  options.scratchpad.capacity = Bytes(c.capacity * kTensor / cores);
  const CompiledGraph compiled = compile(parse_graph(c.program).value(), options).value();
  lx_test::Executed run = lx_test::run(compiled);
  for (const exec::Finding& finding : run.findings)
    ADD_FAILURE() << c.name << ": " << exec::to_string(finding);
  return run;
}

int64_t tensors(const lx_test::Executed& run) {
  return (run.traffic.hbm_read + run.traffic.hbm_written) / kTensor;
}

TEST(Eviction, MovesLessThanKeepingAndAnotherOrderLess) {
  for (const Case& c : cases()) {
    EXPECT_EQ(tensors(executed(c, {.reorder = false, .scratchpad = kNoEviction})), c.kept) << c.name;
    EXPECT_EQ(tensors(executed(c, {.reorder = false})), c.evicted) << c.name;
    EXPECT_EQ(tensors(executed(c, {})), c.reordered) << c.name;
  }
}

TEST(Eviction, ChangesNoBitWithAnySolver) {
  for (const Case& c : cases()) {
    for (const int64_t cores : {1, 4}) {
      const lx_test::Executed off = executed(c, {.lx_planning = false}, cores);
      for (const solve::SolverRow& solver : solve::all_solvers()) {
        for (const bool reorder : {false, true}) {
          const lx::PlannerOptions scratchpad{.solver = std::string(solver.name)};
          EXPECT_EQ(executed(c, {.reorder = reorder, .scratchpad = scratchpad}, cores).outputs, off.outputs)
              << c.name << " on " << cores << " cores, " << solver.name;
        }
      }
    }
  }
}

// However little room there is, what the plan promises is what the card counts, and more freedom is never
// worse.
TEST(Eviction, NeverMovesMoreThanPlansWithoutIt) {
  const Graph graph = lx_test::graph_at(SPYRE_GRAPH_CORPUS "/granite_small.ir");
  for (const int64_t capacity : {2048, 4096, 10240, 24576}) {
    const auto moved = [&](bool evictions, bool reorder, const char* solver) {
      CompileOptions options{.co_optimize = false, .reorder = reorder};
      options.scratchpad = {.capacity = Bytes(capacity), .solver = solver};
      if (!evictions) options.scratchpad.moves = kNoEviction.moves;
      const CompiledGraph compiled = compile(graph, options).value();
      const lx_test::Executed run = lx_test::run(compiled);
      for (const exec::Finding& finding : run.findings) {
        ADD_FAILURE() << exec::to_string(finding) << "\n"
                      << solver << ", " << capacity << " bytes, evictions " << evictions << ", reorder "
                      << reorder;
      }
      const lx::PlanCost cost = lx::cost_of(compiled.graph).value();
      EXPECT_EQ((cost.read + cost.written).count(), run.traffic.hbm_read + run.traffic.hbm_written);
      return run.traffic.hbm_read + run.traffic.hbm_written;
    };
    const int64_t plain = moved(false, false, "portfolio"), evicting = moved(true, false, "portfolio");
    EXPECT_LE(evicting, plain) << capacity;
    EXPECT_LE(moved(true, true, "portfolio"), evicting) << capacity;
    EXPECT_LE(evicting, moved(true, false, "greedy")) << capacity;
  }
}

}  // namespace
}  // namespace spyre
