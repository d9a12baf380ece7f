// Random shapes of every class of operators, through views as programs have them: what the compiler writes,
// the card loads. The compiler may refuse; the card must not.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "spyre/driver/compile.h"
#include "spyre/program/read_program.h"

namespace spyre {
namespace {

using Sizes = std::vector<int64_t>;

class RandomGraph {
 public:
  RandomGraph(uint64_t seed, std::string name) : random_(seed) { graph_.name = std::move(name); }

  int64_t between(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random_);
  }
  bool chance(double p) { return std::bernoulli_distribution(p)(random_); }
  int64_t extent() {
    static const Sizes kExtents = {1, 2, 3, 5, 8, 16, 31, 32, 33, 63, 64, 65, 100, 128, 130, 192, 200};
    return kExtents[static_cast<size_t>(between(0, static_cast<int64_t>(kExtents.size()) - 1))];
  }
  int64_t few() { return between(1, 4); }

  void loops(const Sizes& outer, const Sizes& reduced = {}) {
    for (size_t i = 0; i < outer.size(); ++i)
      node_.loops.push_back({.name = "p" + std::to_string(i), .extent = outer[i]});
    for (size_t i = 0; i < reduced.size(); ++i) {
      node_.loops.push_back({.name = "r" + std::to_string(i), .extent = reduced[i], .reduced = true});
    }
  }

  Expr loop(size_t i) const { return Expr::symbol(node_.loops[i].name); }

  /// A value at these positions of a tensor with these sizes, which is a view of a larger one: its dimensions
  /// in another order, a part of some of them, a position chosen in others.
  int load(HostType type, const Sizes& size, std::vector<Expr> position) {
    std::vector<size_t> order(size.size());
    std::iota(order.begin(), order.end(), 0);
    if (chance(0.4)) std::shuffle(order.begin(), order.end(), random_);
    Sizes whole;
    std::vector<Expr> at;
    for (const size_t d : order) {
      if (chance(0.15)) {
        whole.push_back(between(2, 3));
        at.push_back(Expr::constant(between(0, whole.back() - 1)));
      }
      const bool cut = chance(0.15);
      const int64_t step = cut && chance(0.7) ? 64 : 1;
      const int64_t before = cut ? step * between(0, 2) : 0;
      whole.push_back(size[d] + before + (cut ? step * between(0, 2) : 0));
      at.push_back(size[d] == 1 ? Expr::constant(before) : position[d] + Expr::constant(before));
    }
    Instruction load;
    load.op = BodyOp::load;
    load.buffer = input(type, whole);
    load.dtype = type;
    const Sizes strides = contiguous_strides(whole);
    for (size_t i = 0; i < at.size(); ++i) load.index = load.index + strides[i] * at[i];
    return append(std::move(load));
  }

  /// The same over the first loops, some dimensions repeated.
  int operand(HostType type, size_t rank, double repeated = 0.2) {
    Sizes size;
    std::vector<Expr> position;
    for (size_t i = 0; i < rank; ++i) {
      size.push_back(chance(repeated) ? 1 : node_.loops[i].extent);
      position.push_back(loop(i));
    }
    return load(type, size, position);
  }

  int op(std::string name, std::vector<int> operands,
         std::vector<std::pair<std::string, double>> attributes = {}) {
    Instruction instruction;
    instruction.op = body_op_from_name(name).value();
    std::vector<HostType> types;
    for (const int o : operands) types.push_back(node_.body[static_cast<size_t>(o)].dtype);
    instruction.dtype = result_type(instruction.op, types);
    instruction.operands = std::move(operands);
    instruction.attributes = std::move(attributes);
    return append(std::move(instruction));
  }

  int as(int value, HostType type) {
    Instruction cast;
    cast.op = BodyOp::to_dtype;
    cast.operands = {value};
    cast.dtype = type;
    return append(std::move(cast));
  }

  /// Ends the graph: the value goes to a new tensor over the loops that remain.
  Graph stored(int value) {
    Sizes size;
    for (const Loop& l : node_.loops) {
      if (!l.reduced) size.push_back(l.extent);
    }
    const Sizes strides = contiguous_strides(size);
    Expr index;
    for (size_t i = 0; i < size.size(); ++i) {
      if (size[i] != 1) index = index + strides[i] * loop(i);
    }
    const HostType type = node_.body[static_cast<size_t>(value)].dtype;
    node_.name = "out";
    node_.target = graph_.add_buffer({.name = "out", .dtype = type, .size = size, .stride = strides});
    node_.target_index = index;
    node_.result = value;
    graph_.results.push_back(node_.target);
    graph_.nodes.push_back(std::move(node_));
    return std::move(graph_);
  }

  BufferId input(HostType type, const Sizes& size) {
    return graph_.add_buffer({.name = "x",
                              .dtype = type,
                              .size = size,
                              .stride = contiguous_strides(size),
                              .is_input = true,
                              .layout = DeviceLayout::standard(size, info_of(type).device_format).value()});
  }

  int append(Instruction instruction) {
    node_.body.push_back(std::move(instruction));
    return static_cast<int>(node_.body.size()) - 1;
  }

  HostType float_type() {
    const int64_t pick = between(0, 2);
    return pick == 0 ? HostType::kFloat16 : pick == 1 ? HostType::kBFloat16 : HostType::kFloat32;
  }

