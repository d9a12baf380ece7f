#include "spyre/program/affine_map.h"

#include <fmt/format.h>

#include <map>

#include "spyre/program/bundle_text.h"
#include "spyre/program/linear_form.h"

namespace spyre::program {
namespace {

class MapParser {
 public:
  explicit MapParser(TokenCursor& in) : in_(in) {}

  Result<AffineMap> parse() {
    AffineMap map;
    Positions positions;
    SPYRE_TRY(in_.expect("affine_map"));
    SPYRE_TRY(in_.expect("<"));
    SPYRE_TRY(in_.expect("("));
    SPYRE_TRY(parse_map_names(")", positions));
    map.dims = static_cast<int>(positions.size());
    if (in_.accept("[")) {
      SPYRE_TRY(parse_map_names("]", positions));
    }
    map.symbols = static_cast<int>(positions.size()) - map.dims;
    SPYRE_TRY(in_.expect("->"));
    SPYRE_TRY(in_.expect("("));
    SPYRE_ASSIGN_OR_RETURN(map.form, parse_sum(positions, 0));
    SPYRE_TRY(in_.expect(")"));
    SPYRE_TRY(in_.expect(">"));
    return map;
  }

 private:
  using Positions = std::map<std::string, int, std::less<>>;

  Status parse_map_names(std::string_view close, Positions& positions) {
    while (!in_.accept(close)) {
      if (in_.token().kind != TokenKind::kWord || positions.size() >= kMaxTerms) {
        return in_.refuse(fmt::format("at most {} names, then '{}'", kMaxTerms, close));
      }
      const auto position = static_cast<int>(positions.size());
      if (!positions.emplace(std::string(in_.token().text), position).second) {
        return in_.refuse("each name once");
      }
      in_.advance();
      if (!in_.is_sign(close)) {
        SPYRE_TRY(in_.expect(","));
      }
    }
    return Status();
  }

  Result<LinearForm> parse_sum(const Positions& positions, int depth) {
    SPYRE_ASSIGN_OR_RETURN(LinearForm sum, parse_product(positions, depth));
    while (in_.is_sign("+") || in_.is_sign("-")) {
      const bool minus = in_.is_sign("-");
      in_.advance();
      SPYRE_ASSIGN_OR_RETURN(LinearForm term, parse_product(positions, depth));
      SPYRE_ASSIGN_OR_RETURN(term, in_.checked(scale(term, minus ? -1 : 1)));
      SPYRE_ASSIGN_OR_RETURN(sum, in_.checked(add(sum, term)));
    }
    return sum;
  }

  Result<LinearForm> parse_product(const Positions& positions, int depth) {
    SPYRE_ASSIGN_OR_RETURN(LinearForm product, parse_factor(positions, depth));
    while (in_.accept("*")) {
      SPYRE_ASSIGN_OR_RETURN(const LinearForm factor, parse_factor(positions, depth));
      if (product.terms.empty()) {
        SPYRE_ASSIGN_OR_RETURN(product, in_.checked(scale(factor, product.constant)));
      } else if (factor.terms.empty()) {
        SPYRE_ASSIGN_OR_RETURN(product, in_.checked(scale(product, factor.constant)));
      } else {
        return in_.refuse("a product of two unknowns", "a product with a constant", ErrorKind::kUnsupported);
      }
    }
    if (in_.is_word("floordiv") || in_.is_word("ceildiv") || in_.is_word("mod")) {
      return in_.refuse(fmt::format("'{}'", in_.token().text), "sums and multiples", ErrorKind::kUnsupported);
    }
    return product;
  }

  Result<LinearForm> parse_factor(const Positions& positions, int depth) {
    if (depth > kMaxLoopDepth) {
      return in_.refuse("deeper parentheses", fmt::format("at most {}", kMaxLoopDepth));
    }
    if (in_.accept("-")) {
      SPYRE_ASSIGN_OR_RETURN(const LinearForm inner, parse_factor(positions, depth + 1));
      return in_.checked(scale(inner, -1));
    }
    if (in_.accept("(")) {
      SPYRE_ASSIGN_OR_RETURN(LinearForm inner, parse_sum(positions, depth + 1));
      SPYRE_TRY(in_.expect(")"));
      return inner;
    }
    if (in_.token().kind == TokenKind::kNumber) {
      SPYRE_ASSIGN_OR_RETURN(const int64_t value, in_.integer());
      return constant_form(value);
    }
    const auto position = positions.find(in_.token().text);
    if (in_.token().kind != TokenKind::kWord || position == positions.end()) {
      return in_.refuse("a number or one of the map's dims and symbols");
    }
    in_.advance();
    return atom_form({.kind = AtomSource::kParameter, .index = position->second});
  }

  TokenCursor& in_;
};

}  // namespace

Result<AffineMap> parse_affine_map(TokenCursor& in) {
  return MapParser(in).parse();
}

Result<LinearForm> apply_map(const AffineMap& map, std::span<const LinearForm> arguments) {
  LinearForm sum = constant_form(map.form.constant);
  for (const LinearForm::Term& term : map.form.terms) {
    SPYRE_ASSIGN_OR_RETURN(const LinearForm part, scale(arguments[term.atom.index], term.coefficient));
    SPYRE_ASSIGN_OR_RETURN(sum, add(sum, part));
  }
  return sum;
}

}  // namespace spyre::program
