#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "spyre/base/result.h"

namespace spyre {

struct ExprTerm;

/// An integer expression over named symbols: sums of symbols, quotients and remainders with integer factors.
///
/// Device coordinates, core maps and tile advances are all of this shape:
///
///     floor(c1/64)    Mod(c1, 64)    c0 + 3    Mod(floor(core_id/4), 2)    128*c0    IndirectAccess('idx')
///
/// The value is kept in one normal form, so `==` is equality of normal forms and printing is deterministic:
///
///     constant + sum of  coefficient * atom      atom = symbol | floor(e/d) | Mod(e, d) |
///     IndirectAccess('n')
///
/// Terms are sorted by the text of their atom and no coefficient is zero. Whole multiples of d leave a
/// quotient
/// (`floor((c1 + 64)/64)` is `floor(c1/64) + 1`) and vanish from a remainder, so a slice offset that sits on
/// a stick boundary always shows as the constant term. Quotients and remainders round towards minus infinity.
class Expr {
 public:
  Expr();  ///< zero
  Expr(const Expr&);
  Expr(Expr&&) noexcept;
  Expr& operator=(const Expr&);
  Expr& operator=(Expr&&) noexcept;
  ~Expr();

  static Expr constant(int64_t value);
  static Expr symbol(std::string name);
  /// The value that the named index tensor holds at the current coordinate.
  static Expr indirect(std::string name);
  /// floor(e/d); d must be positive.
  static Expr floor_div(const Expr& e, int64_t divisor);
  /// e - d*floor(e/d); d must be positive.
  static Expr mod(const Expr& e, int64_t divisor);

  friend Expr operator+(const Expr& a, const Expr& b);
  friend Expr operator*(int64_t factor, const Expr& e);
  friend bool operator==(const Expr& a, const Expr& b);

  int64_t constant_term() const { return constant_; }
  const std::vector<ExprTerm>& terms() const { return terms_; }
  bool is_constant() const { return terms_.empty(); }

  /// Every symbol inside, at any depth. Names of index tensors are not symbols.
  std::set<std::string> symbols() const;
  /// Every index tensor read.
  std::set<std::string> index_tensors() const;
  /// The factor of a symbol that appears as a term of its own, 0 if it does not.
  int64_t coefficient(std::string_view symbol) const;

  /// The value, given that of every symbol. Fails on a symbol without value and on an indirect access.
  Result<int64_t> evaluate(const std::map<std::string, int64_t, std::less<>>& values) const;

  std::string to_string() const;

 private:
  void add_term(int64_t coefficient, const ExprTerm& term);

  int64_t constant_ = 0;
  std::vector<ExprTerm> terms_;
};

enum class AtomKind : uint8_t { kSymbol, kFloorDiv, kMod, kIndirect };

/// coefficient * atom.
struct ExprTerm {
  int64_t coefficient = 1;
  AtomKind kind = AtomKind::kSymbol;
  std::string name;     ///< of the symbol or the index tensor
  Expr inner;           ///< of a quotient or remainder
  int64_t divisor = 1;  ///< of a quotient or remainder

  /// The atom alone, without its factor.
  std::string atom_text() const;
};

/// The expression with another name for an index tensor.
Expr rename_index_tensor(const Expr& e, std::string_view from, std::string_view to);
/// The expression with other names for all index tensors, each asked for once where it stands.
Expr rename_index_tensors(const Expr& e, const std::function<std::string(const std::string&)>& renamed);

/// The expression where these symbols are zero.
Expr at_zero(const Expr& e, const std::set<std::string>& symbols);

/// The expression where a symbol starts at `by` instead of zero.
Expr shifted(const Expr& e, std::string_view symbol, int64_t by);

/// Reads the text that `to_string` writes, in any order of terms and with redundant parentheses.
Result<Expr> parse_expr(std::string_view text);

}  // namespace spyre
