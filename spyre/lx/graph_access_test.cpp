#include "spyre/lx/graph_access.h"

#include <gmock/gmock.h>

#include "spyre/lx/test_graphs.h"

namespace spyre::lx {
namespace {

using ::testing::ElementsAre;
using ::testing::FieldsAre;
using ::testing::IsEmpty;

TEST(GraphAccess, ListsWhoTouchesABufferInTheOrderTheyRun) {
  const DeviceGraph graph = test::laid_out(test::elementwise("x=64; a = exp x; b = neg x; c = add a b"));
  const GraphAccess access = access_of(graph).value();
  const auto touches = [&](std::string_view name) {
    return access.touches[static_cast<size_t>(graph.find(name).value())];
  };
  EXPECT_THAT(touches("x"), ElementsAre(FieldsAre(0, 0, false), FieldsAre(1, 0, false)));
  EXPECT_THAT(touches("a"), ElementsAre(FieldsAre(0, 1, true), FieldsAre(2, 0, false)));
  EXPECT_THAT(touches("c"), ElementsAre(FieldsAre(2, 2, true)));
}

TEST(GraphAccess, AnOperandKnowsItsBuffer) {
  const DeviceGraph graph = test::laid_out(test::elementwise("x=64; y=64; a = add x y"));
  const GraphAccess access = access_of(graph).value();
  for (size_t operand = 0; operand < 3; ++operand)
    EXPECT_EQ(operand_buffer(access.ops[0], operand), static_cast<BufferId>(operand));
}

TEST(GraphAccess, WhatNobodyTouchesHasNoTouches) {
  DeviceGraph graph = test::laid_out(test::elementwise("x=64; y=64; a = exp x"));
  const GraphAccess access = access_of(graph).value();
  EXPECT_THAT(access.touches[static_cast<size_t>(graph.find("y").value())], IsEmpty());
}

}  // namespace
}  // namespace spyre::lx
