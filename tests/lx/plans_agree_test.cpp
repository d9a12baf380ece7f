#include <gtest/gtest.h>

#include "spyre/solve/solver.h"
#include "tests/lx/planned_run.h"

// However a graph is planned, it computes the same.
namespace spyre {
namespace {

using lx_test::Executed;

class PlansAgree : public ::testing::TestWithParam<std::tuple<std::string, int>> {
 protected:
  Executed executed(CompileOptions options) {
    const auto& [name, cores] = GetParam();
    options.cores = cores;
    const CompiledGraph compiled =
        compile(lx_test::graph_at(SPYRE_GRAPH_CORPUS "/" + name + ".ir"), options).value();
    Executed run = lx_test::run(compiled);
    for (const exec::Finding& finding : run.findings) ADD_FAILURE() << exec::to_string(finding);
    return run;
  }
};

TEST_P(PlansAgree, BitForBitWithAndWithoutLx) {
  const Executed off = executed({.lx_planning = false}), on = executed({});
  EXPECT_EQ(on.outputs, off.outputs);
  EXPECT_LE(on.traffic.hbm_read, off.traffic.hbm_read);
  EXPECT_LE(on.traffic.hbm_written, off.traffic.hbm_written);
}

TEST_P(PlansAgree, BitForBitWhenDivisionsComeFirst) {
  EXPECT_EQ(executed({.co_optimize = false}).outputs, executed({.lx_planning = false}).outputs);
}

// Sums in another order. Every intermediate is rounded to 9 fraction bits, and an error of one rounding goes
// through a few more operations: four steps at the magnitude of the largest result.
TEST_P(PlansAgree, NearlyWhenSumsAreDividedOtherwise) {
  const Executed off = executed({.lx_planning = false}), joint = executed({.keep_sums = false});
  EXPECT_LE(lx_test::distance(joint.outputs, off.outputs), 4 * lx_test::magnitude(off.outputs) / 512);
}

// A scratchpad that holds some of it makes for copies, spills and half-served readers.
TEST_P(PlansAgree, BitForBitWithEverySolverInASmallScratchpad) {
  const auto& [name, cores] = GetParam();
  if (cores != 4) return;
  const Executed off = executed({.lx_planning = false});
  for (const solve::SolverRow& solver : solve::all_solvers()) {
    const lx::PlannerOptions small{.capacity = Bytes(24 << 10), .solver = std::string(solver.name)};
    EXPECT_EQ(executed({.scratchpad = small}).outputs, off.outputs) << solver.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Corpus, PlansAgree,
                         ::testing::Combine(::testing::ValuesIn(lx_test::names_in(SPYRE_GRAPH_CORPUS)),
                                            ::testing::Values(1, 4, 32)),
                         [](const auto& test) {
                           return std::get<0>(test.param) + "_" + std::to_string(std::get<1>(test.param));
                         });

}  // namespace
}  // namespace spyre
