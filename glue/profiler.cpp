// The cards in torch.profiler: what the runtime logged, in the words of Kineto.

#define USE_KINETO
#include <c10/util/Exception.h>
#include <libkineto.h>
#include <output_base.h>
#include <torch/csrc/profiler/standalone/privateuse1_profiler.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <utility>

#include "glue/error.h"
#include "glue/profile_report.h"
#include "glue/trace_details.h"
#include "spyre/base/settings.h"
#include "spyre/runtime/activity_log.h"
#include "spyre/runtime/host_axis.h"
#include "spyre/runtime/runtime.h"

namespace spyre::glue {
namespace {

using libkineto::ActivityLogger;
using libkineto::ActivityType;
using libkineto::GenericTraceActivity;
using Linked = libkineto::getLinkedActivityCallback;

ActivityType type_of(Activity::Kind kind) {
  switch (kind) {
    case Activity::Kind::kKernel:
      return ActivityType::CONCURRENT_KERNEL;
    case Activity::Kind::kToDevice:
    case Activity::Kind::kToHost:
    case Activity::Kind::kOnCard:
      return ActivityType::GPU_MEMCPY;
    case Activity::Kind::kFill:
      break;
  }
  return ActivityType::GPU_MEMSET;
}

/// One profile, from its preparation to its trace.
class Session final : public libkineto::IActivityProfilerSession {
 public:
  ~Session() override {
    if (status_ == libkineto::TraceStatus::RECORDING) {
      (void)ActivityLog::instance().stop();
    }
  }

  void start() override {
    ActivityLog::instance().start();
    status_ = libkineto::TraceStatus::RECORDING;
  }

  void stop() override {
    record_ = ActivityLog::instance().stop();
    status_ = libkineto::TraceStatus::PROCESSING;
  }

  std::vector<std::string> errors() override { return {}; }

  void processTrace(ActivityLogger& logger) override {
    processTrace(
        logger, [](int32_t) { return nullptr; }, 0, 0);
  }

  void processTrace(ActivityLogger& logger, Linked linked, int64_t /*begin*/, int64_t /*end*/) override {
    buffer_ = std::make_unique<libkineto::CpuTraceBuffer>();
    buffer_->gpuOpCount = 0;
    buffer_->span.name = "Spyre";
    details_ = {};
    if (record_.activities.empty()) {
      say_why_empty();
    }
    for (const HostCall& call : record_.calls) {
      add_call(call, linked);
    }
    const std::vector<HostSpan> shown = on_host_axis(record_.activities);
    for (size_t i = 0; i < shown.size(); ++i) {
      add_activity(record_.activities[i], shown[i], linked);
      if (cores_ && record_.activities[i].run != nullptr) {
        add_cores(record_.activities[i], shown[i].begin);
      }
    }
    for (const auto& activity : buffer_->activities) {
      logger.handleGenericActivity(*activity);
    }
    name_rows(logger);
    keep_for_report(std::exchange(record_, {}));
    rows_.clear();
  }

  std::unique_ptr<libkineto::DeviceInfo> getDeviceInfo() override { return nullptr; }  // name_rows
  std::vector<libkineto::ResourceInfo> getResourceInfos() override { return {}; }
  std::unique_ptr<libkineto::CpuTraceBuffer> getTraceBuffer() override { return std::move(buffer_); }

  void pushCorrelationId(uint64_t id) override { CallOrigin::push(id); }
  void popCorrelationId() override { CallOrigin::pop(); }
  // Ranges that users mark are operators here: what is launched directly in one belongs to it.
  void pushUserCorrelationId(uint64_t id) override { CallOrigin::push(id); }
  void popUserCorrelationId() override { CallOrigin::pop(); }

 private:
  GenericTraceActivity& add(ActivityType type, const std::string& name, int64_t begin, int64_t end) {
    buffer_->emplace_activity(buffer_->span, type, name);
    GenericTraceActivity& added = *buffer_->activities.back();
    added.startTime = begin;
    added.endTime = end;
    return added;
  }

  /// Not to those who never used a card: every profile asks for cards, too.
  static void say_why_empty() {
    if (!Runtime::instance().started()) {
      return;
    }
    if (unwrap(read_bool("SPYRE_DEVICE_TIME"))) {
      TORCH_WARN("the profile shows no card: no work was given to one while it was active");
    } else {
      TORCH_WARN("the profile shows no card: SPYRE_DEVICE_TIME=0 stops their clocks");
    }
  }

  static void link(GenericTraceActivity& activity, int32_t call, bool starts,
                   const libkineto::ITraceActivity* origin) {
    activity.id = call;
    activity.flow.id = static_cast<uint32_t>(call);
    activity.flow.type = libkineto::kLinkAsyncCpuGpu;
    activity.flow.start = starts ? 1 : 0;
    activity.linked = origin;
    activity.addMetadata("correlation", call);
  }

