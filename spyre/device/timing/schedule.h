#pragma once

#include <limits>
#include <vector>

#include "spyre/device/timing/execute_work.h"
#include "spyre/device/timing/memory_bus.h"
#include "spyre/device/timing/timeline.h"

/// When everything of a launch happens, given what its executes ask: the rules are in simulate.h.
namespace spyre::timing {

inline constexpr double kNever = std::numeric_limits<double>::infinity();

/// ns of memory for one byte of a stream. What streams plainly pays for turning the bus around once for each
/// byte of the direction that the whole program uses less.
class Prices {
 public:
  Prices(const std::vector<ExecuteWork>& works, const Rates& rates) : rates_(rates) {
    double read = 0, written = 0;
    for (const ExecuteWork& work : works) {
      for (const Stream& load : work.loads) read += load.rate ? 0 : static_cast<double>(load.bytes);
      for (const Stream& store : work.stores) written += store.rate ? 0 : static_cast<double>(store.bytes);
    }
    loads_turn_ = read < written;
  }

  double per_byte(const Stream& stream, bool load) const {
    const double rate = std::min(stream.rate.value_or(rates_.hbm_one_way), rates_.hbm_peak);
    const double turnaround = stream.rate || load != loads_turn_ ? 0 : rates_.turnaround;
    return (1 / rate + turnaround) * stream.slowdown;
  }

 private:
  const Rates& rates_;
  bool loads_turn_;
};

/// A stream on its way.
struct Transfer {
  const Stream* stream = nullptr;
  MemoryBus::Id id = 0;
  double end = kNever;
};

/// An execute on its way through the card.
struct Progress {
  double start = -1, computed = -1;                       // barrier before it; all its cores are done
  double load_begin = -1, store_begin = -1, stored = -1;  // stored: nothing of it is left
  std::vector<Transfer> loads, stores;
  std::vector<double> loaded;  // [core position]
};

/// A launch that was played through. Times in ns.
struct Schedule {
  std::vector<Progress> progress;  ///< of each execute
  std::vector<MemorySpeed> speeds;
  double memory_busy = 0;
  double end = 0;
};

Schedule play(const std::vector<ExecuteWork>& works, const Prices& prices);

}  // namespace spyre::timing
