#include "spyre/passes/layout/layout_conversion.h"

#include <gmock/gmock.h>

#include <map>
#include <numeric>

#include "spyre/graph/normal_op.h"
#include "spyre/layout/element_map.h"
#include "spyre/passes/layout/assign_layouts.h"
#include "spyre/passes/layout/insert_copies.h"

namespace spyre {
namespace {

using enum ElementArrangement;

int64_t lanes_each(const DeviceLayout& layout) {
  return 64 / elems_per_stick(layout.device_dtype);
}

// Sticks along every dimension, in every order a conversion may leave them in, and one element to a stick.
std::vector<DeviceLayout> all_layouts(const std::vector<int64_t>& size, DataFormat format) {
  const std::vector<int64_t> stride = contiguous_strides(size);
  const auto rank = static_cast<int64_t>(size.size());
  std::vector<DeviceLayout> layouts;
  for (int64_t stick = rank - 1; stick >= -1; --stick) {
    std::vector<int64_t> order;
    for (int64_t d = 0; d < rank; ++d) {
      if (d != stick) order.push_back(d);
    }
    order.push_back(stick);
    DeviceLayout layout = DeviceLayout::ordered(size, stride, format, order).value();
    layouts.push_back(layout);
    if (stick < 0) continue;
    if (format == DataFormat::SEN169_FP16) layouts.push_back(layout.with_element_arrangement(FP32_TO_DL16));
    if (format != DataFormat::IEEE_FP32) continue;
    for (size_t d = 0; d + 1 < layout.device_size.size(); ++d) {
      if (layout.stride_map[d] == 32 * layout.stride_map.back())
        layout.device_size[d] += layout.device_size[d] % 2;
    }
    if (layout != layouts.back()) layouts.push_back(layout);  // pairs of sticks, as conversions need them
    layouts.push_back(layout.with_element_arrangement(DL16_TO_FP32));
  }
  return layouts;
}

// What lies where: 16-bit lanes of every memory, moved as the nodes say. The judge of where an element lies is ElementMap.
class Memories {
 public:
  explicit Memories(const DeviceGraph& graph) : graph_(graph) {}

  void fill(BufferId id) {
    for_each_element(id, [&](int64_t element, int64_t lane, int64_t& value) { value = 2 * element + lane; });
  }

  void run(const DeviceNode& node) {
    const DeviceOp& op = node.op;
    std::map<std::string, int64_t> at;
    walk(node, 0, at, op);
  }

  bool holds(BufferId id) {
    bool all = true;
    for_each_element(
        id, [&](int64_t element, int64_t lane, int64_t value) { all &= value == 2 * element + lane; });
    return all;
  }

 private:
  const Buffer& buffer(BufferId id) const { return graph_.buffers[static_cast<size_t>(id)]; }

  int64_t& lane(BufferId id, int64_t element, int64_t lane) {
    const DeviceLayout& layout = *buffer(id).layout;
    auto map = maps_.find(id);
    if (map == maps_.end()) map = maps_.emplace(id, ElementMap::of(layout).value()).first;
    const int64_t at = map->second.device_offset(element).value() * lanes_each(layout) + lane;
    return memory_[graph_.owner(id)].try_emplace(at, -1).first->second;
  }

  template <typename Visit>
  void for_each_element(BufferId id, const Visit& visit) {
    for (int64_t element = 0; element < buffer(id).elements(); ++element) {
      for (int64_t w = 0; w < lanes_each(*buffer(id).layout); ++w) visit(element, w, lane(id, element, w));
    }
  }

  static int64_t value_of(const Expr& index, const std::map<std::string, int64_t>& at) {
    int64_t value = index.constant_term();
    for (const auto& [name, position] : at) value += index.coefficient(name) * position;
    return value;
  }

  void walk(const DeviceNode& node, size_t loop, std::map<std::string, int64_t>& at, const DeviceOp& op) {
    if (loop < node.loops.size()) {
      for (int64_t i = 0; i < node.loops[loop].extent; ++i) {
        at[node.loops[loop].name] = i;
        walk(node, loop + 1, at, op);
      }
      return;
    }
    const Access &from = op.inputs[0], &to = op.output;
    for (int64_t w = 0; w < lanes_each(*buffer(to.buffer).layout); ++w) {
      const int64_t moved = lane(from.buffer, value_of(from.index, at), w);
      lane(to.buffer, value_of(to.index, at), w) = moved;
    }
  }

