#include "spyre/lx/core_view.h"

#include <gmock/gmock.h>

#include "spyre/lx/graph_access.h"
#include "spyre/lx/test_graphs.h"

namespace spyre::lx {
namespace {

using ::testing::ElementsAre;

// neg over [512, 1024], device [16, 512, 64], with these splits of rows and columns.
ViewOrReason view_of_output(std::string_view rows, std::string_view columns) {
  DeviceGraph graph = test::laid_out(R"(graph g {
    input x : float16[512, 1024] stride=[1024, 1]
    buffer y : float16[512, 1024] stride=[1024, 1]
    node y (p0: 512, p1: 1024) {
      v0 = load x[1024*p0 + p1]
      v1 = neg v0
      store y[1024*p0 + p1] v1
    }
    return y
  })");
  const auto set = [&](size_t loop, std::string_view text) {
    const size_t at = text.find('@');
    graph.nodes[0].loops[loop].split = std::stoll(std::string(text.substr(0, at)));
    if (at != std::string_view::npos)
      graph.nodes[0].loops[loop].step = std::stoll(std::string(text.substr(at + 1)));
  };
  set(0, rows);
  set(1, columns);
  const GraphAccess access = access_of(graph).value();
  return core_view(access.ops[0], 1, access.layouts[0]);
}

CoreView view(std::string_view rows, std::string_view columns) {
  return std::get<CoreView>(view_of_output(rows, columns));
}

TEST(CoreView, RowsOfEveryColumnStick) {
  const CoreView four = view("4", "1");
  EXPECT_THAT(four.runs, ElementsAre(StridedRun{512, 16}, StridedRun{1, 128}));
  EXPECT_THAT(four.first, ElementsAre(0, 128, 256, 384));
  EXPECT_EQ(four.sticks(), 2048);
}

TEST(CoreView, WholeColumnSticksAreOneRun) {
  const CoreView four = view("1", "4");
  EXPECT_THAT(four.runs, ElementsAre(StridedRun{1, 2048}));
  EXPECT_THAT(four.first, ElementsAre(0, 2048, 4096, 6144));
}

TEST(CoreView, TheFirstLoopVariesFastestUnlessAStepSaysOtherwise) {
  EXPECT_THAT(view("2", "2").first, ElementsAre(0, 256, 4096, 4352));
  EXPECT_THAT(view("2@2", "2@1").first, ElementsAre(0, 4096, 256, 4352));
  EXPECT_NE(view("2", "2"), view("2@2", "2@1"));
}

TEST(CoreView, ASliceOfPartOfAStickHasNoView) {
  EXPECT_EQ(std::get<std::string>(view_of_output("1", "32")), "slices are not whole sticks");
}

}  // namespace
}  // namespace spyre::lx
