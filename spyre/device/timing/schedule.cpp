#include "spyre/device/timing/schedule.h"

#include <algorithm>
#include <cmath>

#include "spyre/base/result.h"

namespace spyre::timing {
namespace {

class Player {
 public:
  Player(const std::vector<ExecuteWork>& works, const Prices& prices)
      : works_(works), prices_(prices), progress_(works.size()) {}

  Schedule play() && {
    run();
    return {std::move(progress_), std::move(speeds_), bus_.busy(), now_};
  }

 private:
  void run() {
    while (true) {
      while (begin_what_may()) {
      }
      if (store_ == works_.size()) return;
      const double next = std::min(now_ + bus_.until_next_end(), running_until());
      SPYRE_CHECK(std::isfinite(next), "a launch whose next event never comes");
      if (next > now_) speeds_.push_back({{now_}, {next}, bus_.speed(true), bus_.speed(false)});
      bus_.advance(next - now_);
      now_ = next;
      end_what_is_done();
    }
  }

  bool is_computed(size_t i) const { return progress_[i].computed >= 0; }
  bool is_stored(size_t i) const { return progress_[i].stored >= 0; }
  bool is_started(size_t i) const { return progress_[i].start >= 0; }

  bool begin_what_may() {
    if (!loading_ && load_ < works_.size() && (load_ == 0 || is_started(load_ - 1)) && may_read(load_)) {
      begin_loads(load_);
      return true;
    }
    if (next_ < works_.size() && (next_ == 0 || is_computed(next_ - 1)) &&
        (next_ < 2 || is_stored(next_ - 2))) {
      progress_[next_++].start = now_;
      return true;
    }
    if (!storing_ && store_ < next_) {
      begin_stores(store_);
      return true;
    }
    return false;
  }

  /// Whether all that it reads has been stored.
  bool may_read(size_t i) const {
    for (size_t writer = store_; writer < i; ++writer) {
      for (const AddressRange& read : works_[i].reads) {
        for (const AddressRange& written : works_[writer].writes) {
          if (read.meets(written)) return false;
        }
      }
    }
    return true;
  }

  std::vector<Transfer> add(const ExecuteWork& work, const std::vector<Stream>& streams, bool load) {
    std::vector<Transfer> transfers;
    for (const Stream& stream : streams) {
      const bool shared = stream.cores.size() > 1;
      const size_t port =
          shared ? bus_.own_port(stream.cap) : bus_.port(work.cores[stream.cores.front()].core, stream.cap);
      transfers.push_back({&stream, bus_.add({.bytes = static_cast<double>(stream.bytes),
                                              .per_byte = prices_.per_byte(stream, load),
                                              .port = port,
                                              .reads = load,
                                              .cores = static_cast<int>(stream.cores.size())})});
    }
    return transfers;
  }

  void begin_loads(size_t i) {
    progress_[i].load_begin = now_;
    progress_[i].loaded.assign(works_[i].cores.size(), now_);
    progress_[i].loads = add(works_[i], works_[i].loads, true);
    loading_ = true;
    end_loads();
  }

  void begin_stores(size_t i) {
    progress_[i].store_begin = now_;
    progress_[i].stores = add(works_[i], works_[i].stores, false);
    storing_ = true;
    end_stores();
  }

  /// Notes what has arrived; true when everything has.
  bool note_ends(std::vector<Transfer>& transfers) const {
    bool all = true;
    for (Transfer& transfer : transfers) {
      if (transfer.end == kNever && bus_.done(transfer.id)) transfer.end = now_;
      all &= transfer.end != kNever;
    }
    return all;
  }

  void end_loads() {
    Progress& progress = progress_[load_];
    if (!note_ends(progress.loads)) return;
    for (const Transfer& transfer : progress.loads) {
      for (const int core : transfer.stream->cores) {
        progress.loaded[core] = std::max(progress.loaded[core], transfer.end);
      }
    }
    loading_ = false;
    ++load_;
  }

  /// When the execute that runs will be done, as far as that is known.
  double running_until() const {
    if (next_ == 0 || is_computed(next_ - 1) || load_ < next_) return kNever;
    return computed_at(works_[next_ - 1], progress_[next_ - 1]);
  }

  static double computed_at(const ExecuteWork& work, const Progress& progress) {
    double done = progress.start;
    for (size_t c = 0; c < work.cores.size(); ++c) {
      done = std::max({done, progress.start + work.cores[c].compute().ns, progress.loaded[c]});
    }
    for (const RingStep& step : work.ring) done += step.time.ns;
    return done;
  }

  void end_what_is_done() {
    if (loading_) end_loads();
    if (running_until() <= now_) progress_[next_ - 1].computed = now_;
    if (storing_) end_stores();
  }

  void end_stores() {
    if (!note_ends(progress_[store_].stores) || !is_computed(store_)) return;
    progress_[store_++].stored = now_;
    storing_ = false;
  }

  const std::vector<ExecuteWork>& works_;
  const Prices& prices_;
  std::vector<Progress> progress_;
  MemoryBus bus_;
  std::vector<MemorySpeed> speeds_;
  double now_ = 0;
  size_t load_ = 0, next_ = 0, store_ = 0;  // the next to load, to start, to store
  bool loading_ = false, storing_ = false;
};

}  // namespace

Schedule play(const std::vector<ExecuteWork>& works, const Prices& prices) {
  return Player(works, prices).play();
}

}  // namespace spyre::timing
