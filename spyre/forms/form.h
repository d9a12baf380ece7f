#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>
#include <vector>

#include "spyre/base/result.h"
#include "spyre/forms/builder.h"
#include "spyre/graph/call.h"

/// What every form is, and what most start with.
///
/// A form reads the arguments as the schema of the operator lists them and fills the results of the builder. Which
/// operator has which form is table.def, with the kinds of its arguments: they have been checked before a form runs, so
/// that it may take a tensor where the table says that there is one.
///
/// In-place and `out=` variants of an operator have the same leading arguments and share its form: where a result goes
/// is the builder's business.
///
/// A form refuses (kUnsupported) what the card cannot do.
namespace spyre::forms {

/// The arguments of a call; what was left out at the end is None.
class Arguments {
 public:
  Arguments(std::span<const Argument> values) : values_(values) {}  // NOLINT: implicit on purpose
  const Argument& operator[](size_t i) const;
  size_t size() const { return values_.size(); }

 private:
  std::span<const Argument> values_;
};

/// `op` is a column of the table: usually the name of the device operation.
using Form = Status (*)(Builder& builder, Arguments args, std::string_view op);

bool is_none(const Argument& argument);
/// A number: Python's own, or a tensor without dimensions on the host.
bool is_number(const Argument& argument);
/// A tensor or a number of truth values.
bool is_bool(const Argument& argument);

// What the table promises to be there.
const TensorView& tensor(const Argument& argument);
double number(const Argument& argument);
double number(const Argument& argument, double otherwise);  ///< of None
int64_t integer(const Argument& argument);
int64_t integer(const Argument& argument, int64_t otherwise);  ///< of None
bool flag(const Argument& argument);
/// One number stands for a list of one.
std::vector<int64_t> integers(const Argument& argument);
const TensorList& tensors(const Argument& argument);
/// "" for None.
std::string_view text(const Argument& argument);

bool is_integer(HostType type);  ///< of 32 or 64 bits, as the card computes them
bool is_float(HostType type);    ///< any float, stored ones included
bool is_word(HostType type);     ///< of 32 bits on the card: found and moved as rows, not along a stick

int64_t element_count(std::span<const int64_t> size);
inline int64_t element_count(const TensorView& tensor) {
  return element_count(tensor.size);
}

/// The host type of one tensor. Refused: types without arithmetic on the card.
Result<HostType> arithmetic_type(HostType dtype);
/// The dtype PyTorch computes in for these arguments (tensors and numbers), as the card knows it (promotion.h).
Result<HostType> common_type(const Builder& builder, std::initializer_list<const Argument*> operands);
/// The same where integers become the default float, as for `exp` or a true division.
Result<HostType> common_float(const Builder& builder, std::initializer_list<const Argument*> operands);

/// The type of one operand; of a number of Python's own the one it would have as a tensor.
HostType type_of(const Builder& builder, const Argument& operand);

/// A tensor or a number, broadcast to the result and cast.
Value operand(NodeBuilder& node, const Argument& argument, HostType dtype);

/// A dimension counted from the front. Refused: one that does not exist.
Result<size_t> dimension(int64_t dim, size_t rank);
/// Which dimensions a list names. An empty or missing list means all.
Result<std::vector<bool>> dimensions(const Argument& list, size_t rank);

}  // namespace spyre::forms