  void add_call(const HostCall& call, const Linked& linked) {
    const libkineto::ITraceActivity* const origin = origin_of(call.origin, linked);
    // PyTorch's clock and ours differ by some ten nanoseconds; what an operator calls lies inside it all the same.
    int64_t begin = call.begin, end = call.end;
    if (origin != nullptr && origin->duration() >= 0) {
      const int64_t first = origin->timestamp(), last = first + origin->duration();
      begin = std::clamp(begin, first, last);
      end = std::clamp(end, begin, last);
    }
    GenericTraceActivity& added = add(ActivityType::PRIVATEUSE1_RUNTIME, std::string(call.name), begin, end);
    added.device = libkineto::processId();
    added.resource = added.threadId = call.thread;
    link(added, call.id, true, origin);
  }

  void add_activity(const Activity& activity, const HostSpan& shown, const Linked& linked) {
    GenericTraceActivity& added = add(type_of(activity.kind), activity.name, shown.begin, shown.end);
    added.device = activity.card;
    added.resource = activity.stream;
    rows_.emplace(activity.card, activity.stream);
    link(added, activity.call, false, origin_of(activity.origin, linked));
    added.addMetadata("device", activity.card);
    added.addMetadata("stream", activity.stream);
    add_details(added, details_.of(activity));
  }

  /// What every core did for one kernel, and the counters of the card meanwhile.
  void add_cores(const Activity& kernel, int64_t begin) {
    const auto at = [&](Nanos inside) { return begin + std::llround(inside.ns); };
    const CoreFacts facts = core_facts(*kernel.run);
    for (const CoreState& state : facts.states) {
      // As annotations they count in no column of a table. Kineto draws those a nanosecond wider on both sides.
      const int64_t first = at(state.begin) + 1, last = at(state.end) - 1;
      if (last < first) {
        continue;
      }
      GenericTraceActivity& added =
          add(ActivityType::GPU_USER_ANNOTATION, std::string(state.name), first, last);
      added.device = kernel.card;
      added.resource = kFirstCore + state.core;
      rows_.emplace(kernel.card, added.resource);
      if (state.op >= 0) {
        add_details(added, details_.of(*kernel.run, static_cast<size_t>(state.op)));
      }
    }
    for (const auto& [name, levels] : facts.counters) {
      for (const Level& level : levels) {
        GenericTraceActivity& added = add(ActivityType::MTIA_COUNTERS, name, at(level.at), at(level.at));
        added.device = kernel.card;
        added.resource = 0;
        added.addCounterValue(name, level.value);
      }
    }
  }

  static void add_details(GenericTraceActivity& activity, const TraceDetails::Details& details) {
    for (const auto& [name, value] : details) {
      activity.addMetadata(name, value);
    }
  }

  static const libkineto::ITraceActivity* origin_of(uint64_t origin, const Linked& linked) {
    return origin == 0 || !linked ? nullptr : linked(static_cast<int32_t>(origin));
  }

  /// Cards, streams and cores that occur, by name.
  void name_rows(ActivityLogger& logger) const {
    int last_card = -1;
    for (const auto& [card, row] : rows_) {
      if (card != last_card) {
        logger.handleDeviceInfo(
            {card, libkineto::kExceedMaxPid + card, "Spyre card " + std::to_string(card), "simulated time"},
            0);
        last_card = card;
      }
      const std::string name =
          row < kFirstCore ? "stream " + std::to_string(row) : "core " + std::to_string(row - kFirstCore);
      logger.handleResourceInfo({row, row, card, name}, 0);
    }
  }

  static constexpr int kFirstCore = 1000;  // rows below are streams

  const bool cores_ = unwrap(read_string("SPYRE_PROFILE")) == "cores";
  ActivityLog::Record record_;
  TraceDetails details_;
  std::set<std::pair<int, int>> rows_;  // cards and their rows

  std::unique_ptr<libkineto::CpuTraceBuffer> buffer_;  // keeps what the logger points to
};

class SpyreProfiler final : public libkineto::IActivityProfiler {
 public:
  [[nodiscard]] const std::string& name() const override { return name_; }

  [[nodiscard]] const std::set<ActivityType>& availableActivities() const override { return types_; }

  std::unique_ptr<libkineto::IActivityProfilerSession> configure(
      const std::set<ActivityType>& wanted, const libkineto::Config& /*config*/) override {
    // PyTorch asks for kernels when it is to profile PrivateUse1, and for calls of the runtime always.
    return wanted.contains(ActivityType::CONCURRENT_KERNEL) ? std::make_unique<Session>() : nullptr;
  }

  std::unique_ptr<libkineto::IActivityProfilerSession> configure(int64_t /*begin*/, int64_t /*duration*/,
                                                                 const std::set<ActivityType>& wanted,
                                                                 const libkineto::Config& config) override {
    return configure(wanted, config);
  }

 private:
  const std::string name_ = "spyre";
  const std::set<ActivityType> types_ = {ActivityType::CONCURRENT_KERNEL, ActivityType::GPU_MEMCPY,
                                         ActivityType::GPU_MEMSET, ActivityType::PRIVATEUSE1_RUNTIME};
};

}  // namespace
}  // namespace spyre::glue

using spyre::glue::SpyreProfiler;
REGISTER_PRIVATEUSE1_PROFILER(SpyreProfiler);