  const DeviceGraph& graph_;
  std::map<BufferId, ElementMap> maps_;
  std::map<BufferId, std::map<int64_t, int64_t>> memory_;
};

struct Case {
  HostType dtype;
  DataFormat format;
  std::vector<int64_t> size;
};

// A graph that reads x in another layout than it has; the reader is the last node.
DeviceGraph converted(const Case& c, const std::vector<std::vector<DeviceLayout>>& candidates,
                      const DeviceGraph& before, Conversions& conversions, int from, int to) {
  DeviceGraph graph = before;
  LayoutChoice choice{.layout = {from, to}, .read_as = {{to}}, .bytes = 0};
  insert_copies(graph, candidates, conversions, choice);
  EXPECT_GT(graph.nodes.size(), 1U) << c.size.size();
  return graph;
}

class EveryPairOfLayouts : public testing::TestWithParam<Case> {};

TEST_P(EveryPairOfLayouts, IsJoinedByCopiesThatTheCardTakesAndThatKeepEveryElement) {
  const Case& c = GetParam();
  DeviceGraph graph;
  graph.name = "g";
  const std::vector<int64_t> stride = contiguous_strides(c.size);
  graph.add_buffer({.name = "x", .dtype = c.dtype, .size = c.size, .stride = stride, .is_input = true});
  graph.add_buffer({.name = "y", .dtype = c.dtype, .size = c.size, .stride = stride});
  graph.results = {1};
  DeviceNode node{{.name = "y"}};
  Expr index;
  for (size_t d = 0; d < c.size.size(); ++d) {
    node.loops.push_back({.name = "p" + std::to_string(d), .extent = c.size[d]});
    index = index + stride[d] * Expr::symbol(node.loops.back().name);
  }
  node.op = {.inputs = {{0, index}}, .output = {1, index}};
  graph.nodes.push_back(node);

  const std::vector<DeviceLayout> layouts = all_layouts(c.size, c.format);
  const std::vector<std::vector<DeviceLayout>> candidates = {layouts, layouts};
  Conversions conversions(graph, candidates, {.interleave = true, .words = true});
  const int count = static_cast<int>(layouts.size());
  for (int from = 0; from < count; ++from) {
    for (int to = 0; to < count; ++to) {
      if (from == to) continue;
      SCOPED_TRACE(layouts[static_cast<size_t>(from)].to_string() + " -> " +
                   layouts[static_cast<size_t>(to)].to_string());
      const Conversion* conversion = conversions.find(0, from, to);
      ASSERT_NE(conversion, nullptr);
      const Conversion* back = conversions.find(0, to, from);
      ASSERT_NE(back, nullptr);
      const auto plain = [&](int i) {
        const DeviceLayout& layout = layouts[static_cast<size_t>(i)];
        return layout.stride_map.back() > 0 && layout.element_arrangement == STANDARD;
      };
      if (plain(from) && plain(to)) {
        EXPECT_EQ(conversion->bytes, back->bytes);
      }
      const DeviceGraph made = converted(c, candidates, graph, conversions, from, to);
      Memories memories(made);
      memories.fill(0);
      int64_t bytes = 0;
      for (size_t n = 0; n + 1 < made.nodes.size(); ++n) {
        const auto operands = operand_layouts(made, made.nodes[n]);
        const auto normal = normalize_op(made, made.nodes[n], operands);
        EXPECT_TRUE(normal.ok()) << normal.error().message << "\n" << to_text(made);
        for (const DeviceLayout* layout : operands) bytes += bytes_of(*layout);
        memories.run(made.nodes[n]);
      }
      EXPECT_EQ(bytes, conversion->bytes);
      EXPECT_TRUE(memories.holds(made.nodes.back().op.inputs[0].buffer)) << to_text(made);
      EXPECT_TRUE(verify(made).ok());
    }
  }
}

constexpr auto kHalf = DataFormat::SEN169_FP16;
constexpr auto kFloat = DataFormat::IEEE_FP32;
constexpr auto kInt = DataFormat::IEEE_INT32;

INSTANTIATE_TEST_SUITE_P(
    SmallShapes, EveryPairOfLayouts,
    testing::Values(Case{HostType::kFloat16, kHalf, {64, 128}}, Case{HostType::kFloat16, kHalf, {3, 70}},
                    Case{HostType::kFloat32, kFloat, {64, 64}}, Case{HostType::kFloat32, kFloat, {33, 70}},
                    Case{HostType::kFloat32, kFloat, {3, 31}}, Case{HostType::kFloat32, kFloat, {2, 5, 40}},
                    Case{HostType::kFloat32, kFloat, {70}}, Case{HostType::kInt32, kInt, {33, 70}},
                    Case{HostType::kInt32, kInt, {64, 32}}, Case{HostType::kInt32, kInt, {7, 3, 33}}));

// Edges into another order of lanes exist only where they are asked for.
TEST(LayoutConversion, LanesStayInPlaceUnlessTheyMayMove) {
  DeviceGraph graph;
  graph.name = "g";
  const std::vector<int64_t> size = {33, 70};
  graph.add_buffer(
      {.name = "x", .dtype = HostType::kFloat32, .size = size, .stride = {70, 1}, .is_input = true});
  const std::vector<std::vector<DeviceLayout>> candidates = {all_layouts(size, kFloat)};
  Conversions conversions(graph, candidates);
  EXPECT_EQ(candidates[0][2].element_arrangement, DL16_TO_FP32);
  EXPECT_EQ(conversions.find(0, 2, 0), nullptr);  // into the standard order
  EXPECT_EQ(candidates[0][3].stride_map.back(), 70);
  EXPECT_EQ(conversions.find(0, 0, 3), nullptr);  // along columns
}

// An image of one row is [images, 1, width, channels]; its pixels are walked as one all the same.
TEST(LayoutConversion, DimensionsAreOneAcrossOneOfASinglePosition) {
  DeviceGraph graph;
  graph.name = "g";
  graph.add_buffer({.name = "x",
                    .dtype = HostType::kFloat16,
                    .size = {3, 1, 31, 15},
                    .stride = {465, 465, 15, 1},
                    .is_input = true});
  const auto along = [](const std::vector<int64_t>& order) {
    const std::vector<int64_t> pixels = {93, 15};
    return DeviceLayout::ordered(pixels, contiguous_strides(pixels), kHalf, order).value();
  };
  const std::vector<std::vector<DeviceLayout>> candidates = {{along({0, 1}), along({1, 0})}};
  Conversions conversions(graph, candidates);
  const Conversion* restickified = conversions.find(0, 0, 1);
  ASSERT_NE(restickified, nullptr);
  EXPECT_EQ(restickified->steps.size(), 1U);
  const DeviceNode copy = copy_node(graph, 0, 0, candidates[0][0], candidates[0][1]);
  EXPECT_THAT(copy.loops,
              testing::ElementsAre(testing::Field(&Loop::extent, 93), testing::Field(&Loop::extent, 15)));
}

// The taps of a convolution are buffers of one shape: one search answers for all of them, and counts once.
TEST(LayoutConversion, PermutationsAreSearchedForOncePerShape) {
  const auto words = [](const std::vector<int64_t>& size) {
    return Buffer{.name = "x", .dtype = HostType::kFloat32, .size = size, .stride = contiguous_strides(size)};
  };
  const auto along = [](const std::vector<int64_t>& size, const std::vector<int64_t>& order) {
    return DeviceLayout::ordered(size, contiguous_strides(size), kFloat, order).value();
  };
  const auto transposed = [&](LanePermutations& permutations, const std::vector<int64_t>& size) {
    return permutations.find(words(size), along(size, {0, 1}), along(size, {1, 0}), PartOf::kItself);
  };
  LanePermutations permutations(/*most=*/1);
  const auto first = transposed(permutations, {33, 70});
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(transposed(permutations, {33, 70}), first);
  EXPECT_EQ(transposed(permutations, {33, 71}), nullptr);  // no search is left
  LanePermutations others(/*most=*/1);
  EXPECT_NE(transposed(others, {33, 71}), nullptr);
}

}  // namespace
}  // namespace spyre
