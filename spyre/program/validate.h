#pragma once

#include "spyre/arch/machine.h"
#include "spyre/program/device_program.h"
#include "spyre/program/sdsc_record.h"

/// The rules an artifact must keep, beyond having the right shape. Each rule is one function in the source,
/// and each refusal names file, field, what was found and what is allowed.
namespace spyre::program {

/// Rules that concern one file as written:
///  - one entry of coreIdsUsed_ per core used; the product of splits is the number of cores (a relayout,
///  which
///    divides its two tensors differently, is exempt); no more cores than the machine has;
///  - every core runs an entry of dscs_ that exists, all of them with the same schedule;
///  - every tensor has a layout class, its ldsIdx_ in order, one node, a scale per dim; there are at most 8;
///  - every operand reference `<dsName_>-idx<n>` resolves;
///  - fold lists have elemArr + 3 levels;
///  - extents divide evenly over cores, per-core sizes say the same, slices are in range;
///  - maskingConstId_ is -1 exactly when nothing is masked.
Status validate_record(const SdscRecord& record, const Machine& machine);

/// Rules that need the resolved op:
///  - its shape is legal (`check_legality`, which the code generator asks before it writes);
///  - byte addresses are stick aligned, LX tensors fit the scratchpad, a core reaches its slice of a tensor.
Status validate_op(const ProgramOp& op, const Machine& machine);

/// Every symbol of an op is bound by each step that executes it.
Status validate_bindings(const DeviceProgram& program);

}  // namespace spyre::program
