#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "spyre/base/units.h"
#include "spyre/device/execute.h"
#include "spyre/runtime/device_clock.h"

namespace spyre {

/// What the host asked of the cards and what they did for it, kept while a profiler listens.
///
///     host calls        |-spyreLaunchKernel-|  |-spyreMemcpy-|      host time, one row per thread
///     activities                 |-- kernel --||-- copy --|         simulated time, one row per stream
///
/// A call made inside another is part of that one and has no row. An activity belongs to the call in which its work was
/// given. Nothing is dropped, however much there is. While nobody listens, a call costs one look at a flag.

/// One call of the runtime. Times are nanoseconds of the host's system clock.
struct HostCall {
  std::string_view name;  ///< of a literal
  int64_t begin = 0, end = 0;
  int32_t thread = 0;   ///< the system's id
  int32_t id = 0;       ///< of the call; none has it twice
  uint64_t origin = 0;  ///< what the thread was doing (CallOrigin); 0: not known
};

/// What somebody above the runtime knows about a kernel, or about a launch of it; carried, never looked into.
struct KernelFacts {
  KernelFacts() = default;
  KernelFacts(const KernelFacts&) = delete;
  KernelFacts& operator=(const KernelFacts&) = delete;
  virtual ~KernelFacts() = default;
};
using KernelFactsRef = std::shared_ptr<const KernelFacts>;

/// A launch of one program, as far as its timeline needs it.
struct ProgramRun {
  LoadedProgramRef program;
  std::vector<int64_t> parameters;
  Nanos launch;                 ///< what it cost the host
  KernelFactsRef kernel;        ///< of PrepareOptions; may be null
  KernelFactsRef launch_facts;  ///< of LaunchFacts; may be null
};

/// One piece of a card's work.
struct Activity {
  enum class Kind { kKernel, kToDevice, kToHost, kOnCard, kFill };

  Kind kind = Kind::kKernel;
  std::string name;
  int card = 0, stream = 0;
  TimeSpan span;
  Bytes size;                             ///< moved; 0 for kernels
  std::shared_ptr<const ProgramRun> run;  ///< of kernels
  int32_t call = 0;                       ///< the id of its call
  int64_t asked = 0;                      ///< when that began, host time
  uint64_t origin = 0;                    ///< as that of the call
};

/// The log of this process. Any thread.
class ActivityLog {
 public:
  struct Record {
    std::vector<HostCall> calls;       ///< by end
    std::vector<Activity> activities;  ///< in the order work was given
  };

  static ActivityLog& instance();

  /// Forgets what was kept and listens from now on.
  void start();
  /// What happened since; stops to listen.
  Record stop();

  bool listens() const { return listens_.load(std::memory_order_acquire); }

  /// Keeps an activity of the call that this thread is in; nothing outside of one.
  void add(Activity activity);

 private:
  friend class CallScope;

  std::atomic<bool> listens_ = false;
  std::atomic<int32_t> next_id_ = 0;
  std::mutex mutex_;  // guards record_; a leaf
  Record record_;
};

/// A call of the runtime, while it lasts.
class CallScope {
 public:
  explicit CallScope(std::string_view name);
  ~CallScope();
  CallScope(const CallScope&) = delete;
  CallScope& operator=(const CallScope&) = delete;

 private:
  bool open_ = false;
};

/// What is known about the launches that the thread gives while this lives.
class LaunchFacts {
 public:
  explicit LaunchFacts(KernelFactsRef facts);
  ~LaunchFacts();
  LaunchFacts(const LaunchFacts&) = delete;
  LaunchFacts& operator=(const LaunchFacts&) = delete;
  static const KernelFactsRef& current();

 private:
  KernelFactsRef before_;
};

/// What the thread is doing, in the words of whoever reads the log: a number. The innermost counts.
class CallOrigin {
 public:
  static void push(uint64_t origin);
  static void pop();
  static uint64_t current();
};

}  // namespace spyre
