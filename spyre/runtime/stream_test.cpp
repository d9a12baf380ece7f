#include "spyre/runtime/stream.h"

#include <gmock/gmock.h>

#include <atomic>
#include <numeric>
#include <stdexcept>
#include <thread>

#include "spyre/runtime/stream_pool.h"
#include "spyre/runtime/test_support.h"

namespace spyre {
namespace {

using testing::HasSubstr;

Status fail() {
  return Error(ErrorKind::kDeviceFault, "boom");
}

TEST(Stream, RunsWorkInTheOrderItWasGiven) {
  const StreamRef stream = make_stream();
  std::vector<int> seen;  // only the stream touches it until synchronize
  for (int i = 0; i < 1000; ++i) {
    // Every third piece is run by a caller who waits: on this thread when idle, on the stream's otherwise.
    const Work work = [&seen, i]() -> Status {
      seen.push_back(i);
      return {};
    };
    ASSERT_OK(i % 3 == 0 ? stream->run_now_or_enqueue(work) : stream->enqueue(work));
  }
  ASSERT_OK(stream->synchronize());
  std::vector<int> expected(1000);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(seen, expected);
}

TEST(Stream, AnIdleStreamRunsForAWaitingCallerOnTheCallersThread) {
  const StreamRef stream = make_stream();
  std::thread::id where;
  ASSERT_OK(stream->run_now_or_enqueue([&]() -> Status {
    where = std::this_thread::get_id();
    return {};
  }));
  EXPECT_EQ(where, std::this_thread::get_id());
}

TEST(Stream, AWaitingCallerDoesNotOvertakeQueuedWork) {
  const StreamRef stream = make_stream();
  bool first_done = false;
  Gate gate;
  ASSERT_OK(stream->enqueue(gate.work()));
  ASSERT_OK(stream->enqueue([&]() -> Status {
    first_done = true;
    return {};
  }));
  std::thread opener([&] { gate.open(); });
  bool saw_first = false;
  EXPECT_OK(stream->run_now_or_enqueue([&]() -> Status {
    saw_first = first_done;
    return {};
  }));
  opener.join();
  EXPECT_TRUE(saw_first);
}

TEST(Stream, QueryTellsBusyFromIdle) {
  const StreamRef stream = make_stream();
  EXPECT_TRUE(stream->query().value());
  Gate gate;
  ASSERT_OK(stream->enqueue(gate.work()));
  EXPECT_FALSE(stream->query().value());
  gate.open();
  ASSERT_OK(stream->synchronize());
  EXPECT_TRUE(stream->query().value());
}

TEST(Stream, FailedWorkPoisonsTheStreamUntilReset) {
  const StreamRef stream = make_stream();
  Gate gate;
  bool ran = false;
  ASSERT_OK(stream->enqueue(gate.work()));
  ASSERT_OK(stream->enqueue(fail));
  ASSERT_OK(stream->enqueue([&]() -> Status {
    ran = true;
    return {};
  }));
  gate.open();
  for (int twice = 0; twice < 2; ++twice) {
    EXPECT_EQ(stream->synchronize().error().message, "boom");
  }
  EXPECT_FALSE(ran) << "work behind the failure was not dropped";
  EXPECT_EQ(stream->query().error().message, "boom");
  EXPECT_EQ(stream->enqueue(fail).error().message, "boom");
  EXPECT_EQ(stream->run_now_or_enqueue(fail).error().message, "boom");
  ASSERT_OK(stream->reset());
  EXPECT_OK(stream->enqueue([] { return Status(); }));
  EXPECT_OK(stream->synchronize());
}

TEST(Stream, AFailureThatReachesItsCallerPoisonsOnlyWhenTheCardIsAtFault) {
  const StreamRef stream = make_stream();
  const auto refused = [] { return Status(Error(ErrorKind::kInvalidArgument, "too long")); };
  EXPECT_EQ(stream->run_now_or_enqueue(refused).error().message, "too long");
  EXPECT_OK(stream->synchronize());
  EXPECT_EQ(stream->run_now_or_enqueue(fail).error().message, "boom");
  EXPECT_EQ(stream->synchronize().error().message, "boom");
}

TEST(Stream, AnExceptionInWorkIsAFaultNotTheEndOfTheProcess) {
  const StreamRef stream = make_stream();
  ASSERT_OK(stream->enqueue([]() -> Status { throw std::runtime_error("oops"); }));
  const Status status = stream->synchronize();
  EXPECT_EQ(status.error().kind, ErrorKind::kDeviceFault);
  EXPECT_THAT(status.error().message, HasSubstr("oops"));
}

TEST(Stream, WorkThatWaitsForItsOwnStreamIsToldSo) {
  const StreamRef stream = make_stream();
  Status queued, inline_run;
  ASSERT_OK(stream->enqueue([&]() -> Status {
    queued = stream->synchronize();
    return {};
  }));
  ASSERT_OK(stream->synchronize());
  ASSERT_OK(stream->run_now_or_enqueue([&]() -> Status {
    inline_run = stream->run_now_or_enqueue([] { return Status(); });
    return {};
  }));
  for (const Status& status : {queued, inline_run}) {
    ASSERT_FALSE(status.ok());
    EXPECT_THAT(status.error().message, HasSubstr("waits for its own stream"));
  }
}

TEST(Stream, WhatWorkCapturedIsGoneWhenSynchronizeReturnsAndNoLockIsHeldMeanwhile) {
  const StreamRef stream = make_stream();
  int destroyed = 0;
  const auto captured = [&] {
    // Asking the stream from the destructor hangs if the stream destroys work under its lock.
    return std::shared_ptr<int>(new int(1), [&](int* p) {
      delete p;
      (void)stream->query();
      ++destroyed;
    });
  };
  ASSERT_OK(stream->enqueue([c = captured()] { return Status(); }));
  ASSERT_OK(stream->synchronize());
  EXPECT_EQ(destroyed, 1);
  ASSERT_OK(stream->run_now_or_enqueue([c = captured()] { return Status(); }));
  EXPECT_EQ(destroyed, 2);
}

TEST(Stream, CloseFinishesQueuedWorkAndRefusesMore) {
  const StreamRef stream = make_stream();
  int ran = 0;
  Gate gate;
  ASSERT_OK(stream->enqueue(gate.work()));
  for (int i = 0; i < 10; ++i) {
    ASSERT_OK(stream->enqueue([&ran]() -> Status {
      ++ran;
      return {};
    }));
  }
  std::thread opener([&] { gate.open(); });
  stream->close();
  opener.join();
  EXPECT_EQ(ran, 10);
  EXPECT_EQ(stream->enqueue([] { return Status(); }).error().kind, ErrorKind::kShutdown);
  stream->close();  // harmless
}

TEST(Stream, CloseWaitsForWorkThatRunsOnACallersThread) {
  const StreamRef stream = make_stream();
  ASSERT_OK(stream->enqueue([] { return Status(); }));  // the stream has a thread, which close must end too
  ASSERT_OK(stream->synchronize());
  std::atomic<bool> running = false;
  bool finished = false;
  std::thread caller([&] {
    EXPECT_OK(stream->run_now_or_enqueue([&]() -> Status {
      running = true;
      // Until close has begun: before that, the refusal is for waiting for itself.
      while (stream->run_now_or_enqueue([] { return Status(); }).error().kind != ErrorKind::kShutdown) {
        std::this_thread::yield();
      }
      for (int i = 0; i < 5000; ++i) {
        std::this_thread::yield();  // likely long enough for the stream's thread to look once and sleep again
      }
      finished = true;
      return {};
    }));
  });
  while (!running) {
    std::this_thread::yield();
  }
  stream->close();
  EXPECT_TRUE(finished);
  caller.join();
}

TEST(StreamPool, IdsFollowTheDocumentedRanges) {
  StreamPool pool(0, 4);
  EXPECT_EQ(pool.default_stream()->id(), 0);
  for (int i = 0; i < 32; ++i) {
    EXPECT_EQ(pool.next(0)->id(), 1 + i);
    EXPECT_EQ(pool.next(i % 2 == 0 ? -1 : 5)->id(), 33 + i);  // anything but 0 is the high pool
  }
  EXPECT_EQ(pool.next(0)->id(), 1) << "round robin";
  EXPECT_EQ(pool.next(-1)->id(), 33);
  EXPECT_EQ(pool.host_compute(0)->id(), 65);
  EXPECT_EQ(pool.host_compute(3)->id(), 68);
  EXPECT_EQ(pool.host_compute(4)->id(), 65);
}

TEST(StreamPool, PrioritiesAreZeroUpTo32AndMinusOneAbove) {
  StreamPool pool(0, 1);
  EXPECT_EQ(pool.default_stream()->priority(), 0);
  EXPECT_EQ(pool.next(0)->priority(), 0);
  EXPECT_EQ(pool.next(1)->priority(), -1);
  EXPECT_EQ(pool.host_compute(0)->priority(), -1);
}

TEST(StreamPool, FindsStreamsThatWereHandedOut) {
  StreamPool pool(0, 9);  // taken as 8
  EXPECT_EQ(pool.find(1).error().kind, ErrorKind::kNotFound);
  const StreamRef one = pool.next(0);
  EXPECT_EQ(pool.find(1).value(), one);
  EXPECT_OK(pool.find(72));
  for (const int id : {-1, 73, 1000}) {
    const auto missing = pool.find(id);
    ASSERT_FALSE(missing.ok());
    EXPECT_THAT(missing.error().to_string(),
                HasSubstr("no stream with id " + std::to_string(id) + " on device 0"));
  }
}

TEST(StreamPool, SynchronizeWaitsForEveryStreamAndReportsTheFirstError) {
  StreamPool pool(0, 1);
  std::atomic<int> ran = 0;
  for (int i = 0; i < 5; ++i) {
    ASSERT_OK(pool.next(0)->enqueue([&]() -> Status {
      ++ran;
      return {};
    }));
  }
  ASSERT_OK(pool.synchronize());
  EXPECT_EQ(ran, 5);
  ASSERT_OK(pool.next(0)->enqueue(fail));
  EXPECT_EQ(pool.synchronize().error().message, "boom");
  ASSERT_OK(pool.reset());
  EXPECT_OK(pool.synchronize());
}

}  // namespace
}  // namespace spyre
