#include "spyre/runtime/fork.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <vector>

#include "spyre/runtime/runtime.h"
#include "spyre/runtime/test_support.h"

namespace spyre {
namespace {

/// Runs `body` in a forked child and returns its answer; 255 stands for a crash.
int in_child(const std::function<int()>& body) {
  const pid_t child = fork();
  if (child == 0) {
    _exit(body());
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}

bool is_bad_fork(const Status& status) {
  return !status.ok() && status.error().kind == ErrorKind::kBadFork;
}

TEST(Fork, AChildOfAStartedRuntimeIsToldWhatToDoInstead) {
  Runtime runtime(toy_card());
  Card& card = *runtime.card(0).value();
  MemoryRef memory = card.allocate(Bytes(128)).value();
  const StreamRef stream = card.streams().next(0);
  ASSERT_OK(stream->enqueue([] { return Status(); }));  // a thread the child will not have
  ASSERT_OK(stream->synchronize());

  const int first_failure = in_child([&] {
    std::vector<bool> held;
    Event event;
    const std::vector<std::byte> host(128);
    held.push_back(runtime.in_bad_fork());
    held.push_back(is_bad_fork(check_process()));
    held.push_back(runtime.card(0).error().kind == ErrorKind::kBadFork);
    held.push_back(is_bad_fork(runtime.start()));
    held.push_back(is_bad_fork(runtime.synchronize()));
    held.push_back(card.allocate(Bytes(128)).error().kind == ErrorKind::kBadFork);
    held.push_back(is_bad_fork(stream->enqueue([] { return Status(); })));
    held.push_back(is_bad_fork(stream->run_now_or_enqueue([] { return Status(); })));
    held.push_back(is_bad_fork(stream->synchronize()));
    held.push_back(stream->query().error().kind == ErrorKind::kBadFork);
    held.push_back(is_bad_fork(event.record(stream)));
    held.push_back(is_bad_fork(copy_in(stream, MemoryView::whole(memory), host, Blocking::kYes)));
    held.push_back(card.allocator().find(memory->token()).error().kind == ErrorKind::kBadFork);
    held.push_back(check_process().error().hint.find("spawn") != std::string::npos);
    memory.reset();      // must neither hang nor crash
    runtime.shutdown();  // likewise
    return static_cast<int>(std::find(held.begin(), held.end(), false) - held.begin());
  });
  EXPECT_EQ(first_failure, 14) << "the expectation of that number did not hold in the child";

  EXPECT_FALSE(runtime.in_bad_fork()) << "the parent is as good as before";
  EXPECT_OK(stream->enqueue([] { return Status(); }));
  EXPECT_OK(stream->synchronize());
}

}  // namespace
}  // namespace spyre
