#include "spyre/passes/select/extent_coordinates.h"

#include <algorithm>
#include <functional>

namespace spyre {

std::optional<std::vector<Expr>> extent_coordinates(const Buffer& buffer, const Expr& index,
                                                    const std::vector<Loop>& loops) {
  std::vector<size_t> dims;  // those with a stride, the widest first
  for (size_t d = 0; d < buffer.size.size(); ++d) {
    if (buffer.size[d] > 1 && buffer.stride[d] > 0) dims.push_back(d);
  }
  std::ranges::sort(dims, std::greater<>(), [&](size_t d) { return buffer.stride[d]; });
  std::vector<Expr> found(buffer.size.size());
  const auto place = [&](int64_t factor, const Expr& atom) {
    for (const size_t d : dims) {
      const int64_t steps = factor / buffer.stride[d];
      if (steps == 0) continue;
      found[d] = found[d] + steps * atom;
      factor -= steps * buffer.stride[d];
    }
    return factor == 0;
  };
  bool whole = place(index.constant_term() - buffer.offset, Expr::constant(1));
  for (const ExprTerm& term : index.terms()) {
    Expr atom;
    switch (term.kind) {
      case AtomKind::kSymbol:
        atom = Expr::symbol(term.name);
        break;
      case AtomKind::kFloorDiv:
        atom = Expr::floor_div(term.inner, term.divisor);
        break;
      case AtomKind::kMod:
        atom = Expr::mod(term.inner, term.divisor);
        break;
      case AtomKind::kIndirect:
        atom = Expr::indirect(term.name);
        break;
    }
    whole = place(term.coefficient, atom) && whole;
  }
  std::ranges::reverse(dims);
  int64_t inside = 0;  // the last element that the dimensions inside reach
  for (const size_t d : dims) {
    const IndexRange range = range_of(found[d], loops);
    if (buffer.bound(d) != kFixed)
      whole = whole && inside < buffer.stride[d] && range.low >= 0 && range.high < buffer.size[d];
    inside += range.high * buffer.stride[d];
  }
  return whole ? std::optional(std::move(found)) : std::nullopt;
}

}  // namespace spyre
