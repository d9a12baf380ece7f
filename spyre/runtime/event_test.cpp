#include "spyre/runtime/event.h"

#include <gmock/gmock.h>

#include <thread>

#include "spyre/runtime/stream.h"
#include "spyre/runtime/test_support.h"

namespace spyre {
namespace {

TEST(Event, NeverRecordedCountsAsReached) {
  const Event event;
  EXPECT_TRUE(event.query().value());
  EXPECT_OK(event.synchronize());
  EXPECT_OK(event.block(make_stream()));
}

TEST(Event, IsReachedWhenTheWorkBeforeItIsDone) {
  const StreamRef stream = make_stream();
  Event event;
  Gate gate;
  ASSERT_OK(stream->enqueue(gate.work()));
  ASSERT_OK(event.record(stream));
  EXPECT_FALSE(event.query().value());
  gate.open();
  EXPECT_OK(event.synchronize());
  EXPECT_TRUE(event.query().value());
}

TEST(Event, OrdersWorkAcrossStreamsOfDifferentCards) {
  const StreamRef producer = make_stream(0), consumer = make_stream(1);
  Gate gate;
  int value = 0, seen = 0;  // ordered by the event alone
  ASSERT_OK(producer->enqueue(gate.work()));
  ASSERT_OK(producer->enqueue([&]() -> Status {
    value = 42;
    return {};
  }));
  Event event;
  ASSERT_OK(event.record(producer));
  ASSERT_OK(event.block(consumer));
  ASSERT_OK(consumer->enqueue([&]() -> Status {
    seen = value;
    return {};
  }));
  EXPECT_FALSE(consumer->query().value());
  gate.open();
  ASSERT_OK(consumer->synchronize());
  EXPECT_EQ(seen, 42);
}

TEST(Event, CarriesAFailureToTheStreamThatWaits) {
  const StreamRef producer = make_stream(), consumer = make_stream();
  Gate gate;
  ASSERT_OK(producer->enqueue(gate.work()));
  ASSERT_OK(producer->enqueue([] { return Status(Error(ErrorKind::kDeviceFault, "boom")); }));
  Event event;
  ASSERT_OK(event.record(producer));
  ASSERT_OK(event.block(consumer));
  gate.open();
  EXPECT_EQ(event.synchronize().error().message, "boom");
  EXPECT_EQ(event.query().error().message, "boom");
  EXPECT_EQ(consumer->synchronize().error().message, "boom");
}

TEST(Event, ElapsedTimeCoversTheWorkBetweenTwoRecords) {
  const StreamRef stream = make_stream();
  Event begin, end;
  Gate gate;
  ASSERT_OK(begin.record(stream));
  ASSERT_OK(stream->enqueue(gate.work()));
  stream->spend({5e6});
  ASSERT_OK(end.record(stream));
  EXPECT_EQ(begin.elapsed_ms(end).error().kind, ErrorKind::kInvalidArgument) << "not reached yet";
  gate.open();
  ASSERT_OK(end.synchronize());
  EXPECT_DOUBLE_EQ(begin.elapsed_ms(end).value(), 5.0);
  EXPECT_DOUBLE_EQ(end.elapsed_ms(begin).value(), -5.0);
}

TEST(Event, ElapsedTimeNeedsTwoRecordedEvents) {
  Event recorded;
  const Event never;
  ASSERT_OK(recorded.record(make_stream()));
  EXPECT_EQ(recorded.elapsed_ms(never).error().notes,
            std::vector<std::string>{"the second was never recorded"});
  EXPECT_EQ(never.elapsed_ms(recorded).error().notes,
            std::vector<std::string>{"the first was never recorded"});
}

TEST(Event, RecordingAgainMovesIt) {
  const StreamRef stream = make_stream();
  Event event;
  ASSERT_OK(event.record(stream));
  EXPECT_TRUE(event.query().value());
  Gate gate;
  ASSERT_OK(stream->enqueue(gate.work()));
  ASSERT_OK(event.record(stream));
  EXPECT_FALSE(event.query().value());
}

TEST(Event, CannotBeRecordedOnAClosedStream) {
  const StreamRef stream = make_stream();
  stream->close();
  Event event;
  EXPECT_EQ(event.record(stream).error().kind, ErrorKind::kShutdown);
  EXPECT_FALSE(event.recorded());
}

}  // namespace
}  // namespace spyre
