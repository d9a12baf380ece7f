#include "spyre/runtime/runtime.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <thread>

#include "spyre/base/log.h"
#include "spyre/runtime/test_support.h"
#include "spyre/runtime/visible_devices.h"

namespace spyre {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(VisibleDevices, DefaultToOneCard) {
  EXPECT_THAT(visible_devices().value(), ElementsAre(0));
}

TEST(VisibleDevices, AreAsManyAsTheWorldWhateverTheMode) {
  const ScopedEnvironment world("AIU_WORLD_SIZE", "3");
  for (const char* mode : {"MOCK", "PF", "VF"}) {
    const ScopedEnvironment flex("FLEX_DEVICE", mode);
    EXPECT_THAT(visible_devices().value(), ElementsAre(0, 1, 2));
  }
}

TEST(VisibleDevices, AreFilteredByValidUniqueIndices) {
  const ScopedEnvironment world("AIU_WORLD_SIZE", "4");
  {
    const ScopedEnvironment filter("SPYRE_DEVICES", "2, 0,2,9,-1");
    EXPECT_THAT(visible_devices().value(), ElementsAre(2, 0));
  }
  const ScopedEnvironment filter("SPYRE_DEVICES", "7");
  EXPECT_THAT(visible_devices().value(), IsEmpty());
}

TEST(VisibleDevices, RefuseAMalformedWorld) {
  for (const char* size : {"0", "nine", "-1"}) {
    const ScopedEnvironment world("AIU_WORLD_SIZE", size);
    EXPECT_EQ(visible_devices().error().kind, ErrorKind::kInvalidArgument) << size;
  }
  const ScopedEnvironment flex("FLEX_DEVICE", "CUDA");
  EXPECT_THAT(visible_devices().error().message, HasSubstr("FLEX_DEVICE='CUDA'"));
}

TEST(VisibleDevices, RefuseWhatIsNoIndex) {
  const ScopedEnvironment devices("SPYRE_DEVICES", "0,two");
  EXPECT_THAT(visible_devices().error().message, HasSubstr("SPYRE_DEVICES='0,two' is not allowed: 'two'"));
}

TEST(Runtime, RefusesToStartWithAnyMalformedSettingAndNamesIt) {
  Runtime runtime(toy_card());
  {
    const ScopedEnvironment solver("LAYOUT_SOLVER", "magic");
    EXPECT_THAT(runtime.card(0).error().message, HasSubstr("LAYOUT_SOLVER='magic' is not allowed"));
  }
  EXPECT_OK(runtime.card(0));
}

TEST(Runtime, SaysHowMuchTensorsCanUseBeforeAndAfterItStarts) {
  Runtime runtime(toy_card());
  const Bytes before = runtime.tensor_memory().value();
  const Card& card = *runtime.card(0).value();
  EXPECT_EQ(before, runtime.tensor_memory().value());
  EXPECT_EQ(before, card.allocator().info().total);
}

TEST(Runtime, CountingDevicesStartsNothing) {
  const Runtime runtime(toy_card());
  EXPECT_EQ(runtime.device_count().value(), 1);
  EXPECT_FALSE(runtime.started());
}

TEST(Runtime, TheProcessWideOneExistsWithoutBeingStarted) {
  EXPECT_FALSE(Runtime::instance().started());
  EXPECT_EQ(&Runtime::instance(), &Runtime::instance());
}

TEST(Runtime, EightThreadsThatAskAtOnceGetTheSameCard) {
  Runtime runtime(toy_card());
  std::vector<Card*> cards(8);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] { cards[i] = runtime.card(0).value(); });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_TRUE(runtime.started());
  EXPECT_THAT(cards, testing::Each(cards[0]));
}

TEST(Runtime, LogsWithoutHoldingItsLock) {
  Runtime runtime(toy_card());
  int messages = 0;
  LogSink before = set_log_sink([&](LogLevel, std::string_view, std::string_view) {
    ++messages;
    EXPECT_FALSE(runtime.card(5).ok());  // takes the runtime's lock; hangs if it is held
  });
  EXPECT_OK(runtime.card(0));
  set_log_sink(std::move(before));
  EXPECT_EQ(messages, 2);  // started, card made
}

TEST(Runtime, ABadIndexSaysHowManyDevicesThereAre) {
  const ScopedEnvironment world("AIU_WORLD_SIZE", "2");
  Runtime runtime(toy_card());
  EXPECT_OK(runtime.card(1));
  for (const int index : {-1, 2, 100}) {
    const auto card = runtime.card(index);
    ASSERT_FALSE(card.ok());
    EXPECT_EQ(card.error().kind, ErrorKind::kOutOfRange);
    EXPECT_EQ(card.error().message, "Device index out of bounds. logical_device_id=" + std::to_string(index) +
                                        ", number of visible devices=2");
  }
}

