#include "spyre/base/thread_pool.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
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

/// One call of parallel_for: pieces are claimed by number until none is left.
struct Job {
  const std::function<void(int64_t, int64_t)>* body;
  int64_t count;
  int64_t piece;
  int64_t pieces;
  std::atomic<int64_t> next{0};
  std::atomic<int64_t> done{0};
  std::mutex mutex;
  std::condition_variable finished;
  std::exception_ptr failure;

  void work() {
    inside_parallel_for = true;
    for (int64_t i = next.fetch_add(1); i < pieces; i = next.fetch_add(1)) {
      try {
        (*body)(i * piece, std::min(count, (i + 1) * piece));
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!failure) {
          failure = std::current_exception();
        }
      }
      if (done.fetch_add(1) + 1 == pieces) {
        const std::lock_guard lock(mutex);
        finished.notify_all();
      }
    }
    inside_parallel_for = false;
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

  void run(const std::shared_ptr<Job>& job, int helpers) {
    {
      const std::lock_guard lock(mutex_);
      while (static_cast<int>(workers_) < helpers) {
        std::thread([this] { serve(); }).detach();
        ++workers_;
      }
      for (int i = 0; i < helpers; ++i) {
        queue_.push_back(job);
      }
    }
    wake_.notify_all();
    job->work();
    std::unique_lock lock(job->mutex);
    job->finished.wait(lock, [&] { return job->done.load() == job->pieces; });
  }

 private:
  void forget_workers() {
    new (&mutex_) std::mutex;
    new (&wake_) std::condition_variable;
    queue_.clear();
    workers_ = 0;
  }

  void serve() {
    while (true) {
      std::shared_ptr<Job> job;
      {
        std::unique_lock lock(mutex_);
        wake_.wait(lock, [&] { return !queue_.empty(); });
        job = std::move(queue_.back());
        queue_.pop_back();
      }
      job->work();
    }
  }

  std::atomic<int> threads_{usable_cpus()};
  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<std::shared_ptr<Job>> queue_;
  int workers_ = 0;
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
  auto job = std::make_shared<Job>();
  job->body = &body;
  job->count = count;
  job->piece = (count + wanted - 1) / wanted;
  job->pieces = (count + job->piece - 1) / job->piece;
  Pool::instance().run(job, static_cast<int>(std::min<int64_t>(threads, job->pieces)) - 1);
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
