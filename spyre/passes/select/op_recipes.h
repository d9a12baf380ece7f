#pragma once

#include <vector>

#include "spyre/passes/select/op_emitter.h"

/// How each operation of a body is made of operations of the card: one entry per name.
namespace spyre {

Result<Operand> select_pointwise(OpEmitter& emit, const Instruction& instruction,
                                 std::vector<Operand> operands);
Result<Operand> select_reduction(OpEmitter& emit, const Instruction& instruction,
                                 std::vector<Operand> operands);

}  // namespace spyre
