#include "spyre/passes/select/select_ops.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>

#include "spyre/graph/device_op.h"

namespace spyre {
namespace {

using ::testing::HasSubstr;

Graph converting(HostType from, HostType to) {
  return parse_graph(fmt::format("graph g {{\n"
                                 "  input x : {0}[3, 70] stride=[70, 1]\n"
                                 "  buffer y : {1}[3, 70] stride=[70, 1]\n"
                                 "  node y (p0: 3, p1: 70) {{\n"
                                 "    v0 = load x[70*p0 + p1]\n"
                                 "    v1 = to_dtype v0 : {1}\n"
                                 "    store y[70*p0 + p1] v1\n"
                                 "  }}\n"
                                 "  return y\n"
                                 "}}\n",
                                 to_string(from), to_string(to)))
      .value();
}

bool is_computed_with(HostType type) {
  switch (type) {
    case HostType::kFloat16:
    case HostType::kBFloat16:
    case HostType::kFloat32:
    case HostType::kBool:
    case HostType::kInt32:
    case HostType::kInt64:
      return true;
    default:
      return false;
  }
}

TEST(SelectOps, EveryConversionHasAWayOrARefusal) {
  for (int i = 0; i < kHostTypeCount; ++i) {
    for (int j = 0; j < kHostTypeCount; ++j) {
      const auto from = static_cast<HostType>(i), to = static_cast<HostType>(j);
      SCOPED_TRACE(fmt::format("{} to {}", to_string(from), to_string(to)));
      const Result<DeviceGraph> selected = select_ops(converting(from, to));
      if (from == to || (is_computed_with(from) && is_computed_with(to))) {
        ASSERT_TRUE(selected.ok()) << selected.error().to_string();
        const DeviceGraph& graph = selected.value();
        EXPECT_TRUE(verify(graph).ok());
        EXPECT_EQ(graph.buffers[static_cast<size_t>(graph.results[0])].dtype, to);
      } else {
        ASSERT_FALSE(selected.ok());
        EXPECT_EQ(selected.error().kind, ErrorKind::kUnsupported);
        EXPECT_THAT(selected.error().to_string(), HasSubstr("the card"));
      }
    }
  }
}

TEST(SelectOps, NarrowingSaturatesUnlessTheValueIsKnownToBeSmall) {
  const auto clips = [](HostType from, HostType to) {
    const DeviceGraph graph = select_ops(converting(from, to)).value();
    return std::count_if(graph.nodes.begin(), graph.nodes.end(),
                         [](const DeviceNode& node) { return node.op.op == OpId::clip; });
  };
  EXPECT_EQ(clips(HostType::kFloat32, HostType::kFloat16), 1);
  EXPECT_EQ(clips(HostType::kFloat32, HostType::kBFloat16), 1);
  EXPECT_EQ(clips(HostType::kInt64, HostType::kFloat16), 0);  // 2^31 is within the range
  EXPECT_EQ(clips(HostType::kFloat16, HostType::kFloat32), 0);
}

}  // namespace
}  // namespace spyre
