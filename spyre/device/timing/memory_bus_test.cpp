#include "spyre/device/timing/memory_bus.h"

#include <gtest/gtest.h>

#include <limits>

#include "spyre/device/timing/ring_links.h"

namespace spyre::timing {
namespace {

TEST(MemoryBus, WhatAFullPortLeavesIsForTheOthers) {
  // The memory takes 1/6 ns for a byte. Stream a passes a port of 1, b and c wide ones: speeds 1, 2.5, 2.5.
  //
  //     a  |<------ 10 bytes, 10 ns ------>|
  //     b  |<- 10 bytes, 4 ns ->|
  //     c  |<- 10 bytes, 4 ns ->|
  MemoryBus bus;
  const auto a = bus.add({10, 1.0 / 6, bus.own_port(1), true});
  const auto b = bus.add({10, 1.0 / 6, bus.own_port(100), true});
  bus.add({10, 1.0 / 6, bus.own_port(100), false});
  EXPECT_NEAR(bus.until_next_end(), 4, 1e-12);
  EXPECT_NEAR(bus.speed(true), 3.5, 1e-12);
  EXPECT_NEAR(bus.speed(false), 2.5, 1e-12);
  bus.advance(4);
  EXPECT_TRUE(bus.done(b));
  EXPECT_FALSE(bus.done(a));
  EXPECT_NEAR(bus.until_next_end(), 6, 1e-12) << "alone it is no faster than its port";
  bus.advance(6);
  EXPECT_TRUE(bus.done(a));
  EXPECT_EQ(bus.until_next_end(), std::numeric_limits<double>::infinity());
  EXPECT_NEAR(bus.busy(), 30.0 / 6, 1e-12);
}

TEST(MemoryBus, StreamsOfOneCoreShareItsPort) {
  // Two streams of 6 bytes through one port of 2, another alone through its own of 2; the memory is idle half
  // of the time.
  MemoryBus bus;
  bus.add({6, 0.125, bus.port(3, 2), true});
  bus.add({6, 0.125, bus.port(3, 2), false});
  const auto alone = bus.add({6, 0.125, bus.port(4, 2), true});
  EXPECT_NEAR(bus.until_next_end(), 3, 1e-12);
  bus.advance(3);
  EXPECT_TRUE(bus.done(alone));
  EXPECT_NEAR(bus.until_next_end(), 3, 1e-12);
}

TEST(MemoryBus, AStreamForManyCoresHasTheShareOfAllOfThem) {
  // Of 5 bytes per ns a stream for four cores gets 4, its neighbour 1.
  MemoryBus bus;
  const auto four = bus.add({8, 0.2, bus.own_port(100), true, 4});
  const auto one = bus.add({8, 0.2, bus.own_port(100), true});
  EXPECT_NEAR(bus.until_next_end(), 2, 1e-12);
  bus.advance(2);
  EXPECT_TRUE(bus.done(four));
  EXPECT_FALSE(bus.done(one));
  EXPECT_NEAR(bus.until_next_end(), 6.0 / 5, 1e-12);
}

TEST(RingLinks, MessagesThatMeetOnALinkShareIt) {
  // Eight cores. 0 to 2 and 1 to 3 both pass the link from 1 to 2; 0 to 7 goes the other way round.
  //
  //     0 --5--> 1 --5+7--> 2 --7--> 3        7 <--100-- 0
  RingLinks links(8);
  links.send(0, 2, 5);
  links.send(1, 3, 7);
  EXPECT_EQ(links.busiest(), 12);
  links.send(0, 7, 100);
  EXPECT_EQ(links.busiest(), 100);
}

}  // namespace
}  // namespace spyre::timing
