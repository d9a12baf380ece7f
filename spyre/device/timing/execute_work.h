#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "spyre/cost/rates.h"
#include "spyre/device/exec/counters.h"

/// What one execute asks of the machine, before anyone says when. Bytes and operations are those of the
/// counters; how long they take is from the rates.
namespace spyre::timing {

/// One slice of a tensor on its way between off-chip memory and cores.
struct Stream {
  int64_t address = 0;  ///< of its first byte
  int64_t bytes = 0;
  std::vector<int> cores;  ///< positions; several of them read it together
  double cap = 0;          ///< bytes per ns that these cores take; a single one of all its streams together
  double slowdown = 1;     ///< of the memory, against the plain rate or `rate`
  std::optional<double>
      rate;  ///< bytes per ns of the memory while it serves such streams; else the plain one
};

/// [begin, end) in device memory.
struct AddressRange {
  int64_t begin = 0, end = 0;
  bool meets(const AddressRange& other) const { return begin < other.end && other.begin < end; }
};

/// What one core does by itself. Arithmetic and its operands in LX go side by side.
struct CoreTask {
  int core = 0;  ///< its number on the card
  Nanos matrix, vector, lx;
  exec::CoreCounts counts;

  Nanos compute() const { return std::max({matrix, vector, lx}); }
};

/// Messages between cores that go at the same time.
struct RingStep {
  Nanos time;
  std::vector<std::pair<int, int64_t>> sent;  ///< position of the sender, bytes
};

struct ExecuteWork {
  int op = 0;
  std::vector<Stream> loads, stores;
  std::vector<AddressRange> reads, writes;
  std::vector<CoreTask> cores;  ///< as ProgramOp::cores
  std::vector<RingStep> ring;   ///< one after the other, when all cores have computed
};

/// How an execute stands in its program: what the closed forms look at beside the op.
struct Surroundings {
  bool alone = false;       ///< the only execute of the program
  bool tiled = false;       ///< in a loop
  std::vector<bool> again;  ///< tensors of a tiled op that lie where they lay the last time; may be empty
};

ExecuteWork work_of(const exec::BoundOp& bound, const Surroundings& surroundings, const Machine& machine,
                    const Rates& rates);

}  // namespace spyre::timing
