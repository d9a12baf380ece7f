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
///  - a slice of a stick dim is whole sticks (an index tensor's may be less than one);
///  - a matmul has X with its stick on the contracted dim and W and the result on the generated one, one of
///    each of these dims, at most two preserved and two shared ones;
///  - tensors of a pointwise op or reduction agree on their stick dims, and if one dim of a stick is
///  broadcast
///    all are; a result is not broadcast unless the op reduces;
///  - a search for the largest has one searched and one rank dim; a conversion keeps its stick dim; both
///  sides of a
///    relayout are in LX;
///  - byte addresses are stick aligned, LX tensors fit the scratchpad, a core reaches its slice of a tensor.
Status validate_op(const DeviceOp& op, const Machine& machine);

/// Every symbol of an op is bound by each step that executes it.
Status validate_bindings(const DeviceProgram& program);

}  // namespace spyre::program
