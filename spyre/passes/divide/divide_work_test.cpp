#include "spyre/passes/divide/divide_work.h"

#include <gmock/gmock.h>

#include "spyre/passes/test_graphs.h"

namespace spyre {
namespace {

using testing::HasSubstr;

/// y = exp x over [512, 64], with hints, undivided.
DeviceGraph hinted(std::vector<std::pair<std::string, int64_t>> hints) {
  DeviceGraph graph = test::divided(R"(graph g {
    input x : float16[512, 64] stride=[64, 1]
    buffer y : float16[512, 64] stride=[64, 1]
    node y (p0: 512, p1: 64) {
      v0 = load x[64*p0 + p1]
      v1 = exp v0
      store y[64*p0 + p1] v1
    }
    return y
  })",
                                    1);
  graph.nodes[0].hints = std::move(hints);
  return graph;
}

TEST(DivideNodes, AHintThatCanBeFollowedIs) {
  DeviceGraph graph = hinted({{"p0", 8}});
  EXPECT_TRUE(divide_work(graph, 32).value().empty());
  EXPECT_EQ(graph.nodes[0].loops[0].split, 8);
  EXPECT_FALSE(graph.nodes[0].hints.empty());
}

TEST(DivideNodes, AHintThatCannotIsRefusedWithItsReasonAndTheWorkDividedWithoutIt) {
  DeviceGraph plain = hinted({});
  ASSERT_TRUE(divide_work(plain, 32).ok());
  for (const int64_t split : {7, 0, -1, 64, 1000}) {
    DeviceGraph graph = hinted({{"p0", split}});
    const std::vector<RefusedHint> refused = divide_work(graph, 32).value();
    ASSERT_EQ(refused.size(), 1) << split;
    EXPECT_EQ(refused[0].node, "y");
    EXPECT_EQ(refused[0].loop, "p0");
    EXPECT_EQ(refused[0].split, split);
    EXPECT_THAT(refused[0].reason, HasSubstr(std::to_string(split)));
    EXPECT_EQ(graph, plain) << split;
  }
}

TEST(DivideNodes, OnlyTheCulpritIsRefused) {
  DeviceGraph graph = hinted({{"p0", 8}, {"p1", 3}});
  const std::vector<RefusedHint> refused = divide_work(graph, 32).value();
  ASSERT_EQ(refused.size(), 1);
  EXPECT_EQ(refused[0].loop, "p1");
  EXPECT_EQ(graph.nodes[0].loops[0].split, 8);
  EXPECT_EQ(graph.nodes[0].hints, (std::vector<std::pair<std::string, int64_t>>{{"p0", 8}}));
}

}  // namespace
}  // namespace spyre
