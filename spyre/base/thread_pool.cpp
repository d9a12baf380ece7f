#include "spyre/base/thread_pool.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace spyre {
namespace {

int usable_cpus() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) == 0) {
    return std::max(1, CPU_COUNT(&set));
  }
  return std::max(1U, std::thread::hardware_concurrency());
}

thread_local bool inside_parallel_for = false;

/// How long a thread looks for work before it sleeps. Programs are made of short jobs in a row, and waking a thread can take
/// longer than one of them; who has something else to run gets the processor meanwhile.
constexpr std::chrono::microseconds kPatience(50);

/// Returns when `changing` is no longer `seen`.
void wait_for_change(const std::atomic<uint32_t>& changing, uint32_t seen) {
  const auto patience = std::chrono::steady_clock::now() + kPatience;
  while (std::chrono::steady_clock::now() < patience) {
    if (changing.load() != seen) {
      return;
    }
    std::this_thread::yield();
  }
  changing.wait(seen);
}

/// One call of parallel_for. Every thread has a share, neighbouring pieces, and helps with those of others when it is done
/// with its own: what a thread worked on in one job, and has in its cache, it mostly gets again in the next.
struct Job {
  struct alignas(64) Share {
    std::atomic<uint32_t> next{0};
    uint32_t end = 0;
  };

  const std::function<void(int64_t, int64_t)>* body;
  int64_t count;
  int64_t piece;
  uint32_t pieces;
  std::vector<Share> shares;
  std::atomic<uint32_t> done{0};
  std::mutex mutex;  ///< of `failure`
  std::exception_ptr failure;

  Job(const std::function<void(int64_t, int64_t)>& run, int64_t n, int64_t each, int threads)
      : body(&run),
        count(n),
        piece(each),
        pieces(static_cast<uint32_t>((n + each - 1) / each)),
        shares(std::min<uint32_t>(static_cast<uint32_t>(threads), pieces)) {
    for (size_t s = 0; s < shares.size(); ++s) {
      shares[s].next = static_cast<uint32_t>(s * pieces / shares.size());
      shares[s].end = static_cast<uint32_t>((s + 1) * pieces / shares.size());
    }
  }

  /// What the thread of this number does.
  void work(size_t thread) {
    inside_parallel_for = true;
    for (size_t s = 0; s < shares.size(); ++s) {
      Share& share = shares[(thread + s) % shares.size()];
      for (uint32_t i = share.next++; i < share.end; i = share.next++) {
        do_piece(i);
      }
    }
    inside_parallel_for = false;
  }

  void do_piece(int64_t i) {
    try {
      (*body)(i * piece, std::min(count, (i + 1) * piece));
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!failure) {
        failure = std::current_exception();
      }
    }
    if (++done == pieces) {
      done.notify_all();
    }
  }

  void wait() const {
    for (uint32_t seen = done.load(); seen != pieces; seen = done.load()) {
      wait_for_change(done, seen);
    }
  }
};

/// Workers wait for a job and help with it. Kept until the process ends; a child of fork starts with none.
class Pool {
 public:
  static Pool& instance() {
    static Pool* pool = [] {
      auto* made = new Pool;  // Never destroyed: workers may outlive static destruction.
      pthread_atfork(nullptr, nullptr, [] { instance().forget_workers(); });
      return made;
    }();
    return *pool;
  }

  int threads() const { return threads_.load(); }
  void set_threads(int n) { threads_.store(std::max(1, n)); }

  void run(const std::shared_ptr<Job>& job) {
    const size_t helpers = job->shares.size() - 1;
    {
      const std::lock_guard lock(mutex_);
      while (workers_ < helpers) {
        std::thread([this, number = ++workers_] { serve(number); }).detach();
      }
      queue_.insert(queue_.end(), helpers, job);
    }
    ++posted_;
    posted_.notify_all();
    job->work(0);
    job->wait();
  }

 private:
  void forget_workers() {
    new (&mutex_) std::mutex;
    queue_.clear();
    workers_ = 0;
  }

  void serve(size_t number) {
    while (true) {
      const uint32_t seen = posted_.load();
      if (const std::shared_ptr<Job> job = take()) {
        job->work(number);
      } else {
        wait_for_change(posted_, seen);
      }
    }
  }

  std::shared_ptr<Job> take() {
    const std::lock_guard lock(mutex_);
    if (queue_.empty()) {
      return nullptr;
    }
    std::shared_ptr<Job> job = std::move(queue_.back());
    queue_.pop_back();
    return job;
  }

  std::atomic<int> threads_{usable_cpus()};
  std::mutex mutex_;
  std::atomic<uint32_t> posted_{0};  ///< jobs so far: what workers wait for
  std::vector<std::shared_ptr<Job>> queue_;
  size_t workers_ = 0;
};

}  // namespace

void parallel_for(int64_t count, int64_t grain, const std::function<void(int64_t, int64_t)>& body) {
  if (count <= 0) {
    return;
  }
  const int threads = Pool::instance().threads();
  if (inside_parallel_for || threads == 1 || count <= grain) {
    body(0, count);
    return;
  }
  // Four pieces a thread even out unequal speeds without making pieces tiny.
  const int64_t wanted =
      std::min<int64_t>(int64_t{4} * threads, (count + grain - 1) / std::max<int64_t>(1, grain));
  const auto job = std::make_shared<Job>(body, count, (count + wanted - 1) / wanted, threads);
  Pool::instance().run(job);
  if (job->failure) {
    std::rethrow_exception(job->failure);
  }
}

int parallel_threads() {
  return Pool::instance().threads();
}
void set_parallel_threads(int threads) {
  Pool::instance().set_threads(threads);
}

}  // namespace spyre
