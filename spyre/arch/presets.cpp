#include "spyre/arch/machine.h"

namespace spyre {

const Machine& spyre_card() {
  static constexpr Machine kCard = {
      .name = "spyre",
      .cores = 32,                         // docs/reference/machine.md
      .lx_per_core = mebibytes(2),         // docs/reference/machine.md
      .segments = 8,                       // docs/reference/machine.md#address-space
      .segment_bytes = gibibytes(16),      // docs/reference/machine.md#address-space
      .program_segment = 7,                // docs/reference/machine.md#address-space
      .span_limit = mebibytes(256),        // docs/reference/machine.md#address-space
      .ring_bytes_per_cycle = Bytes(128),  // docs/reference/machine.md: each way
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
