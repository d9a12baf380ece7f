#include "spyre/device/timing/advice.h"

#include <fmt/format.h>

#include <algorithm>

#include "spyre/base/text.h"

namespace spyre::timing {
namespace {

std::string percent(double part) {
  return fmt::format("{:.0f} %", 100 * part);
}

/// The longest of what the operation would still wait for if its limit took no time.
Nanos without(const OpTotals& op, Bound bound) {
  Nanos most;
  if (bound != Bound::kMemory) most = std::max(most, op.memory);
  if (bound != Bound::kMatrix) most = std::max(most, op.matrix);
  if (bound != Bound::kVector) most = std::max(most, op.vector);
  if (bound != Bound::kLx) most = std::max(most, op.lx);
  if (bound != Bound::kRing) most = std::max(most, op.ring);
  return most;
}

Advice memory_advice(const OpTotals& op, const Rates& rates) {
  const auto bytes = static_cast<double>(op.bytes());
  const Nanos at_peak = {bytes / rates.hbm_peak};
  if (4 * op.spilled >= op.bytes()) {
    return {fmt::format("Keep intermediate results in LX: {} of its {} are results of this program",
                        human_bytes(Bytes(op.spilled)), human_bytes(Bytes(op.bytes()))),
            op.memory * (static_cast<double>(op.spilled) / bytes)};
  }
  if (at_peak.ns < 0.6 * op.memory.ns) {
    return {fmt::format("A layout or a division that streams: it moves {:.0f} GB/s of {:.0f}",
                        bytes / op.memory.ns, rates.hbm_peak),
            op.memory - at_peak};
  }
  return {fmt::format("Fewer bytes, as by a narrower type: memory already gives it {:.0f} GB/s of {:.0f}",
                      bytes / op.memory.ns, rates.hbm_peak),
          op.memory / 2};
}

Advice arithmetic_advice(const OpTotals& op, bool matrix, const CardModel& card) {
  const Nanos took = matrix ? op.matrix : op.vector;
  const double idle = 1 - static_cast<double>(op.cores) / card.machine.cores;
  if (idle > 0.05) {
    return {fmt::format("More cores: {} of {} work on it", op.cores, card.machine.cores), took * idle};
  }
  if (op.busiest.ns > 1.15 * op.evens.ns) {
    return {fmt::format("Even slices: its busiest core has {:.1f} times the work of the average",
                        op.busiest.ns / op.evens.ns),
            op.busiest - op.evens};
  }
  const double at_peak = matrix ? static_cast<double>(op.macs) / (card.rates.mac_peak * card.machine.cores)
                                : static_cast<double>(op.elements) / (card.rates.vector * card.machine.cores);
  if (at_peak < 0.6 * took.ns) {
    return {fmt::format("Larger slices: the {} arrays run at {} of their peak", matrix ? "matrix" : "vector",
                        percent(at_peak / took.ns)),
            took - Nanos{at_peak}};
  }
  return {fmt::format("Less arithmetic: the {} arrays run at {} of their peak", matrix ? "matrix" : "vector",
                      percent(at_peak / took.ns)),
          took / 2};
}

Advice limit_advice(const OpTotals& op, const CardModel& card) {
  switch (op.bound) {
    case Bound::kMemory:
      return memory_advice(op, card.rates);
    case Bound::kMatrix:
    case Bound::kVector:
      return arithmetic_advice(op, op.bound == Bound::kMatrix, card);
    case Bound::kLx:
      return {fmt::format("Fewer operands through LX: {} pass its ports", human_bytes(Bytes(op.lx_bytes))),
              op.lx};
    case Bound::kRing:
      return {fmt::format("A division that leaves sums on one core: {} travel the ring",
                          human_bytes(Bytes(op.ring_bytes))),
              op.ring};
    case Bound::kNothing:
      break;
  }
  return {};
}

}  // namespace

Advice advise(const OpTotals& op, const CardModel& card) {
  const Nanos limit = std::max(without(op, op.bound), without(op, Bound::kNothing));
  const Nanos waits = op.time - limit;
  Advice advice = limit_advice(op, card);
  advice.saves = std::min(advice.saves, limit - without(op, op.bound));
  // Most of its time is no limit of its own: it waits for what came before, or its loads could not begin early.
  if (waits > limit && waits > advice.saves) {
    return {"Work between it and what it reads: it waits for bytes that nothing hides", waits};
  }
  return advice;
}

}  // namespace spyre::timing
