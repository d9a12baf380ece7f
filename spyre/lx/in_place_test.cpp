#include "spyre/lx/in_place.h"

#include <gtest/gtest.h>

#include "spyre/lx/test_graphs.h"

namespace spyre::lx {
namespace {

using test::Analysed;

TEST(InPlace, AResultTakesOverAnOperandThatDies) {
  const Analysed chain(test::laid_out(test::elementwise("x=64; a = exp x; b = neg a; c = abs b")));
  EXPECT_TRUE(same_mapping(chain.analysis, chain.holding("b"), chain.holding("a")));
  EXPECT_TRUE(may_take_over(chain.analysis, chain.holding("b"), chain.holding("a")));
  EXPECT_FALSE(same_mapping(chain.analysis, chain.holding("a"), chain.holding("b")));
}

TEST(InPlace, AnOperandThatIsReadLaterKeepsItsSlot) {
  const Analysed later(
      test::laid_out(test::elementwise("x=64; a = exp x; b = neg a; c = add a b; d = exp c")));
  EXPECT_TRUE(same_mapping(later.analysis, later.holding("b"), later.holding("a")));
  EXPECT_FALSE(may_take_over(later.analysis, later.holding("b"), later.holding("a")));
  EXPECT_TRUE(may_take_over(later.analysis, later.holding("c"), later.holding("a")));
}

TEST(InPlace, WhatIsNotReadByTheWriterIsNoParent) {
  const Analysed apart(test::laid_out(
      test::elementwise("x=64; y=64; a = exp x; b = exp y; c = neg a; d = neg b; e = add c d")));
  EXPECT_FALSE(same_mapping(apart.analysis, apart.holding("c"), apart.holding("b")));
}

TEST(InPlace, AnotherDivisionIsAnotherMapping) {
  DeviceGraph graph = test::laid_out(test::kRowsThenColumns);
  DeviceNode reader = graph.nodes[1];  // of b, so that it may live in LX
  reader.op.inputs[0].buffer = graph.find("b").value();
  reader.op.output.buffer = graph.add_buffer(graph.buffers[2]);
  graph.nodes.push_back(reader);
  graph.results = {reader.op.output.buffer};
  const Analysed disagree(std::move(graph));
  ASSERT_EQ(disagree.residency("b").ineligible, "");
  EXPECT_FALSE(same_mapping(disagree.analysis, disagree.holding("b"), disagree.holding("a")));
}

}  // namespace
}  // namespace spyre::lx