TEST(Runtime, CardsDoNotShareMemoryTokensOrStreams) {
  const ScopedEnvironment world("AIU_WORLD_SIZE", "2");
  Runtime runtime(toy_card());
  Card& zero = *runtime.card(0).value();
  Card& one = *runtime.card(1).value();
  const MemoryRef a = zero.allocate(Bytes(128)).value(), b = one.allocate(Bytes(128)).value();
  EXPECT_EQ(a->address(), b->address());
  EXPECT_NE(a->token(), b->token());
  EXPECT_EQ(b->device_index(), 1);
  EXPECT_NE(zero.streams().default_stream(), one.streams().default_stream());
  EXPECT_EQ(one.streams().default_stream()->device_index(), 1);
}

TEST(Runtime, FindsTheBlockOfATokenOnAnyCard) {
  const ScopedEnvironment world("AIU_WORLD_SIZE", "2");
  Runtime runtime(toy_card());
  EXPECT_EQ(runtime.find(&runtime).error().kind, ErrorKind::kNotFound);
  EXPECT_OK(runtime.card(0));
  MemoryRef memory = runtime.card(1).value()->allocate(Bytes(256)).value();
  const auto* inside = static_cast<const std::byte*>(memory->token()) + 200;
  EXPECT_EQ(runtime.find(inside).value(), memory);
  memory.reset();
  EXPECT_EQ(runtime.find(inside).error().kind, ErrorKind::kUseAfterFree);
  EXPECT_EQ(runtime.find(&runtime).error().kind, ErrorKind::kNotFound);
}

TEST(Runtime, SettingsShapeTheCard) {
  const ScopedEnvironment flex("FLEX_DEVICE", "VF");
  const ScopedEnvironment memory("SPYRE_CARD_MEMORY_GIB", "24");
  const ScopedEnvironment streams("TORCH_SPYRE_NUM_HOST_COMPUTE_STREAMS", "2");
  Runtime runtime(spyre_card());
  Card& card = *runtime.card(0).value();
  EXPECT_EQ(card.allocator().info().total, gibibytes(24));
  EXPECT_EQ(card.allocator().info().largest_free, gibibytes(12));
  EXPECT_OK(card.streams().find(66));
  EXPECT_FALSE(card.streams().find(67).ok());
}

TEST(Runtime, AFailedStartCanBeRepairedAndTriedAgain) {
  Runtime runtime(toy_card());
  {
    const ScopedEnvironment streams("TORCH_SPYRE_NUM_HOST_COMPUTE_STREAMS", "0");
    EXPECT_EQ(runtime.card(0).error().kind, ErrorKind::kInvalidArgument);
    EXPECT_FALSE(runtime.started());
  }
  EXPECT_OK(runtime.card(0));
}

TEST(Runtime, ACompileWorkerNeverOpensTheDevice) {
  const ScopedEnvironment worker("IS_INDUCTOR_SPAWNED_SUBPROCESS", "1");
  Runtime runtime(toy_card());
  EXPECT_TRUE(runtime.in_bad_fork());
  EXPECT_EQ(runtime.device_count().value(), 1);
  EXPECT_EQ(runtime.card(0).error().kind, ErrorKind::kBadFork);
}

TEST(Runtime, BytesSurviveTheTripToTheCardAndBack) {
  Runtime runtime(toy_card(), Fence::kStrict);
  Card& card = *runtime.card(0).value();
  const MemoryRef memory = card.allocate(Bytes(391)).value();  // three sticks and seven bytes
  const StreamRef stream = card.streams().next(0);
  const auto sent = counting_up(391);
  std::vector<std::byte> received(391);
  ASSERT_OK(copy_in(stream, MemoryView::whole(memory), sent, Blocking::kNo));
  ASSERT_OK(copy_out(stream, MemoryView::whole(memory), received, Blocking::kYes));
  EXPECT_EQ(received, sent);
}

TEST(Runtime, SynchronizeReportsAPoisonedStreamOfAnyCard) {
  const ScopedEnvironment world("AIU_WORLD_SIZE", "2");
  Runtime runtime(toy_card());
  EXPECT_OK(runtime.synchronize());  // no card, nothing to wait for
  EXPECT_OK(runtime.card(0));
  const StreamRef stream = runtime.card(1).value()->streams().next(-1);
  ASSERT_OK(stream->enqueue([] { return Status(Error(ErrorKind::kDeviceFault, "boom")); }));
  EXPECT_EQ(runtime.synchronize().error().message, "boom");
}

// --- shutdown ---------------------------------------------------------------------------------------------

TEST(Shutdown, BeforeStartDoesNothing) {
  Runtime runtime(toy_card());
  runtime.shutdown();
  EXPECT_OK(runtime.card(0));
}

