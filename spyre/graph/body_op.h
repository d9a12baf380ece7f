#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace spyre {

/// An operation in the body of a captured node: one enumerator per row of body_ops.def, called as the row is. Names are
/// looked up once, where a body is read or built. What the card has are others, `OpId` (ops/ops.h).
enum class BodyOp : uint8_t {
#define SPYRE_VALUE(name) name,
#define SPYRE_ELEMENTWISE(name) name,
#define SPYRE_FOLD(name) name,
#include "spyre/graph/body_ops.def"
};

/// As text has it: `mul`, `reduce.sum`.
std::string_view to_string(BodyOp op);
/// None for a name without a row.
std::optional<BodyOp> body_op_from_name(std::string_view name);

/// Folds the reduced loops.
bool is_fold(BodyOp op);

}  // namespace spyre
