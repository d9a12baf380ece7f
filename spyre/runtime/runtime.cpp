#include "spyre/runtime/runtime.h"

#include <fmt/format.h>

#include "spyre/base/log.h"
#include "spyre/base/settings.h"
#include "spyre/runtime/fork.h"
#include "spyre/runtime/status_page.h"
#include "spyre/runtime/visible_devices.h"

namespace spyre {
namespace {

CardMode card_mode(std::string_view name) {
  return name == "VF" ? CardMode::kVf : name == "PF" ? CardMode::kPf : CardMode::kMock;
}

Result<CardOptions> read_card_options() {
  CardOptions options;
  SPYRE_ASSIGN_OR_RETURN(const std::string mode, read_string("FLEX_DEVICE"));
  options.memory.mode = card_mode(mode);
  options.wipes_lx = options.memory.mode == CardMode::kVf;
  SPYRE_ASSIGN_OR_RETURN(options.keeps_non_terminal, read_bool("SPYRE_NON_TERMINAL"));
  SPYRE_ASSIGN_OR_RETURN(const int64_t gib, read_int("SPYRE_CARD_MEMORY_GIB"));
  options.memory.tensor_memory = gibibytes(gib);
  SPYRE_ASSIGN_OR_RETURN(const int64_t streams, read_int("TORCH_SPYRE_NUM_HOST_COMPUTE_STREAMS"));
  options.host_compute_streams = static_cast<int>(streams);
  SPYRE_ASSIGN_OR_RETURN(const std::string executor, read_string("SPYRE_EXECUTOR"));
  options.execution.executor = executor == "interpreter"  ? Executor::kInterpreter
                               : executor == "fast-only"  ? Executor::kFastOnly
                               : executor == "exact-sums" ? Executor::kExactSums
                                                          : Executor::kFast;
  SPYRE_ASSIGN_OR_RETURN(options.execution.count, read_bool("SPYRE_COUNTERS"));
  SPYRE_ASSIGN_OR_RETURN(options.execution.check, read_bool("SPYRE_CHECKER"));
  SPYRE_ASSIGN_OR_RETURN(options.device_time, read_bool("SPYRE_DEVICE_TIME"));
  return options;
}

bool is_compile_worker() {
  const Result<bool> worker = read_bool("IS_INDUCTOR_SPAWNED_SUBPROCESS");
  return worker.ok() && worker.value();
}

}  // namespace

Runtime& Runtime::instance() {
  static Runtime* const runtime = new Runtime(spyre_card());
  return *runtime;
}

Runtime::Runtime(const Machine& machine, Fence fence)
    : machine_(machine), fence_(fence), programs_(std::make_shared<ProgramCache>(machine)) {}

Runtime::~Runtime() {
  shutdown();
}

Result<int> Runtime::device_count() const {
  if (state_.load(std::memory_order_acquire) != State::kNotStarted) {
    return static_cast<int>(visible_.size());
  }
  SPYRE_ASSIGN_OR_RETURN(const std::vector<int> visible, visible_devices());
  return static_cast<int>(visible.size());
}

Result<Bytes> Runtime::tensor_memory() const {
  if (state_.load(std::memory_order_acquire) != State::kNotStarted) {
    return spyre::tensor_memory(machine_, options_.memory);
  }
  SPYRE_ASSIGN_OR_RETURN(const CardOptions options, read_card_options());
  return spyre::tensor_memory(machine_, options.memory);
}

bool Runtime::in_bad_fork() const {
  return forked_after_start() || is_compile_worker();
}

Status Runtime::check_usable() const {
  SPYRE_TRY(check_process());
  if (state_.load(std::memory_order_acquire) == State::kShutDown) {
    return Error(ErrorKind::kShutdown, "the Spyre runtime was shut down")
        .note("it does not start twice in one process");
  }
  return {};
}

Status Runtime::start() {
  SPYRE_TRY(check_usable());
  if (started()) {
    return {};
  }
  if (is_compile_worker()) {
    return Error(ErrorKind::kBadFork, "a compile worker of Inductor may not open a Spyre device")
        .note("IS_INDUCTOR_SPAWNED_SUBPROCESS is set in this process");
  }
  std::unique_lock lock(mutex_);
  SPYRE_TRY(check_usable());
  if (started()) {
    return {};
  }
  SPYRE_TRY(check_settings());
  SPYRE_ASSIGN_OR_RETURN(visible_, visible_devices());
  SPYRE_ASSIGN_OR_RETURN(options_, read_card_options());
  watch_for_forks();
  publish_status();
  state_.store(State::kStarted, std::memory_order_release);
  lock.unlock();  // the log's sink is not ours: it may want locks of its own
  log(LogLevel::kInfo, "runtime", fmt::format("started with {} visible cards", visible_.size()));
  return {};
}

Result<Card*> Runtime::card(int index) {
  SPYRE_TRY(check_usable());
  if (index >= 0 && index < kMaxCards) {
    if (Card* card = cards_[static_cast<size_t>(index)].load(std::memory_order_acquire)) {
      return card;
    }
  }
  SPYRE_TRY(start());
  std::unique_lock lock(mutex_);
  SPYRE_TRY(check_usable());
  if (index < 0 || index >= static_cast<int>(visible_.size())) {
    return Error(ErrorKind::kOutOfRange,
                 fmt::format("Device index out of bounds. logical_device_id={}, number of visible devices={}",
                             index, visible_.size()))
        .try_instead("a smaller index, a larger AIU_WORLD_SIZE, or more entries in SPYRE_DEVICES");
  }
  std::atomic<Card*>& slot = cards_[static_cast<size_t>(index)];
  if (Card* card = slot.load(std::memory_order_relaxed)) {
    return card;
  }
  SPYRE_ASSIGN_OR_RETURN(std::unique_ptr<Card> made, make_card(index));
  Card* const card = made.get();
  owned_.push_back(std::move(made));
  slot.store(card, std::memory_order_release);
  lock.unlock();
  log(LogLevel::kInfo, "runtime",
      fmt::format("device {} is emulated card {}", index, visible_[static_cast<size_t>(index)]));
  return card;
}

Result<std::unique_ptr<Card>> Runtime::make_card(int index) const {
  SPYRE_ASSIGN_OR_RETURN(std::unique_ptr<Device> device, make_memory_device(machine_, fence_));
  return std::make_unique<Card>(index, std::shared_ptr<Device>(std::move(device)), options_, programs_);
}

std::vector<Card*> Runtime::existing_cards() const {
  std::vector<Card*> out;
  for (const std::atomic<Card*>& slot : cards_) {
    if (Card* card = slot.load(std::memory_order_acquire)) {
      out.push_back(card);
    }
  }
  return out;
}

Result<MemoryRef> Runtime::find(const void* token) const {
  SPYRE_TRY(check_process());
  for (const Card* card : existing_cards()) {
    if (card->device().address_of(token)) {
      return card->allocator().find(token);
    }
  }
  return Error(ErrorKind::kNotFound, fmt::format("pointer {} is not memory of any Spyre device", token));
}

Status Runtime::synchronize() {
  SPYRE_TRY(check_usable());
  Status first;
  for (Card* card : existing_cards()) {
    Status status = card->synchronize();
    if (first.ok() && !status.ok()) {
      first = std::move(status);
    }
  }
  return first;
}

void Runtime::shutdown(Queued queued) {
  if (forked_after_start()) {
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    if (state_.load(std::memory_order_relaxed) == State::kNotStarted) {
      return;
    }
    state_.store(State::kShutDown, std::memory_order_release);
  }
  // Without the lock: work still queued may ask for a card, and gets kShutdown. All drop before one is waited for:
  // its work may wait for an event of another.
  if (queued == Queued::kDrop) {
    for (Card* card : existing_cards()) {
      card->streams().drop_queued();
    }
  }
  for (Card* card : existing_cards()) {
    card->close();
  }
  withdraw_status();
}

}  // namespace spyre