TEST(Shutdown, FinishesQueuedWorkThenRefusesEverything) {
  Runtime runtime(toy_card(), Fence::kStrict);
  Card& card = *runtime.card(0).value();
  const MemoryRef memory = card.allocate(Bytes(128)).value();
  const StreamRef stream = card.streams().next(0);
  const auto sent = counting_up(128);
  std::vector<std::byte> received(128);
  Gate gate;
  ASSERT_OK(stream->enqueue(gate.work()));
  ASSERT_OK(copy_in(stream, MemoryView::whole(memory), sent, Blocking::kNo));
  ASSERT_OK(copy_out(stream, MemoryView::whole(memory), received, Blocking::kNo));
  std::thread opener([&] { gate.open(); });
  runtime.shutdown();
  opener.join();
  EXPECT_EQ(received, sent);

  EXPECT_FALSE(runtime.started());
  EXPECT_EQ(runtime.card(0).error().kind, ErrorKind::kShutdown);
  EXPECT_EQ(runtime.start().error().kind, ErrorKind::kShutdown);
  EXPECT_EQ(card.allocate(Bytes(128)).error().kind, ErrorKind::kShutdown);
  EXPECT_EQ(copy_in(stream, MemoryView::whole(memory), sent, Blocking::kYes).error().kind,
            ErrorKind::kShutdown);
  EXPECT_EQ(card.streams().next(0)->enqueue([] { return Status(); }).error().kind, ErrorKind::kShutdown);
  runtime.shutdown();  // harmless
}

TEST(Shutdown, WorkThatWaitsForAnotherStreamStillFinishes) {
  Runtime runtime(toy_card());
  Card& card = *runtime.card(0).value();
  const StreamRef late = card.streams().next(0), early = card.streams().next(0);
  bool ran = false;
  Gate gate;
  ASSERT_OK(early->enqueue(gate.work()));
  Event event;
  ASSERT_OK(event.record(early));
  ASSERT_OK(event.block(late));  // the stream closed first waits for the one closed second
  ASSERT_OK(late->enqueue([&]() -> Status {
    ran = true;
    return {};
  }));
  std::thread opener([&] { gate.open(); });
  runtime.shutdown();
  opener.join();
  EXPECT_TRUE(ran);
}

TEST(Shutdown, CanDropWhatIsQueuedOnAllCardsAtOnce) {
  const ScopedEnvironment world("AIU_WORLD_SIZE", "2");
  Runtime runtime(toy_card());
  const StreamRef first = runtime.card(0).value()->streams().next(0);
  const StreamRef second = runtime.card(1).value()->streams().next(0);
  Gate gate;
  bool ran = false;
  ASSERT_OK(second->enqueue(gate.work()));
  Event event;
  ASSERT_OK(event.record(second));
  ASSERT_OK(
      event.block(first));  // waits for an event that the other card reaches only because it drops its work
  for (const StreamRef& stream : {first, second}) {
    ASSERT_OK(stream->enqueue([&]() -> Status {
      ran = true;
      return {};
    }));
  }
  std::thread closer([&] { runtime.shutdown(Runtime::Queued::kDrop); });
  while (second->query().ok()) {
    std::this_thread::yield();
  }
  gate.open();  // what runs already is finished
  closer.join();
  EXPECT_FALSE(ran);
  EXPECT_EQ(first->enqueue([] { return Status(); }).error().kind, ErrorKind::kShutdown);
}

TEST(Shutdown, MemoryAndStreamsMayOutliveTheRuntime) {
  MemoryRef memory;
  StreamRef stream;
  Event event;
  {
    Runtime runtime(toy_card(), Fence::kStrict);
    Card& card = *runtime.card(0).value();
    memory = card.allocate(Bytes(391), {.description = "int8[391]"}).value();
    stream = card.streams().next(0);
    ASSERT_OK(event.record(stream));
  }
  EXPECT_EQ(memory->description(), "int8[391]");
  EXPECT_EQ(stream->enqueue([] { return Status(); }).error().kind, ErrorKind::kShutdown);
  EXPECT_TRUE(event.query().value());
  const void* token = memory->token();
  EXPECT_NE(token, nullptr);
  memory.reset();
}

// --- process exit -----------------------------------------------------------------------------------------

class ExitDeathTest : public testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(ExitDeathTest, AProcessThatNeverStartedTheRuntimeExits) {
  EXPECT_EXIT(
      {
        (void)Runtime::instance().device_count();
        std::exit(0);
      },
      testing::ExitedWithCode(0), "");
}

TEST_F(ExitDeathTest, AProcessExitsWithIdleThreadsAndMemoryInStaticObjects) {
  EXPECT_EXIT(
      {
        static MemoryRef destroyed_late;
        Card& card = *Runtime::instance().card(0).value();
        destroyed_late = card.allocate(mebibytes(4)).value();
        (void)card.streams().next(0)->enqueue([] { return Status(); });
        std::exit(0);
      },
      testing::ExitedWithCode(0), "");
}

TEST_F(ExitDeathTest, ShutdownAtExitFinishesQueuedWork) {
  EXPECT_EXIT(
      {
        static std::atomic<int> done = 0;
        std::atexit([] {
          Runtime::instance().shutdown();
          _exit(done == 100 ? 0 : 1);
        });
        for (int i = 0; i < 100; ++i) {
          (void)Runtime::instance().card(0).value()->streams().next(0)->enqueue([] {
            ++done;
            return Status();
          });
        }
        std::exit(2);
      },
      testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace spyre
