#include "spyre/runtime/status_page.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>

#include "spyre/runtime/fork.h"
#include "spyre/runtime/runtime.h"
#include "spyre/runtime/test_kernel.h"

namespace spyre {
namespace {

std::string page_of(pid_t pid) {
  return fmt::format("/dev/shm/spyre-{}/{}", getuid(), pid);
}

/// A process of its own: it says by a byte that it is ready, and goes on when it is told to.
class Other {
 public:
  template <typename Body>
  explicit Other(const Body& body) {
    EXPECT_EQ(pipe(ready_), 0);
    EXPECT_EQ(pipe(go_), 0);
    child_ = fork();
    // Without the ends of the other side, whoever waits for one that died is told.
    (void)close(child_ == 0 ? ready_[0] : ready_[1]);
    (void)close(child_ == 0 ? go_[1] : go_[0]);
    if (child_ == 0) {
      body([&] {
        char byte = 'x';
        (void)!::write(ready_[1], &byte, 1);
        (void)!::read(go_[0], &byte, 1);
      });
      _exit(0);
    }
    char byte = 0;
    (void)!::read(ready_[0], &byte, 1);
  }
  ~Other() {
    if (child_ > 0) finish();
  }
  void finish() {
    char byte = 'x';
    (void)!::write(go_[1], &byte, 1);
    (void)waitpid(child_, nullptr, 0);
    child_ = -1;
  }
  void kill_it() {
    (void)kill(child_, SIGKILL);
    (void)waitpid(child_, nullptr, 0);
    child_ = -1;
  }
  pid_t pid() const { return child_; }

 private:
  int ready_[2] = {}, go_[2] = {};
  pid_t child_ = -1;
};

const SeenProcess* process_in(const std::vector<SeenProcess>& seen, pid_t pid) {
  const auto found =
      std::find_if(seen.begin(), seen.end(), [&](const SeenProcess& p) { return p.pid == pid; });
  return found == seen.end() ? nullptr : &*found;
}

/// Children may use cards only if their parent did not start a runtime; as part of a longer run it may have.
class StatusPage : public testing::Test {
 protected:
  void SetUp() override {
    const pid_t child = fork();
    if (child == 0) _exit(forked_after_start() ? 1 : 0);
    int ended = 0;
    (void)waitpid(child, &ended, 0);
    if (ended != 0) GTEST_SKIP() << "a runtime was started in this process: run it by itself";
  }
};

TEST_F(StatusPage, OthersSeeCardsMemoryStreamsAndKernels) {
  Other other([](const auto& wait) {
    Runtime runtime(toy_card());
    Card& card = *runtime.card(0).value();
    const LaunchTensor x = tensor_of(card, eighths(128)), y = tensor_of(card, std::vector<float>(128));
    const KernelDirectory directory(unary_kernel("neg"));
    const JobPlanRef plan = prepare_kernel(card, directory.path(), {.kernel_name = "my_kernel"}).value();
    for (int i = 0; i < 3; ++i) (void)launch(plan, {x, y}, card.streams().default_stream(), Blocking::kYes);
    wait();
  });
  const std::vector<SeenProcess> seen = seen_processes();
  const SeenProcess* const process = process_in(seen, other.pid());
  ASSERT_NE(process, nullptr);
  EXPECT_NE(process->command.find("spyre_runtime_test"), std::string::npos) << process->command;
  ASSERT_EQ(process->cards.size(), 1u);
  const SeenCard& card = process->cards[0];
  EXPECT_EQ(card.index, 0);
  EXPECT_EQ(card.allocated, Bytes(512));
  EXPECT_EQ(card.peak, Bytes(512));
  EXPECT_GT(card.total, Bytes(0));
  EXPECT_EQ(card.launches, 3);
  EXPECT_GT(card.busy_ns, 0);
  EXPECT_EQ(card.running_ns, 0);
  EXPECT_EQ(card.kernel, "my_kernel");
  EXPECT_GE(card.streams, 1);
  EXPECT_EQ(card.waiting, 0);
}

TEST_F(StatusPage, WhatRunsNowIsSeenWithItsTime) {
  Other other([](const auto& wait) {
    publish_status();
    CardStatus& status = claim_status(3);
    status.begin(std::string(200, 'n'));
    status.streams[5].given = 4;
    status.streams[5].done = 1;
    wait();
  });
  const std::vector<SeenProcess> seen = seen_processes();
  const SeenProcess* const process = process_in(seen, other.pid());
  ASSERT_NE(process, nullptr);
  ASSERT_EQ(process->cards.size(), 1u);
  EXPECT_EQ(process->cards[0].index, 3);
  EXPECT_GT(process->cards[0].running_ns, 0);
  EXPECT_EQ(process->cards[0].kernel, std::string(95, 'n'));
  EXPECT_EQ(process->cards[0].streams, 1);
  EXPECT_EQ(process->cards[0].waiting, 3);
}

TEST_F(StatusPage, IsGoneWhenTheRuntimeIsShutDownAndPrivateBefore) {
  pid_t pid = 0;
  Other other([](const auto& wait) {
    {
      Runtime runtime(toy_card());
      ASSERT_TRUE(runtime.card(0).ok());
      wait();
    }
  });
  pid = other.pid();
  struct stat page = {}, folder = {};
  ASSERT_EQ(stat(page_of(pid).c_str(), &page), 0);
  EXPECT_EQ(page.st_mode & 0777, 0600u);
  ASSERT_EQ(stat(std::filesystem::path(page_of(pid)).parent_path().c_str(), &folder), 0);
  EXPECT_EQ(folder.st_mode & 0777, 0700u);
  other.finish();
  EXPECT_FALSE(std::filesystem::exists(page_of(pid)));
}

TEST_F(StatusPage, OfAProcessThatCrashedIsNotShownAndRemoved) {
  Other other([](const auto& wait) {
    publish_status();
    (void)claim_status(0);
    wait();
  });
  const pid_t pid = other.pid();
  other.kill_it();
  ASSERT_TRUE(std::filesystem::exists(page_of(pid)));
  // Young pages without a lock are left alone: they may be on their way.
  EXPECT_EQ(process_in(seen_processes(), pid), nullptr);
  EXPECT_TRUE(std::filesystem::exists(page_of(pid)));
  const struct timespec old[2] = {{.tv_sec = 1, .tv_nsec = 0}, {.tv_sec = 1, .tv_nsec = 0}};
  ASSERT_EQ(utimensat(AT_FDCWD, page_of(pid).c_str(), old, 0), 0);
  EXPECT_EQ(process_in(seen_processes(), pid), nullptr);
  EXPECT_FALSE(std::filesystem::exists(page_of(pid)));
}

TEST_F(StatusPage, IsNotThereWhereTheSettingSaysSo) {
  Other other([](const auto& wait) {
    setenv("SPYRE_STATUS", "0", 1);
    Runtime runtime(toy_card());
    (void)runtime.card(0);
    wait();
  });
  EXPECT_EQ(process_in(seen_processes(), other.pid()), nullptr);
  EXPECT_FALSE(std::filesystem::exists(page_of(other.pid())));
}

TEST_F(StatusPage, FilesOfOtherKindsAreNoProcesses) {
  const std::string stray = page_of(999999999);
  std::filesystem::create_directories(std::filesystem::path(stray).parent_path());
  (void)chmod(std::filesystem::path(stray).parent_path().c_str(), 0700);
  std::ofstream(stray) << "no page";
  EXPECT_EQ(process_in(seen_processes(), 999999999), nullptr);
  std::filesystem::remove(stray);
}

}  // namespace
}  // namespace spyre
