#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "spyre/base/units.h"
#include "spyre/runtime/activity_log.h"

namespace spyre {

/// What the model of the card says about one launch of a program, for traces (spyre/device/timing).

/// One operation of a program, all its executes together.
struct OpFacts {
  std::string name;        ///< of the op function
  std::string file;        ///< of the artifact
  Nanos time;              ///< of its windows, which tile the kernel
  std::string_view bound;  ///< of the longest
  Bytes read, written;     ///< off-chip
};

struct RunFacts {
  std::string_view bound;  ///< where most of the kernel's time went
  Nanos memory_busy;
  Bytes read, written;       ///< off-chip
  std::vector<OpFacts> ops;  ///< in the order of the program
};

/// Facts of launches, worked out once for each program and its extents. One thread.
class RunFactsCache {
 public:
  const RunFacts& of(const ProgramRun& run);

 private:
  std::map<std::pair<const LoadedProgram*, std::vector<int64_t>>, RunFacts> facts_;
};

/// What one core did, one thing after another and without gaps from 0 to the end of the kernel.
struct CoreState {
  int core = 0;
  std::string_view name;  ///< compute (matrix, vector), load, store, ring, idle
  Nanos begin, end;
  int op = 0;  ///< position in RunFacts::ops; of idle cores -1
};

/// One quantity, from `at` on.
struct Level {
  Nanos at;
  double value = 0;
};

struct CoreFacts {
  std::vector<CoreState> states;                       ///< by core
  std::map<std::string, std::vector<Level>> counters;  ///< by name, with the unit
};

/// Every core's part in a launch, and the traffic of all. Not cheap.
CoreFacts core_facts(const ProgramRun& run);

}  // namespace spyre