 private:
  std::mt19937_64 random_;
  Graph graph_;
  Node node_;
};

Sizes outer_sizes(RandomGraph& g) {
  Sizes sizes;
  for (int64_t rank = g.between(1, 5); rank > 1; --rank) sizes.push_back(g.few());
  sizes.push_back(g.extent());
  return sizes;
}

Graph product(uint64_t seed) {
  RandomGraph g(seed, "product");
  Sizes outer;
  for (int64_t batches = g.between(0, 4); batches > 0; --batches) outer.push_back(g.few());
  const size_t rank = outer.size();
  outer.insert(outer.end(), {g.extent(), g.extent()});
  const int64_t k = g.extent();
  g.loops(outer, {k});
  const auto operand = [&](bool left) {
    Sizes size;
    std::vector<Expr> position;
    for (size_t i = 0; i < rank; ++i) {
      size.push_back(g.chance(0.15) ? 1 : outer[i]);
      position.push_back(g.loop(i));
    }
    const Expr row = g.loop(rank), column = g.loop(rank + 1), depth = g.loop(rank + 2);
    size.insert(size.end(), {left ? outer[rank] : k, left ? k : outer[rank + 1]});
    position.insert(position.end(), {left ? row : depth, left ? depth : column});
    return g.load(HostType::kFloat16, size, position);
  };
  const int x = operand(true), w = operand(false);
  return g.stored(g.op("reduce.dot", {x, w}));
}

Graph pointwise(uint64_t seed) {
  RandomGraph g(seed, "pointwise");
  const Sizes outer = outer_sizes(g);
  g.loops(outer);
  const HostType type = g.chance(0.2) ? HostType::kInt64 : g.float_type();
  static const std::vector<std::string> kOps = {"add", "mul", "maximum", "lt"};
  const int x = g.operand(type, outer.size()), y = g.operand(type, outer.size());
  return g.stored(g.op(kOps[static_cast<size_t>(g.between(0, 3))], {x, y}));
}

Graph reduction(uint64_t seed) {
  RandomGraph g(seed, "reduction");
  Sizes outer = outer_sizes(g);
  const int64_t folded = g.between(1, 2);
  Sizes reduced;
  for (int64_t i = 0; i < folded; ++i) reduced.push_back(g.chance(0.5) ? g.extent() : g.few());
  if (g.chance(0.2)) outer.clear();
  g.loops(outer, reduced);
  const int x = g.operand(g.float_type(), outer.size() + reduced.size(), 0.05);
  static const std::vector<std::string> kKinds = {"sum", "max", "min", "prod", "any", "argmax"};
  return g.stored(g.op("reduce." + kKinds[static_cast<size_t>(g.between(0, 5))], {x}));
}

Graph conversion(uint64_t seed) {
  RandomGraph g(seed, "conversion");
  const Sizes outer = outer_sizes(g);
  g.loops(outer);
  static const std::vector<HostType> kTypes = {HostType::kFloat16, HostType::kFloat32, HostType::kInt64,
                                               HostType::kBool, HostType::kBFloat16};
  const auto type = [&] { return kTypes[static_cast<size_t>(g.between(0, 4))]; };
  const int x = g.operand(type(), outer.size(), 0.05);
  return g.stored(g.as(x, type()));
}

Graph movement(uint64_t seed) {
  RandomGraph g(seed, "movement");
  const Sizes outer = outer_sizes(g);
  g.loops(outer);
  return g.stored(g.operand(g.chance(0.2) ? HostType::kInt64 : g.float_type(), outer.size()));
}

Graph gather(uint64_t seed) {
  RandomGraph g(seed, "gather");
  const int64_t rows = g.extent(), width = g.extent();
  const Sizes positions = g.chance(0.5) ? Sizes{g.extent()} : Sizes{g.few(), g.extent()};
  Sizes outer = positions;
  outer.push_back(width);
  g.loops(outer);
  std::vector<Expr> at;
  for (size_t i = 0; i < positions.size(); ++i) at.push_back(g.loop(i));
  const int row =
      g.op("checked_index", {g.load(HostType::kInt64, positions, at)}, {{"size", static_cast<double>(rows)}});
  return g.stored(g.load(g.float_type(), {rows, width},
                         {Expr::indirect("v" + std::to_string(row)), g.loop(positions.size())}));
}

struct Class {
  const char* name;
  Graph (*make)(uint64_t seed);
  int shapes;
};

class RandomShapes : public testing::TestWithParam<Class> {};

TEST_P(RandomShapes, WhatCompilesLoads) {
  const Class& c = GetParam();
  int compiled = 0;
  for (int i = 0; i < c.shapes; ++i) {
    const auto seed = static_cast<uint64_t>(i);
    const Graph graph = c.make(seed);
    ASSERT_TRUE(verify(graph).ok()) << verify(graph).error().to_string() << to_text(graph);
    const Result<CompiledGraph> kernel = compile(graph, {.co_optimize = i % 8 == 0, .reorder = i % 8 == 0});
    if (!kernel.ok()) {
      ASSERT_EQ(kernel.error().kind, ErrorKind::kUnsupported) << kernel.error().to_string() << to_text(graph);
      continue;
    }
    ++compiled;
    const auto program = program::read_program(kernel.value().bundle.files);
    ASSERT_TRUE(program.ok()) << "seed " << seed << ": " << program.error().to_string() << "\n"
                              << to_text(graph);
  }
  RecordProperty("compiled", compiled);
  // Refusals are fine one by one; a class that is refused as a whole would test nothing.
  EXPECT_GT(compiled, c.shapes / 4);
}

INSTANTIATE_TEST_SUITE_P(Classes, RandomShapes,
                         testing::Values(Class{"Product", product, 1500}, Class{"Pointwise", pointwise, 400},
                                         Class{"Reduction", reduction, 400},
                                         Class{"Conversion", conversion, 300},
                                         Class{"Movement", movement, 400}, Class{"Gather", gather, 300}),
                         [](const auto& each) { return std::string(each.param.name); });

}  // namespace
}  // namespace spyre
