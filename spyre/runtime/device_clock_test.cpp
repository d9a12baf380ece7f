#include "spyre/runtime/device_clock.h"

#include <gtest/gtest.h>

#include <thread>

#include "spyre/cost/copy.h"
#include "spyre/runtime/runtime.h"
#include "spyre/runtime/test_support.h"

namespace spyre {
namespace {

constexpr Nanos ns(double time) {
  return {time};
}

TimeSpan span(double begin, double end) {
  return {ns(begin), ns(end)};
}

bool operator==(const TimeSpan& a, const TimeSpan& b) {
  return a.begin == b.begin && a.end == b.end;
}

/// Runs in a thread of its own, which has seen nothing yet.
template <typename Body>
void as_new_thread(Body body) {
  std::thread(body).join();
}

TEST(DeviceClock, StreamsOverlapAndEnginesDoNot) {
  // stream 1  |-20-|--- cores 50 ---|
  // stream 2  |-20-|                |-- cores 30 --|
  // stream 3  |---- H2D 60 ----|
  as_new_thread([] {
    DeviceClock clock;
    EXPECT_TRUE(clock.spend(1, ns(20)) == span(0, 20));
    EXPECT_TRUE(clock.spend(1, ns(50), Engine::kCores) == span(20, 70));
    EXPECT_TRUE(clock.spend(2, ns(20)) == span(0, 20));
    EXPECT_TRUE(clock.spend(2, ns(30), Engine::kCores) == span(70, 100));
    EXPECT_TRUE(clock.spend(3, ns(60), Engine::kToDevice) == span(0, 60));
    EXPECT_EQ(clock.now(1), ns(70));
    EXPECT_EQ(clock.now(2), ns(100));
  });
}

TEST(DeviceClock, BothDirectionsOfTheLinkWorkAtOnce) {
  as_new_thread([] {
    DeviceClock clock;
    EXPECT_TRUE(clock.spend(1, ns(60), Engine::kToDevice) == span(0, 60));
    EXPECT_TRUE(clock.spend(2, ns(60), Engine::kToHost) == span(0, 60));
    EXPECT_TRUE(clock.spend(3, ns(60), Engine::kToHost) == span(60, 120));
  });
}

TEST(DeviceClock, NothingBeginsBeforeWhatItsThreadWaitedFor) {
  as_new_thread([] {
    DeviceClock clock;
    clock.spend(1, ns(50));
    EXPECT_TRUE(clock.spend(2, ns(1)) == span(0, 1)) << "not waited yet";
    thread_saw(clock.now(1));
    EXPECT_TRUE(clock.spend(2, ns(1)) == span(50, 51));
    as_new_thread([&] { EXPECT_TRUE(clock.spend(3, ns(1)) == span(0, 1)) << "this thread did not wait"; });
  });
}

TEST(DeviceClock, LaunchesCostTheirThreadTime) {
  // thread  |--30--|--30--|--30--|
  // cores          |-20-|  |--- 40 ---|-20-|      the third is set up at 90, the cores are free at 100
  as_new_thread([] {
    DeviceClock clock;
    thread_spent(ns(30));
    EXPECT_TRUE(clock.spend(1, ns(20), Engine::kCores) == span(30, 50));
    thread_spent(ns(30));
    EXPECT_TRUE(clock.spend(1, ns(40), Engine::kCores) == span(60, 100));
    thread_spent(ns(30));
    EXPECT_TRUE(clock.spend(1, ns(20), Engine::kCores) == span(100, 120));
    EXPECT_EQ(thread_time(), ns(90)) << "it does not wait for the cores";
  });
}

TEST(DeviceClock, StandsStillWhenItDoesNotRun) {
  DeviceClock clock(false);
  EXPECT_TRUE(clock.spend(1, ns(50)) == span(0, 0));
  clock.wait(1, ns(70));
  EXPECT_EQ(clock.now(1), ns(0));
}

TEST(StreamTime, EventsCarryItToOtherStreams) {
  // a  |---- 40 ----|x        x: recorded, then waited for
  // b  |10|         |-- 20 --|
  as_new_thread([] {
    const auto clock = std::make_shared<DeviceClock>();
    const auto a = std::make_shared<Stream>(0, 1, 0, clock), b = std::make_shared<Stream>(0, 2, 0, clock);
    Event begin, middle, end;
    ASSERT_OK(begin.record(b));
    b->spend(ns(10));
    a->spend(ns(40));
    ASSERT_OK(middle.record(a));
    ASSERT_OK(middle.block(b));
    EXPECT_TRUE(b->spend(ns(20)) == span(40, 60));
    ASSERT_OK(end.record(b));
    EXPECT_DOUBLE_EQ(begin.elapsed_ms(end).value(), 60e-6);
    EXPECT_DOUBLE_EQ(end.elapsed_ms(middle).value(), -20e-6);
  });
}

TEST(StreamTime, EventsOfAStoppedClockMeasureNothing) {
  const auto stream = std::make_shared<Stream>(0, 1, 0, std::make_shared<DeviceClock>(false));
  Event begin, end;
  ASSERT_OK(begin.record(stream));
  ASSERT_OK(end.record(stream));
  EXPECT_EQ(begin.elapsed_ms(end).error().message,
            "elapsed time needs the simulated clock, which does not run");
}

class CopyTime : public testing::Test {
 protected:
  Runtime runtime{toy_card()};
  Card& card = *runtime.card(0).value();
  StreamRef stream = card.streams().default_stream();
  std::vector<std::byte> host = counting_up(1024);

