#include <ATen/native/TypeProperties.h>
#include <c10/core/ScalarType.h>

#include "glue/eager_recipes.h"

namespace spyre::glue {

Error refuse(std::string message) {
  return {ErrorKind::kUnsupported, std::move(message)};
}

bool is_number(const c10::IValue& value) {
  return value.isScalar() ||
         (value.isTensor() && value.toTensor().device().is_cpu() && value.toTensor().dim() == 0);
}

double number(const c10::IValue& value) {
  return value.isScalar() ? value.toScalar().toDouble() : value.toTensor().item().toDouble();
}

Result<HostType> arithmetic_type(c10::ScalarType dtype) {
  switch (dtype) {
    case c10::kHalf:
    case c10::kBFloat16:
    case c10::kFloat:
    case c10::kBool:
    case c10::kInt:
    case c10::kLong:
      return host_type_of(dtype);
    default:
      return refuse(c10::str("the card computes no ", dtype));
  }
}

namespace {

Result<c10::ScalarType> promoted(std::initializer_list<const c10::IValue*> operands) {
  at::native::ResultTypeState state = {};
  for (const c10::IValue* value : operands) {
    if (value->isScalar()) {
      state = at::native::update_result_type_state(value->toScalar(), state);
      continue;
    }
    const at::Tensor& tensor = value->toTensor();
    // Every operand is checked, not only the outcome: an int8 tensor beside a half cannot be read.
    if (!is_number(*value)) {
      SPYRE_TRY(arithmetic_type(tensor.scalar_type()));
    }
    state = at::native::update_result_type_state(tensor, state);
  }
  return at::native::result_type(state);
}

}  // namespace

Result<HostType> common_type(std::initializer_list<const c10::IValue*> operands) {
  SPYRE_ASSIGN_OR_RETURN(const c10::ScalarType type, promoted(operands));
  const auto fits = [](double value) { return value >= -0x1p31 && value < 0x1p31; };
  for (const c10::IValue* value : operands) {
    if (c10::isIntegralType(type, /*includeBool=*/false) && is_number(*value) && !fits(number(*value))) {
      return refuse("a number that does not fit the card's 32-bit integers");
    }
  }
  return arithmetic_type(type);
}

Result<HostType> common_float(std::initializer_list<const c10::IValue*> operands) {
  SPYRE_ASSIGN_OR_RETURN(const c10::ScalarType type, promoted(operands));
  return arithmetic_type(
      c10::isIntegralType(type, /*includeBool=*/true) ? c10::get_default_dtype_as_scalartype() : type);
}

Value operand(GraphBuilder& graph, NodeBuilder& node, const c10::IValue& value, HostType dtype) {
  if (is_number(value)) {
    return node.constant(number(value), dtype);
  }
  return node.as(node.load(graph.input(value.toTensor())), dtype);
}

std::vector<bool> dims_of(const c10::IValue& list, size_t rank) {
  const std::vector<int64_t> dims = list.isNone()  ? std::vector<int64_t>()
                                    : list.isInt() ? std::vector<int64_t>{list.toInt()}
                                                   : list.toIntVector();
  std::vector<bool> chosen(rank, dims.empty());
  for (const int64_t dim : dims) {
    // A zero-dimensional tensor has a dimension 0 and -1, too.
    if (rank > 0) {
      chosen[static_cast<size_t>(dim < 0 ? dim + static_cast<int64_t>(rank) : dim)] = true;
    }
  }
  return chosen;
}

}  // namespace spyre::glue
