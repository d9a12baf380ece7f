#include "spyre/forms/formula.h"

#include <algorithm>
#include <map>
#include <optional>

namespace spyre::forms {

struct Element::Part {
  BodyOp op = BodyOp::load;
  std::vector<Element> operands;
  Attributes attributes;
  TensorView tensor;
  double number = 0;
  HostType dtype = HostType::kFloat16;  // of to_dtype
};

namespace {

using Part = Element::Part;

Element made(Part part) {
  return Element(std::make_shared<const Part>(std::move(part)));
}

class Emitter {
 public:
  explicit Emitter(NodeBuilder& node) : node_(node) {}

  Value emit(const Element& element) {
    const Part* part = element.part().get();
    if (const auto known = values_.find(part); known != values_.end()) {
      return known->second;
    }
    const Value value = emit_new(*part);
    values_.emplace(part, value);
    return value;
  }

 private:
  Value emit_new(const Part& part) {
    if (part.op == BodyOp::load) {
      return node_.load(part.tensor);
    }
    if (part.op == BodyOp::to_dtype) {
      const Part& inner = *part.operands[0].part();
      return inner.op == BodyOp::constant ? node_.constant(inner.number, part.dtype)
                                          : node_.as(emit(part.operands[0]), part.dtype);
    }
    if (part.op == BodyOp::constant) {
      return node_.constant(part.number, HostType::kFloat32);
    }
    // Numbers wait for the type of the others; what a `where` asks has a type of its own.
    const size_t first = part.op == BodyOp::where ? 1 : 0;
    std::vector<std::optional<Value>> found;
    std::vector<HostType> types;
    for (size_t i = 0; i < part.operands.size(); ++i) {
      const bool number = part.operands[i].part()->op == BodyOp::constant;
      found.push_back(number ? std::nullopt : std::optional(emit(part.operands[i])));
      if (!number && i >= first) {
        types.push_back(node_.dtype(*found.back()));
      }
    }
    const HostType type = types.empty() ? HostType::kFloat32 : result_type(BodyOp::add, types);
    std::vector<Value> values;
    for (size_t i = 0; i < part.operands.size(); ++i) {
      values.push_back(found[i] ? *found[i] : node_.constant(part.operands[i].part()->number, type));
    }
    return node_.op(part.op, values, part.attributes);
  }

  NodeBuilder& node_;
  std::map<const Part*, Value> values_;
};

/// The size that the tensors of a formula have together.
void widen(std::vector<int64_t>& size, const Element& element) {
  const Part& part = *element.part();
  for (const Element& operand : part.operands) {
    widen(size, operand);
  }
  const std::vector<int64_t>& other = part.tensor.size;
  if (part.op != BodyOp::load) {
    return;
  }
  if (other.size() > size.size()) {
    size.insert(size.begin(), other.size() - size.size(), 1);
  }
  for (size_t i = 0; i < other.size(); ++i) {
    int64_t& extent = size[size.size() - 1 - i];
    extent = extent == 1 ? other[other.size() - 1 - i] : extent;
  }
}

/// Which type a formula has.
HostType type_of(const Element& element) {
  const Part& part = *element.part();
  if (part.op == BodyOp::load) {
    return part.tensor.dtype;
  }
  if (part.op == BodyOp::to_dtype) {
    return part.dtype;
  }
  std::vector<HostType> types;
  for (size_t i = part.op == BodyOp::where ? 1 : 0; i < part.operands.size(); ++i) {
    if (part.operands[i].part()->op != BodyOp::constant) {
      types.push_back(type_of(part.operands[i]));
    }
  }
  // A `where` names its condition first, which does not count: any type stands for it.
  if (part.op == BodyOp::where) {
    types.insert(types.begin(), HostType::kBool);
  }
  return part.op == BodyOp::constant ? HostType::kFloat32 : result_type(part.op, types);
}

}  // namespace

Element::Element(const TensorView& tensor)
    : part_(std::make_shared<const Part>(Part{.op = BodyOp::load, .tensor = tensor})) {}
Element::Element(double number)
    : part_(std::make_shared<const Part>(Part{.op = BodyOp::constant, .number = number})) {}

Element call(std::string_view op, std::vector<Element> operands, Attributes attributes) {
  return made({.op = body_op(op), .operands = std::move(operands), .attributes = std::move(attributes)});
}
Element cast(const Element& x, HostType dtype) {
  return made({.op = BodyOp::to_dtype, .operands = {x}, .dtype = dtype});
}
Element where(const Element& condition, const Element& x, const Element& y) {
  return call("where", {condition, x, y});
}
Element equal(const Element& x, const Element& y) {
  return call("eq", {x, y});
}
Element different(const Element& x, const Element& y) {
  return call("ne", {x, y});
}
Element operator&&(const Element& x, const Element& y) {
  return call("logical_and", {x, y});
}
Element operator||(const Element& x, const Element& y) {
  return call("logical_or", {x, y});
}
Element operator!(const Element& x) {
  return call("logical_not", {x});
}
Element operator+(const Element& x, const Element& y) {
  return call("add", {x, y});
}
Element operator-(const Element& x, const Element& y) {
  return call("sub", {x, y});
}
Element operator*(const Element& x, const Element& y) {
  return call("mul", {x, y});
}
Element operator/(const Element& x, const Element& y) {
  return call("truediv", {x, y});
}
Element operator<(const Element& x, const Element& y) {
  return call("lt", {x, y});
}
Element operator<=(const Element& x, const Element& y) {
  return call("le", {x, y});
}
Element operator>(const Element& x, const Element& y) {
  return call("gt", {x, y});
}
Element operator>=(const Element& x, const Element& y) {
  return call("ge", {x, y});
}

Element element(const Argument& argument, HostType dtype) {
  return cast(is_number(argument) ? Element(number(argument)) : Element(tensor(argument)), dtype);
}

void fill(Builder& builder, const TensorView& target, const Element& formula) {
  NodeBuilder node = builder.node(target, target.size);
  node.store(Emitter(node).emit(formula));
}

void fill(Builder& builder, size_t result, const Element& formula) {
  fill(builder, builder.result(result), formula);
}

TensorView compute(Builder& builder, const Element& formula) {
  std::vector<int64_t> size;
  widen(size, formula);
  const TensorView made = builder.local(size, type_of(formula));
  fill(builder, made, formula);
  return made;
}

}  // namespace spyre::forms
