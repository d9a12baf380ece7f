#include "spyre/passes/select/integer_steps.h"

namespace spyre::integer_steps {

Operand integer(OpEmitter& emit, double value) {
  return emit.constant(value, HostType::kInt32);
}

Operand number(OpEmitter& emit, double value) {
  return emit.constant(value, HostType::kFloat32);
}

Operand as_float(OpEmitter& emit, const Operand& x) {
  return emit.hold(x, Held::kFp32);
}

Operand as_integer(OpEmitter& emit, const Operand& x) {
  return x.is_constant() ? emit.hold(x, Held::kInt32) : emit.op(OpId::fp32toint32, {x}, Held::kInt32);
}

// `most`, which the magnitude is known not to exceed, goes along: recipes take fewer digits of what is small.
Operand sum(OpEmitter& emit, const Operand& x, const Operand& y) {
  Operand result = emit.op(OpId::addi32toi32, {x, y});
  result.most = x.most + y.most;
  return result;
}

Operand product(OpEmitter& emit, const Operand& x, const Operand& y) {
  Operand result = emit.op(OpId::muli32toi32, {x, y});
  result.most = x.most * y.most;
  return result;
}

Operand negative(OpEmitter& emit, const Operand& x) {
  return product(emit, x, integer(emit, -1));
}

Operand difference(OpEmitter& emit, const Operand& x, const Operand& y) {
  return sum(emit, x, negative(emit, y));
}

Digits digits_of(OpEmitter& emit, const Operand& x) {
  const Operand guess =
      emit.op(OpId::floor, {emit.op(OpId::mul, {as_float(emit, x), number(emit, 1 / kBase)})});
  const Operand rest =
      as_float(emit, difference(emit, x, product(emit, as_integer(emit, guess), integer(emit, kBase))));
  // Where fp32 rounded x up to the next multiple, the rest is negative.
  const Operand over = emit.op(OpId::lesserthan, {rest, number(emit, 0)});
  return {emit.op(OpId::sub, {guess, over}),
          emit.op(OpId::add, {rest, emit.op(OpId::mul, {over, number(emit, kBase)})})};
}

Operand joined(OpEmitter& emit, const Operand& high, const Operand& low, double base) {
  return sum(emit, product(emit, as_integer(emit, high), integer(emit, base)), as_integer(emit, low));
}

}  // namespace spyre::integer_steps
