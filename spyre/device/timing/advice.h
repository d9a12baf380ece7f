#pragma once

#include <string>

#include "spyre/cost/card_model.h"
#include "spyre/device/timing/timeline.h"

namespace spyre::timing {

/// What is known about one operation of a program, all its executes together.
struct OpTotals {
  int executes = 0;
  Nanos begin;                             ///< of its first window
  Nanos time;                              ///< of its windows
  Nanos memory, matrix, vector, lx, ring;  ///< what each would take alone
  Bound bound = Bound::kNothing;           ///< where most of its time goes
  int64_t read = 0, written = 0;           ///< off-chip bytes, a slice that several cores read counted once
  int64_t spilled = 0;                     ///< of them, intermediate results
  int64_t lx_bytes = 0, ring_bytes = 0;    ///< through the ports of LX; sent
  int64_t macs = 0, elements = 0;
  int cores = 0;         ///< that work on it
  Nanos busiest, evens;  ///< arithmetic of its busiest core, and of all cores on average

  int64_t bytes() const { return read + written; }
};

/// What would help an operation, and by how much at the most.
struct Advice {
  std::string text;  ///< empty: nothing stands out
  Nanos saves;
};

/// By rules that name the limit and the nearest thing that would lower it; no plan is made and nothing is simulated.
Advice advise(const OpTotals& op, const CardModel& card);

}  // namespace spyre::timing
