#include "spyre/runtime/activity_log.h"

#include <gtest/gtest.h>

#include <thread>

#include "spyre/runtime/runtime.h"
#include "spyre/runtime/test_support.h"

namespace spyre {
namespace {

class Log : public testing::Test {
 protected:
  ~Log() override { (void)ActivityLog::instance().stop(); }

  ActivityLog& log = ActivityLog::instance();
  Runtime runtime{toy_card()};
  Card& card = *runtime.card(0).value();
  StreamRef stream = card.streams().default_stream();
  std::vector<std::byte> host = counting_up(256);

  void copy() {
    const MemoryRef memory = card.allocate(Bytes(256)).value();
    ASSERT_OK(copy_in(stream, MemoryView::whole(memory), host, Blocking::kYes));
  }
};

TEST_F(Log, KeepsCallsAndWhatTheyGaveTheCard) {
  log.start();
  CallOrigin::push(42);
  copy();
  CallOrigin::pop();
  const ActivityLog::Record record = log.stop();
  ASSERT_EQ(record.calls.size(), 3);  // malloc, copy, free
  EXPECT_EQ(record.calls[0].name, "spyreMalloc");
  const HostCall& copied = record.calls[1];
  EXPECT_EQ(copied.name, "spyreMemcpy");
  EXPECT_LE(copied.begin, copied.end);
  ASSERT_EQ(record.activities.size(), 1);
  const Activity& activity = record.activities[0];
  EXPECT_EQ(activity.kind, Activity::Kind::kToDevice);
  EXPECT_EQ(activity.size, Bytes(256));
  EXPECT_EQ(activity.call, copied.id);
  EXPECT_EQ(activity.asked, copied.begin);
  EXPECT_EQ(activity.origin, 42);
  EXPECT_EQ(copied.origin, 42);
}

TEST_F(Log, HasCallsOfOtherThreadsUnderTheirIds) {
  log.start();
  copy();
  std::thread([&] { copy(); }).join();
  const ActivityLog::Record record = log.stop();
  ASSERT_EQ(record.calls.size(), 6);
  EXPECT_NE(record.calls[0].thread, record.calls[3].thread);
  EXPECT_NE(record.calls[1].id, record.calls[4].id);
}

TEST_F(Log, ACallInsideAnotherIsPartOfIt) {
  log.start();
  ASSERT_OK(card.synchronize());  // which waits for every stream
  const ActivityLog::Record record = log.stop();
  ASSERT_EQ(record.calls.size(), 1);
  EXPECT_EQ(record.calls[0].name, "spyreDeviceSynchronize");
}

TEST_F(Log, KeepsNothingWhileNobodyListens) {
  log.start();
  (void)log.stop();
  copy();
  log.start();
  const ActivityLog::Record record = log.stop();
  EXPECT_TRUE(record.calls.empty());
  EXPECT_TRUE(record.activities.empty());
}

}  // namespace
}  // namespace spyre
