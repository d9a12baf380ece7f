#include "spyre/forms/form.h"

#include <fmt/format.h>

#include <cmath>

#include "spyre/forms/promotion.h"

namespace spyre::forms {
namespace {

/// What PyTorch's promotion sees of an argument.
Promoted promoted(const Argument& argument) {
  if (const auto* view = std::get_if<TensorView>(&argument)) {
    return {view->size.empty() ? Promoted::Category::kZeroDimensional : Promoted::Category::kDimensioned,
            view->dtype};
  }
  const Number& value = std::get<Number>(argument);
  if (value.dtype) {
    return {Promoted::Category::kZeroDimensional, *value.dtype};
  }
  return {Promoted::Category::kNumber, std::nullopt, value.kind};
}

Result<HostType> promoted_type(const Builder& builder, std::initializer_list<const Argument*> operands) {
  std::vector<Promoted> seen;
  for (const Argument* argument : operands) {
    // Every tensor is checked, not only the outcome: an int8 tensor beside a half cannot be read.
    if (!is_number(*argument)) {
      SPYRE_TRY(arithmetic_type(tensor(*argument).dtype));
    }
    seen.push_back(promoted(*argument));
  }
  return promote(seen, builder.options().default_float);
}

}  // namespace

const Argument& Arguments::operator[](size_t i) const {
  static const Argument kNone;
  return i < values_.size() ? values_[i] : kNone;
}

bool is_none(const Argument& argument) {
  return std::holds_alternative<std::monostate>(argument);
}
bool is_number(const Argument& argument) {
  return std::holds_alternative<Number>(argument);
}
bool is_bool(const Argument& argument) {
  if (is_number(argument)) {
    const Number& value = std::get<Number>(argument);
    return value.dtype ? *value.dtype == HostType::kBool : value.kind == Number::Kind::kBool;
  }
  return tensor(argument).dtype == HostType::kBool;
}

const TensorView& tensor(const Argument& argument) {
  return std::get<TensorView>(argument);
}
double number(const Argument& argument) {
  return std::get<Number>(argument).value;
}
double number(const Argument& argument, double otherwise) {
  return is_none(argument) ? otherwise : number(argument);
}
int64_t integer(const Argument& argument) {
  return std::get<Number>(argument).whole();
}
int64_t integer(const Argument& argument, int64_t otherwise) {
  return is_none(argument) ? otherwise : integer(argument);
}
bool flag(const Argument& argument) {
  return !is_none(argument) && number(argument) != 0;
}
std::vector<int64_t> integers(const Argument& argument) {
  return is_number(argument) ? std::vector<int64_t>{integer(argument)}
                             : std::get<std::vector<int64_t>>(argument);
}
const TensorList& tensors(const Argument& argument) {
  return std::get<TensorList>(argument);
}
std::string_view text(const Argument& argument) {
  return is_none(argument) ? std::string_view() : std::get<std::string>(argument);
}

bool is_integer(HostType type) {
  return type == HostType::kInt32 || type == HostType::kInt64;
}
bool is_word(HostType type) {
  return type == HostType::kFloat32 || is_integer(type);
}

bool is_float(HostType type) {
  switch (type) {
    case HostType::kFloat16:
    case HostType::kBFloat16:
    case HostType::kFloat32:
    case HostType::kFloat8E4M3FN:
    case HostType::kFloat8E5M2FNUZ:
      return true;
    default:
      return false;
  }
}

int64_t element_count(std::span<const int64_t> size) {
  int64_t count = 1;
  for (const int64_t extent : size) {
    count *= extent;
  }
  return count;
}

Result<HostType> arithmetic_type(HostType dtype) {
  switch (dtype) {
    case HostType::kFloat16:
    case HostType::kBFloat16:
    case HostType::kFloat32:
    case HostType::kBool:
    case HostType::kInt32:
    case HostType::kInt64:
      return dtype;
    default:
      return refuse(fmt::format("the card computes no {}", to_string(dtype)));
  }
}

Result<HostType> common_type(const Builder& builder, std::initializer_list<const Argument*> operands) {
  SPYRE_ASSIGN_OR_RETURN(const HostType type, promoted_type(builder, operands));
  const auto fits = [](double value) { return value >= -0x1p31 && value < 0x1p31; };
  const bool whole = !is_float(type) && type != HostType::kBool;
  for (const Argument* argument : operands) {
    if (whole && is_number(*argument) && !fits(number(*argument))) {
      return refuse("a number that does not fit the card's 32-bit integers");
    }
  }
  return arithmetic_type(type);
}

Result<HostType> common_float(const Builder& builder, std::initializer_list<const Argument*> operands) {
  SPYRE_ASSIGN_OR_RETURN(const HostType type, promoted_type(builder, operands));
  return arithmetic_type(is_float(type) ? type : builder.options().default_float);
}

HostType type_of(const Builder& builder, const Argument& operand) {
  const Promoted seen = promoted(operand);
  const Result<HostType> type = promote(std::span(&seen, 1), builder.options().default_float);
  return type.value();  // one type alone needs no other
}

Value operand(NodeBuilder& node, const Argument& argument, HostType dtype) {
  if (is_number(argument)) {
    return node.constant(number(argument), dtype);
  }
  return node.as(node.load(tensor(argument)), dtype);
}

Result<size_t> dimension(int64_t dim, size_t rank) {
  const int64_t from_front = dim < 0 ? dim + static_cast<int64_t>(rank) : dim;
  if (from_front < 0 || from_front >= static_cast<int64_t>(rank)) {
    return refuse(fmt::format("dimension {} of a tensor that has {}", dim, rank));
  }
  return static_cast<size_t>(from_front);
}

Result<std::vector<bool>> dimensions(const Argument& list, size_t rank) {
  const std::vector<int64_t> dims = is_none(list) ? std::vector<int64_t>() : integers(list);
  std::vector<bool> chosen(rank, dims.empty());
  for (const int64_t dim : dims) {
    // A zero-dimensional tensor has a dimension 0 and -1, too.
    if (rank > 0) {
      SPYRE_ASSIGN_OR_RETURN(const size_t d, dimension(dim, rank));
      chosen[d] = true;
    }
  }
  return chosen;
}

}  // namespace spyre::forms
