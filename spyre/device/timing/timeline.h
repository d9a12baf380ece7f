#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "spyre/base/units.h"
#include "spyre/cost/rates.h"

/// When everything in one launch of a program happens. Made by simulate.h; plain data for tables, traces and
/// clocks.
///
///     execute 0  |<------- window ------->|<- execute 1 ...
///     core 0     load   |---------|
///                vector |-----------------|            a core's units work side by side; within one unit
///                store      |-------------------|      nothing overlaps
///
/// Two clocks. *Kernel* time is the card's, from the first load to the last byte stored. *Launch* time is the
/// host's: what one launch costs it, whether or not it waits for the kernel then.
namespace spyre::timing {

/// A part of a core, and with it a track in a trace. Of several that work at once the first here is what the
/// core is said to do.
enum class Unit : uint8_t {
  kMatrix,  ///< the systolic arrays of both corelets
  kVector,  ///< the vector arrays
  kRing,    ///< sending to other cores
  kLoad,    ///< from off-chip memory into the core
  kStore,   ///< from the core to off-chip memory
  kIdle,    ///< none of these; only in what `core_states` gives
};
std::string_view to_string(Unit unit);

/// What an execute would still wait for if everything else took no time.
enum class Bound : uint8_t { kMemory, kMatrix, kVector, kLx, kRing, kNothing };
std::string_view to_string(Bound bound);

/// What one unit of one core does for one execute.
struct Phase {
  int execute = 0;  ///< position in Timeline::executes
  int core = 0;     ///< its number on the card
  Unit unit = Unit::kIdle;
  Nanos begin, end;
  int64_t amount = 0;  ///< bytes moved; multiply-accumulates of kMatrix, elements of kVector
};

/// How fast the off-chip memory moves bytes, over all cores, while nothing begins or ends.
struct MemorySpeed {
  Nanos begin, end;
  double read = 0, written = 0;  ///< bytes per ns; a slice that several cores read counts once
};

/// One execute. The windows of all executes tile the kernel: each ends where the next begins, the last one
/// with the kernel. A window begins at the barrier before the execute; loads may come earlier, stores go on
/// later.
struct ExecuteTime {
  int op = 0;  ///< index into DeviceProgram::ops
  Nanos begin, end;
  Bound bound = Bound::kNothing;
  Nanos memory, matrix, vector, lx, ring;  ///< what each would take alone, on the slowest core
  Bytes read, written;                     ///< off-chip, a slice that several cores read counted once
};

struct Timeline {
  Nanos kernel;
  Nanos launch;
  Nanos memory_busy;                  ///< how long the off-chip memory transfers
  Bytes read, written;                ///< sums over executes
  std::vector<ExecuteTime> executes;  ///< in the order they run; from Detail::kExecutes on
  std::vector<Phase> phases;          ///< Detail::kCores only
  std::vector<MemorySpeed> memory;    ///< one after the other, from 0 to the end; Detail::kCores only
  std::vector<int> cores;             ///< that do anything, ascending

  /// For a host that launches and waits.
  Nanos waited() const { return launch + kernel; }
};

/// How much of the timeline is wanted: the clocks alone, a line for each execute, or each core's phases.
enum class Detail : uint8_t { kTotals, kExecutes, kCores };

/// One core from 0 to the end of the kernel in states that follow one another without gap or overlap: where
/// several units work at once the first one counts, where none does kIdle. Busy and idle add up to the
/// kernel. A state's amount is 0; phases have the amounts.
std::vector<Phase> core_states(const Timeline& timeline, int core);

}  // namespace spyre::timing
