// What the card's operations make of layouts they take; what they refuse is in tests/errors/graph/normal_op.ir.

#include "spyre/graph/normal_op.h"

#include <gmock/gmock.h>

namespace spyre {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// The last node of a graph, with the layouts of its buffers; those without one are left out.
Result<NormalOp> judged(const DeviceGraph& graph) {
  const DeviceNode& node = graph.nodes.back();
  std::vector<const DeviceLayout*> layouts;
  for_each_access(node.op, [&](const Access& access) {
    const auto& layout = graph.buffers[static_cast<size_t>(access.buffer)].layout;
    layouts.push_back(layout ? &*layout : nullptr);
  });
  return normalize_op(graph, node, layouts);
}

std::vector<std::string> coordinates(const NormalOp& op, size_t operand) {
  std::vector<std::string> text;
  for (const Expr& e : op.access.operands[operand].coordinates(op.access.loops))
    text.push_back(e.to_string());
  return text;
}

constexpr std::string_view kRows = "layout=([2, 4, 64], [64, 128, 1], SEN169_FP16, STANDARD)";

DeviceGraph added(const std::string& row_layout) {
  return parse_device_graph("graph g { input x : float16[4, 128] " + std::string(kRows) +
                            " input r : float16[4] " + row_layout + " buffer y : float16[4, 128] " +
                            std::string(kRows) +
                            " node y (a: 4, b: 128) { v0 = load x[128*a + b] v1 = load r[a] v2 = add v0 v1 "
                            "store y[128*a + b] v2 } return y }")
      .value();
}

TEST(NormalOp, OneElementPerStickIsAddedToWholeRows) {
  const DeviceGraph graph = added("layout=([4, 64], [1, -1], SEN169_FP16, STANDARD)");
  const NormalOp op = judged(graph).value();
  EXPECT_THAT(coordinates(op, 0), ElementsAre("floor(b/64)", "a", "Mod(b, 64)"));
  EXPECT_THAT(coordinates(op, 1), ElementsAre("a", "0"));
  EXPECT_FALSE(is_restickify(op));
}

TEST(NormalOp, AnOperandWithoutLayoutIsLeftOutOfTheQuestion) {
  // Four numbers in one stick cannot be added to rows; with nothing said about them the others are fine.
  const DeviceGraph packed = added("layout=([1, 64], [64, 1], SEN169_FP16, STANDARD)");
  ASSERT_FALSE(judged(packed).ok());
  EXPECT_THAT(judged(packed).error().message, HasSubstr("stick runs along another dimension"));
  const DeviceGraph unknown = added("");
  const Result<NormalOp> open = judged(unknown);
  ASSERT_TRUE(open.ok());
  EXPECT_EQ(open.value().access.operands.size(), 2U);
}

TEST(NormalOp, ACopyIntoAnotherStickIsARestickify) {
  const auto copied = [](const std::string& to) {
    return parse_device_graph(
               "graph g { input x : float16[64, 128] layout=([2, 64, 64], [64, 128, 1], SEN169_FP16, "
               "STANDARD) "
               "buffer y : float16[64, 128] layout=(" +
               to +
               ", SEN169_FP16, STANDARD) "
               "node y (a: 64, b: 128) { v0 = load x[128*a + b] store y[128*a + b] v0 } return y }")
        .value();
  };
  const DeviceGraph same = copied("[64, 2, 64], [128, 64, 1]"),
                    other = copied("[1, 128, 64], [8192, 1, 128]");
  EXPECT_FALSE(is_restickify(judged(same).value()));
  const NormalOp restickified = judged(other).value();
  EXPECT_TRUE(is_restickify(restickified));
  EXPECT_THAT(coordinates(restickified, 1), ElementsAre("floor(a/64)", "b", "Mod(a, 64)"));
}

TEST(NormalOp, LoopsAreCutWhereAnOperandNeedsIt) {
  // (64, 4096) as 32 heads of 128: the columns of the flat side are two loops on the other.
  const DeviceGraph graph =
      parse_device_graph(
          "graph g { input x : float16[64, 4096] layout=([64, 64, 64], [64, 4096, 1], SEN169_FP16, "
          "STANDARD) buffer y : float16[32, 64, 128] layout=([64, 2, 32, 64], [128, 64, 8192, 1], "
          "SEN169_FP16, STANDARD) node y (l: 64, c: 4096) { v0 = load x[4096*l + c] "
          "store y[8192*floor(c/128) + 128*l + Mod(c, 128)] v0 } return y }")
          .value();
  const NormalOp op = judged(graph).value();
  EXPECT_THAT(coordinates(op, 0), ElementsAre("c_1", "floor(c_0/64)", "l", "Mod(c_0, 64)"));
  EXPECT_THAT(coordinates(op, 1), ElementsAre("l", "floor(c_0/64)", "c_1", "Mod(c_0, 64)"));
}

TEST(NormalOp, SpareDimsHoldNothingOfWhatIsWritten) {
  const DeviceAccess access{.dims = {{.size = 64}, {.size = 2, .unused = true}, {.size = 4, .loop = 0}},
                            .lanes = 64};
  EXPECT_EQ(spare_dim(access, 2, /*written=*/true), &access.dims[1]);
  EXPECT_EQ(spare_dim(access, 64, /*written=*/true), nullptr);  // in use, for all one knows
  EXPECT_EQ(spare_dim(access, 64, /*written=*/false), &access.dims[0]);
  EXPECT_EQ(spare_dim(access, 4, /*written=*/false), nullptr);  // walked by a loop
}

}  // namespace
}  // namespace spyre
