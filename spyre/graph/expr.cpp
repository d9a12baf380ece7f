#include "spyre/graph/expr.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "spyre/base/units.h"
#include "spyre/graph/lexer.h"

namespace spyre {

Expr::Expr() = default;
Expr::Expr(const Expr&) = default;
Expr::Expr(Expr&&) noexcept = default;
Expr& Expr::operator=(const Expr&) = default;
Expr& Expr::operator=(Expr&&) noexcept = default;
Expr::~Expr() = default;

Expr Expr::constant(int64_t value) {
  Expr e;
  e.constant_ = value;
  return e;
}

Expr Expr::symbol(std::string name) {
  Expr e;
  e.terms_.push_back({.kind = AtomKind::kSymbol, .name = std::move(name)});
  return e;
}

Expr Expr::indirect(std::string name) {
  Expr e;
  e.terms_.push_back({.kind = AtomKind::kIndirect, .name = std::move(name)});
  return e;
}

Expr Expr::floor_div(const Expr& e, int64_t divisor) {
  SPYRE_CHECK(divisor > 0, "a quotient needs a positive divisor");
  // Whole multiples leave the quotient; the rest stays inside.
  Expr outside;
  Expr inside;
  const bool whole = e.constant_ % divisor == 0;
  outside.constant_ = whole ? e.constant_ / divisor : 0;
  inside.constant_ = whole ? 0 : e.constant_;
  for (const ExprTerm& term : e.terms_) {
    if (term.coefficient % divisor == 0) {
      outside.add_term(term.coefficient / divisor, term);
    } else {
      inside.add_term(term.coefficient, term);
    }
  }
  if (inside.is_constant()) {
    return outside + constant(floor_quotient(inside.constant_, divisor));
  }
  ExprTerm quotient{.kind = AtomKind::kFloorDiv, .inner = std::move(inside), .divisor = divisor};
  outside.add_term(1, quotient);
  return outside;
}

Expr Expr::mod(const Expr& e, int64_t divisor) {
  SPYRE_CHECK(divisor > 0, "a remainder needs a positive divisor");
  Expr inside;
  inside.constant_ = e.constant_ % divisor == 0 ? 0 : e.constant_;
  for (const ExprTerm& term : e.terms_) {
    if (term.coefficient % divisor != 0) inside.add_term(term.coefficient, term);
  }
  if (inside.is_constant()) {
    return constant(inside.constant_ - divisor * floor_quotient(inside.constant_, divisor));
  }
  Expr result;
  result.terms_.push_back({.kind = AtomKind::kMod, .inner = std::move(inside), .divisor = divisor});
  return result;
}

void Expr::add_term(int64_t coefficient, const ExprTerm& term) {
  if (coefficient == 0) return;
  const std::string key = term.atom_text();
  const auto at = std::lower_bound(terms_.begin(), terms_.end(), key,
                                   [](const ExprTerm& t, const std::string& k) { return t.atom_text() < k; });
  if (at != terms_.end() && at->atom_text() == key) {
    at->coefficient += coefficient;
    if (at->coefficient == 0) terms_.erase(at);
    return;
  }
  ExprTerm added = term;
  added.coefficient = coefficient;
  terms_.insert(at, std::move(added));
}

Expr operator+(const Expr& a, const Expr& b) {
  Expr sum = a;
  sum.constant_ += b.constant_;
  for (const ExprTerm& term : b.terms_) sum.add_term(term.coefficient, term);
  return sum;
}

Expr operator*(int64_t factor, const Expr& e) {
  Expr product;
  product.constant_ = factor * e.constant_;
  for (const ExprTerm& term : e.terms_) product.add_term(factor * term.coefficient, term);
  return product;
}

bool operator==(const Expr& a, const Expr& b) {
  return a.constant_ == b.constant_ && std::equal(a.terms_.begin(), a.terms_.end(), b.terms_.begin(),
                                                  b.terms_.end(), [](const ExprTerm& s, const ExprTerm& t) {
                                                    return s.coefficient == t.coefficient &&
                                                           s.kind == t.kind && s.name == t.name &&
                                                           s.divisor == t.divisor && s.inner == t.inner;
                                                  });
}

std::set<std::string> Expr::symbols() const {
  std::set<std::string> names;
  for (const ExprTerm& term : terms_) {
    if (term.kind == AtomKind::kSymbol) names.insert(term.name);
    names.merge(term.inner.symbols());
  }
  return names;
}

std::set<std::string> Expr::index_tensors() const {
  std::set<std::string> names;
  for (const ExprTerm& term : terms_) {
    if (term.kind == AtomKind::kIndirect) names.insert(term.name);
    names.merge(term.inner.index_tensors());
  }
  return names;
}

int64_t Expr::coefficient(std::string_view symbol) const {
  for (const ExprTerm& term : terms_) {
    if (term.kind == AtomKind::kSymbol && term.name == symbol) return term.coefficient;
  }
  return 0;
}

Result<int64_t> Expr::evaluate(const std::map<std::string, int64_t, std::less<>>& values) const {
  int64_t total = constant_;
  for (const ExprTerm& term : terms_) {
    if (term.kind == AtomKind::kIndirect) {
      return Error(ErrorKind::kInvalidArgument,
                   fmt::format("'{}' depends on the index tensor '{}' and has no value before the run",
                               to_string(), term.name));
    }
    if (term.kind == AtomKind::kSymbol) {
      const auto found = values.find(term.name);
      if (found == values.end()) {
        return Error(ErrorKind::kInvalidArgument,
                     fmt::format("'{}': no value for '{}'", to_string(), term.name));
      }
      total += term.coefficient * found->second;
      continue;
    }
    SPYRE_ASSIGN_OR_RETURN(const int64_t inner, term.inner.evaluate(values));
    const int64_t quotient = floor_quotient(inner, term.divisor);
    total +=
        term.coefficient * (term.kind == AtomKind::kFloorDiv ? quotient : inner - quotient * term.divisor);
  }
  return total;
}

std::string ExprTerm::atom_text() const {
  switch (kind) {
    case AtomKind::kSymbol:
      return name;
    case AtomKind::kIndirect:
      return fmt::format("IndirectAccess('{}')", name);
    case AtomKind::kMod:
      return fmt::format("Mod({}, {})", inner.to_string(), divisor);
    case AtomKind::kFloorDiv:
      break;
  }
  const bool simple = inner.constant_term() == 0 && inner.terms().size() == 1;
  return simple ? fmt::format("floor({}/{})", inner.to_string(), divisor)
                : fmt::format("floor(({})/{})", inner.to_string(), divisor);
}

std::string Expr::to_string() const {
  std::string text;
  for (const ExprTerm& term : terms_) {
    const int64_t magnitude = std::abs(term.coefficient);
    text += text.empty() ? (term.coefficient < 0 ? "-" : "") : (term.coefficient < 0 ? " - " : " + ");
    if (magnitude != 1) text += fmt::format("{}*", magnitude);
    text += term.atom_text();
  }
  if (text.empty()) return fmt::format("{}", constant_);
  if (constant_ != 0) text += fmt::format(" {} {}", constant_ < 0 ? '-' : '+', std::abs(constant_));
  return text;
}

namespace {

/// The expression built anew from its atoms: `replace` gives what a symbol or an index value becomes.
Expr rebuilt(const Expr& e, const std::function<Expr(const ExprTerm&)>& replace) {
  Expr result = Expr::constant(e.constant_term());
  for (const ExprTerm& term : e.terms()) {
    Expr atom;
    switch (term.kind) {
      case AtomKind::kSymbol:
      case AtomKind::kIndirect:
        atom = replace(term);
        break;
      case AtomKind::kFloorDiv:
        atom = Expr::floor_div(rebuilt(term.inner, replace), term.divisor);
        break;
      case AtomKind::kMod:
        atom = Expr::mod(rebuilt(term.inner, replace), term.divisor);
        break;
    }
    result = result + term.coefficient * atom;
  }
  return result;
}

}  // namespace

Expr rename_index_tensor(const Expr& e, std::string_view from, std::string_view to) {
  return rename_index_tensors(e,
                              [&](const std::string& name) { return name == from ? std::string(to) : name; });
}

Expr rename_index_tensors(const Expr& e, const std::function<std::string(const std::string&)>& renamed) {
  return rebuilt(e, [&](const ExprTerm& term) {
    return term.kind == AtomKind::kSymbol ? Expr::symbol(term.name) : Expr::indirect(renamed(term.name));
  });
}

Expr at_zero(const Expr& e, const std::set<std::string>& symbols) {
  return rebuilt(e, [&](const ExprTerm& term) {
    if (term.kind == AtomKind::kIndirect) return Expr::indirect(term.name);
    return symbols.contains(term.name) ? Expr() : Expr::symbol(term.name);
  });
}

Expr shifted(const Expr& e, std::string_view symbol, int64_t by) {
  return rebuilt(e, [&](const ExprTerm& term) {
    if (term.kind == AtomKind::kIndirect) return Expr::indirect(term.name);
    return Expr::symbol(term.name) + Expr::constant(term.name == symbol ? by : 0);
  });
}

Result<Expr> parse_expr(std::string_view text) {
  SPYRE_ASSIGN_OR_RETURN(Lexer lexer, Lexer::read(text, "expression"));
  SPYRE_ASSIGN_OR_RETURN(Expr e, lexer.expression());
  if (!lexer.at_end()) return lexer.unexpected("the end of the expression");
  return e;
}

}  // namespace spyre
