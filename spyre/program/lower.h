#pragma once

#include "spyre/program/device_program.h"
#include "spyre/program/sdsc_record.h"

namespace spyre::program {

/// Largest iteration space, and largest tensor in elements, that a program may have. Far above any card's
/// memory, far below what overflows.
inline constexpr int64_t kMaxElements = int64_t{1} << 42;

/// Resolves a record into an op. Expects a record that passed `validate_record`; refuses op functions,
/// formats and layouts that have no meaning here (kUnsupported), always naming file, field, found and
/// allowed.
Result<ProgramOp> lower_sdsc(const SdscRecord& record);

/// Corrects what an sdsc file alone leaves open, from the physical sizes that launch_spec.json states for
/// the argument behind tensor `index` of `op` (`device_size`: outermost first, lanes last):
///  - the table of a gather or scatter is as long as its allocation, not as the iteration space, unless its gap says;
///  - a gap of ReStickifyOpHBM on a non-stick dim may be a *shortfall* (the padded extent exceeds the
///  physical
///    one): it is taken with a minus sign exactly when the physical size confirms it.
/// Sizes that do not line up with the tensor's dims leave it as it is.
void refine_with_physical_size(ProgramOp& op, int index, const std::vector<int64_t>& device_size);

}  // namespace spyre::program