  /// Simulated ns that `work` takes on the stream.
  template <typename Work>
  double time(Work work) {
    Event begin, end;
    EXPECT_OK(begin.record(stream));
    work();
    EXPECT_OK(end.record(stream));
    EXPECT_OK(end.synchronize());
    return begin.elapsed_ms(end).value() * 1e6;
  }
};

TEST_F(CopyTime, CopiesTakeWhatTheLinkTakes) {
  const MemoryRef memory = card.allocate(Bytes(1024)).value();
  const MemoryView view = MemoryView::whole(memory);
  // 1 us to start, 1024 bytes at 57.6 GB/s
  EXPECT_NEAR(time([&] { ASSERT_OK(copy_in(stream, view, host, Blocking::kYes)); }), 1000 + 1024 / 57.6,
              1e-6);
  EXPECT_NEAR(time([&] { ASSERT_OK(copy_out(stream, view, host, Blocking::kNo)); }), 1000 + 1024 / 57.6,
              1e-6);
  // 512 bytes read and 512 written at 150 GB/s, and the bus turned around
  EXPECT_NEAR(time([&] {
                ASSERT_OK(copy_between(stream, {memory, Bytes(0), Bytes(512)},
                                       {memory, Bytes(512), Bytes(512)}, Blocking::kYes));
              }),
              1024.0 / 150 + 512 * 0.00574, 1e-6);
}

TEST_F(CopyTime, WhoWaitsForACopyGivesWorkAfterIt) {
  as_new_thread([&] {
    const MemoryRef memory = card.allocate(Bytes(1024)).value();
    ASSERT_OK(copy_in(stream, MemoryView::whole(memory), host, Blocking::kNo));
    const StreamRef other = card.streams().next(0);
    EXPECT_EQ(other->device_time(), ns(0));
    ASSERT_OK(stream->synchronize());
    EXPECT_EQ(other->device_time(), stream->device_time());
  });
}

TEST_F(CopyTime, RefusedCopiesTakeNone) {
  const MemoryRef memory = card.allocate(Bytes(1024)).value();
  EXPECT_EQ(time([&] {
              (void)transfer(
                  stream, MemoryView::whole(memory), TransferDirection::kToDevice,
                  [](std::span<std::byte>) { return Status(Error(ErrorKind::kInvalidArgument, "no")); },
                  Blocking::kYes);
            }),
            0);
}

}  // namespace
}  // namespace spyre
