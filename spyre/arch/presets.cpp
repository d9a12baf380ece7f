#include "spyre/arch/machine.h"

namespace spyre {

const Machine& spyre_card() {
  static constexpr Machine kCard = {
      .name = "spyre",
      .cores = 32,                         // seeds/002: 32-core dataflow processor
      .lx_per_core = mebibytes(2),         // seeds/002: 2 MB scratchpad per core
      .segments = 8,                       // reference opspec-superdsc 1: 8 segments of the job address space
      .segment_bytes = gibibytes(16),      // reference layouts-and-runtime 1: SEGMENT_SIZE
      .program_segment = 7,                // reference layouts-and-runtime 1: PROG_SEGMENT
      .span_limit = mebibytes(256),        // reference opspec-superdsc 1: span limit
      .ring_bytes_per_cycle = Bytes(128),  // seeds/002 figure 1a: 128 B/cycle per direction
  };
  return kCard;
}

const Machine& toy_card() {
  static constexpr Machine kToy = {
      .name = "toy",
      .cores = 2,
      .lx_per_core = Bytes(16 * 128),
      .segments = 8,
      .segment_bytes = mebibytes(1),
      .program_segment = 7,
      .span_limit = kibibytes(64),
      .ring_bytes_per_cycle = Bytes(128),
  };
  return kToy;
}

}  // namespace spyre
