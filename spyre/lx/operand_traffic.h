#pragma once

#include <span>

#include "spyre/base/units.h"
#include "spyre/cost/rates.h"
#include "spyre/graph/normal_op.h"

namespace spyre::lx {

/// What one operand of one operation asks of device memory, all cores together, when it is there.
///
///     a weight of 8 MiB, its columns cut in 4, on 32 cores      counted 64 MiB, passed 8 MiB
struct OperandTraffic {
  Bytes counted;  ///< the part of every core, whoever else moves it too: what the card's counters say
  Bytes passed;   ///< every part once: cores that need the same one take it from one passage
  Nanos
      held;  ///< by how much `passed` takes longer than plain streaming: few cores, full ports, rows read again
};

OperandTraffic operand_traffic(const NormalOp& op, size_t operand,
                               std::span<const DeviceLayout* const> layouts);

/// A copy of a whole buffer, each core its part.
OperandTraffic copy_traffic(Bytes whole, int64_t cores);

}  // namespace spyre::lx
