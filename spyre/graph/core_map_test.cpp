#include "spyre/graph/core_map.h"

#include <gmock/gmock.h>

namespace spyre {
namespace {

using ::testing::ElementsAre;

TEST(CoreMap, FirstLoopVariesFastest) {
  EXPECT_THAT(default_core_steps(std::vector<int64_t>{2, 4}, false), ElementsAre(1, 2));
}

TEST(CoreMap, CoresThatShareASumAreNeighbours) {
  EXPECT_THAT(default_core_steps(std::vector<int64_t>{2, 4, 3}, true), ElementsAre(3, 6, 1));
}

TEST(CoreMap, AStepOnALoopStandsInTextAndReadsBack) {
  const std::string text =
      "graph g {\n"
      "  input x : float16[4, 64] stride=[64, 1]\n"
      "  buffer y : float16[4, 64] stride=[64, 1]\n"
      "  node y (p0: 4/2@8, p1: 64) {\n"
      "    v0 = load x[64*p0 + p1]\n"
      "    v1 = neg v0\n"
      "    store y[64*p0 + p1] v1\n"
      "  }\n"
      "  return y\n"
      "}\n";
  const DeviceGraph graph = parse_device_graph(text).value();
  EXPECT_EQ(graph.nodes[0].loops[0].step, 8);
  EXPECT_EQ(to_text(graph), text);
}

}  // namespace
}  // namespace spyre
