#include "spyre/runtime/fork.h"

#include <pthread.h>

#include <atomic>
#include <mutex>

namespace spyre {
namespace {

std::atomic<bool> bad_child = false;

void mark_child() {
  bad_child.store(true, std::memory_order_relaxed);
}

}  // namespace

bool forked_after_start() {
  return bad_child.load(std::memory_order_relaxed);
}

void watch_for_forks() {
  static std::once_flag once;
  std::call_once(once, [] { pthread_atfork(nullptr, nullptr, mark_child); });
}

Status check_process() {
  if (!forked_after_start()) {
    return {};
  }
  return Error(ErrorKind::kBadFork,
               "cannot use a Spyre device in a forked child of a process that started it")
      .note("fork copies neither the card's memory nor the threads that drive it")
      .try_instead("the 'spawn' start method of multiprocessing, or fork before the device is first used");
}

}  // namespace spyre
