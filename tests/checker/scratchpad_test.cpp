#include "spyre/base/json.h"
#include "spyre/driver/compile.h"
#include "spyre/opspec/lower.h"
#include "tests/checker/checked_bundle.h"

namespace spyre {
namespace {

std::vector<std::string> graph_names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(SPYRE_GRAPH_CORPUS)) {
    names.push_back(entry.path().stem());
  }
  std::sort(names.begin(), names.end());
  return names;
}

class CheckedScratchpad : public ::testing::TestWithParam<std::tuple<std::string, int>> {};

// What the planner keeps in LX is read by the core that wrote it, after it was written and before anything
// else is: the checker follows every stick of every scratchpad.
TEST_P(CheckedScratchpad, PlannedGraphsAreSilent) {
  const auto& [name, cores] = GetParam();
  const std::string path = SPYRE_GRAPH_CORPUS "/" + name + ".ir";
  const Graph graph = parse_graph(read_text(path).value(), path).value();
  const CompiledGraph compiled = compile(graph, {.cores = cores}).value();
  const Kernel kernel = lower_to_kernel(compiled.graph).value();
  const Outcome outcome = run_bundle(kernel, compiled.bundle.files,
                                     [](const exec::BoundOp&, exec::CardMemory&) { return Status(); });
  EXPECT_EQ(outcome.by, Outcome::By::kNobody) << outcome.to_string();
}

INSTANTIATE_TEST_SUITE_P(Corpus, CheckedScratchpad,
                         ::testing::Combine(::testing::ValuesIn(graph_names()), ::testing::Values(1, 4, 32)),
                         [](const auto& test) {
                           return std::get<0>(test.param) + "_" + std::to_string(std::get<1>(test.param));
                         });

}  // namespace
}  // namespace spyre
