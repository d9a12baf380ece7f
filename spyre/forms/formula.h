#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "spyre/forms/form.h"

/// Arithmetic on the elements of tensors, written as such:
///
///     const Element x = element(args[0], type);
///     fill(builder, 0, x * call("tanh", {call("softplus", {x}, ...)}));
///
/// An element is what broadcasting puts at the current point of a loop nest. Numbers take the type of what they meet.
/// Nothing is emitted before `fill` or `compute`, which write each part once, in the order of the formula.
namespace spyre::forms {

class Element {
 public:
  Element(const TensorView& tensor);  // NOLINT: implicit on purpose
  Element(double number);             // NOLINT: implicit on purpose
  struct Part;
  explicit Element(std::shared_ptr<const Part> part) : part_(std::move(part)) {}

  const std::shared_ptr<const Part>& part() const { return part_; }

 private:
  std::shared_ptr<const Part> part_;
};

/// A device operation, or a pointwise one of the graph.
Element call(std::string_view op, std::vector<Element> operands, Attributes attributes = {});
Element cast(const Element& x, HostType dtype);
Element where(const Element& condition, const Element& x, const Element& y);
Element equal(const Element& x, const Element& y);
Element different(const Element& x, const Element& y);
// Of truth values.
Element operator&&(const Element& x, const Element& y);
Element operator||(const Element& x, const Element& y);
Element operator!(const Element& x);
Element operator+(const Element& x, const Element& y);
Element operator-(const Element& x, const Element& y);
Element operator*(const Element& x, const Element& y);
Element operator/(const Element& x, const Element& y);
Element operator<(const Element& x, const Element& y);
Element operator<=(const Element& x, const Element& y);
Element operator>(const Element& x, const Element& y);
Element operator>=(const Element& x, const Element& y);

/// A tensor or a number of the call, as this type.
Element element(const Argument& argument, HostType dtype);

/// Fills a result of the call, in its type.
void fill(Builder& builder, size_t result, const Element& formula);
/// The same into a view: of a result as other dimensions, say.
void fill(Builder& builder, const TensorView& target, const Element& formula);
/// A buffer of its own for the formula, as large as its operands are together.
TensorView compute(Builder& builder, const Element& formula);

}  // namespace spyre::forms
