#include "spyre/runtime/activity_log.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <utility>

namespace spyre {
namespace {

/// Ids of calls begin where those of PyTorch's operators, which a trace has too, do not come.
constexpr int32_t kFirstId = 1 << 30;

thread_local HostCall open_call;
thread_local std::vector<uint64_t> origins;
thread_local KernelFactsRef launch_facts;

int64_t host_now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

int32_t thread_id() {
  thread_local const auto id = static_cast<int32_t>(syscall(SYS_gettid));
  return id;
}

}  // namespace

ActivityLog& ActivityLog::instance() {
  static auto* const log = new ActivityLog;  // never destroyed: threads may outlive `exit`
  return *log;
}

void ActivityLog::start() {
  const std::lock_guard lock(mutex_);
  record_ = {};
  listens_.store(true, std::memory_order_release);
}

ActivityLog::Record ActivityLog::stop() {
  listens_.store(false, std::memory_order_release);
  const std::lock_guard lock(mutex_);
  return std::exchange(record_, {});
}

void ActivityLog::add(Activity activity) {
  if (open_call.id == 0) {
    return;
  }
  activity.call = open_call.id;
  activity.asked = open_call.begin;
  activity.origin = open_call.origin;
  const std::lock_guard lock(mutex_);
  record_.activities.push_back(std::move(activity));
}

CallScope::CallScope(std::string_view name) {
  ActivityLog& log = ActivityLog::instance();
  if (open_call.id != 0 || !log.listens()) {
    return;
  }
  open_ = true;
  open_call = {.name = name,
               .begin = host_now(),
               .thread = thread_id(),
               .id = kFirstId + (log.next_id_.fetch_add(1) & (kFirstId - 1)),
               .origin = CallOrigin::current()};
}

CallScope::~CallScope() {
  if (!open_) {
    return;
  }
  HostCall call = std::exchange(open_call, {});
  call.end = host_now();
  ActivityLog& log = ActivityLog::instance();
  const std::lock_guard lock(log.mutex_);
  log.record_.calls.push_back(call);
}

LaunchFacts::LaunchFacts(KernelFactsRef facts) : before_(std::exchange(launch_facts, std::move(facts))) {}

LaunchFacts::~LaunchFacts() {
  launch_facts = std::move(before_);
}

const KernelFactsRef& LaunchFacts::current() {
  return launch_facts;
}

void CallOrigin::push(uint64_t origin) {
  origins.push_back(origin);
}

void CallOrigin::pop() {
  if (!origins.empty()) {
    origins.pop_back();
  }
}

uint64_t CallOrigin::current() {
  return origins.empty() ? 0 : origins.back();
}

}  // namespace spyre
