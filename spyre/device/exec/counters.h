#pragma once

#include <cstdint>
#include <vector>

#include "spyre/arch/machine.h"
#include "spyre/device/exec/bound_op.h"

/// How much an execute moves and computes. Exact, and a function of the program and its bindings alone: two
/// executors that give the same answer report the same counts, however they get there.
///
/// The rules, per core and per execute:
///
///  - A tensor is moved once, in whole sticks: the sticks its slice has. For each dim with scale 1 that is
///  the
///    slice's extent (in sticks along a stick dim); absent dims count once. A tensor that cores share (a
///    broadcast input, an operand of a contraction that does not have the split dim) is read once *by each
///    core*.
///  - A result is written by the core that finishes it. Where cores share a result (a split reduced dim),
///  partial
///    results travel the ring in ascending slice order, 4 bytes (fp32) each, and the last core writes. A
///    shared result that lives in LX is sent back along the ring and written by every core of the group.
///  - The accumulator slot that reductions list as an input is not read.
///  - The table of a gather or scatter moves one row piece per index entry, whether or not entries repeat.
///  The
///    index tensor itself is read like any input.
///  - Under a sliding window each input row that the slice needs counts once.
///  - A relayout reads LX where data is, sends it over the ring where source and target differ, writes LX.
///  - HBM tensors pass through LX on a real card; that staging is not counted, LX counts are LX tensors only.
///  - `macs` are points of the iteration space for ops of the PT unit, `vector_elements` for those of SFP,
///    padding included. `useful_elements` leaves out masked coordinates: artifacts tell padding from data in
///    no other way.
///
/// Check: a softmax over M x N on one core (max, sub, exp, sum, realdiv; all in HBM, stick along N, reduction
/// along M) moves 8MN + 4N elements, as published.
namespace spyre::exec {

/// Bytes one core moves for one tensor.
struct Traffic {
  int64_t hbm_read = 0, hbm_written = 0;
  int64_t lx_read = 0, lx_written = 0;

  Traffic& operator+=(const Traffic& other);
  friend bool operator==(const Traffic&, const Traffic&) = default;
};

/// What one core does.
struct CoreCounts {
  Traffic traffic;             ///< sum over tensors
  int64_t ring_bytes = 0;      ///< sent by this core
  int64_t ring_byte_hops = 0;  ///< the same, times the distance along the ring
  int64_t macs = 0;
  int64_t vector_elements = 0;
  int64_t useful_elements = 0;  ///< of macs or vector_elements, those that are not masked

  CoreCounts& operator+=(const CoreCounts& other);
  friend bool operator==(const CoreCounts&, const CoreCounts&) = default;
};

/// Counts of one op over a run, all its executes added up.
struct OpCounts {
  int64_t executes = 0;
  std::vector<std::vector<Traffic>> tensors;  ///< [tensor][core position]
  std::vector<CoreCounts> cores;              ///< [core position], as ProgramOp::cores

  void add(const OpCounts& other);
  CoreCounts total() const;
  Traffic tensor_total(int tensor) const;
  friend bool operator==(const OpCounts&, const OpCounts&) = default;
};

/// Counts of a run.
struct RunCounts {
  std::vector<OpCounts> ops;  ///< as DeviceProgram::ops

  CoreCounts total() const;
  friend bool operator==(const RunCounts&, const RunCounts&) = default;
};

/// What one core sends another. Messages of one step go at the same time, those of a later step after them.
struct RingMessage {
  int from = 0, to = 0;  ///< core positions
  int64_t bytes = 0;
  int step = 0;
};

/// Counts of one execute. `machine` gives the size of the ring. `messages`: where to add what the cores send.
OpCounts count_execute(const BoundOp& bound, const Machine& machine,
                       std::vector<RingMessage>* messages = nullptr);

}  // namespace spyre::exec
