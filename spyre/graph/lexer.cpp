#include "spyre/graph/lexer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <limits>

namespace spyre {
namespace {

constexpr std::string_view kMarks = "{}[]():;,=+-*/@<>";
constexpr int kDeepestExpression = 64;
// Far above any card's memory, far below what overflows.
constexpr int64_t kMostInExpression = int64_t{1} << 42;

int64_t largest_number(const Expr& e) {
  int64_t largest = std::abs(e.constant_term());
  for (const ExprTerm& term : e.terms()) largest = std::max(largest, std::abs(term.coefficient));
  return largest;
}

bool is_word_start(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_';
}
bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.';
}
bool is_digit(char c) {
  return std::isdigit(static_cast<unsigned char>(c)) != 0;
}

// One past the end of the number that starts at `at`: digits, fraction, exponent.
size_t number_end(std::string_view text, size_t at) {
  const auto digits = [&](size_t i) {
    while (i < text.size() && is_digit(text[i])) ++i;
    return i;
  };
  size_t end = digits(at);
  if (end < text.size() && text[end] == '.') end = digits(end + 1);
  if (end < text.size() && (text[end] == 'e' || text[end] == 'E')) {
    size_t exponent = end + 1;
    if (exponent < text.size() && (text[exponent] == '+' || text[exponent] == '-')) ++exponent;
    if (exponent < text.size() && is_digit(text[exponent])) end = digits(exponent);
  }
  return end;
}

// One past the end of the quoted text that starts at `at`, npos if its line ends first. A backslash keeps the
// next character as it is.
size_t quoted_end(std::string_view text, size_t at, std::string& content) {
  for (size_t i = at + 1; i < text.size() && text[i] != '\n'; ++i) {
    if (text[i] == text[at]) return i + 1;
    if (text[i] == '\\' && i + 1 < text.size()) ++i;
    content += text[i];
  }
  return std::string_view::npos;
}

}  // namespace

Result<Lexer> Lexer::read(std::string_view text, std::string_view origin) {
  Lexer lexer;
  lexer.origin_ = origin;
  int line = 1;
  for (size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (c == '\n') ++line;
    if (std::isspace(static_cast<unsigned char>(c)) != 0) {
      ++at;
    } else if (c == '#') {
      at = std::min(text.find('\n', at), text.size());
    } else if (is_word_start(c)) {
      size_t end = at;
      while (end < text.size() && is_word(text[end])) ++end;
      lexer.tokens_.push_back({Kind::kWord, std::string(text.substr(at, end - at)), line});
      at = end;
    } else if (is_digit(c)) {
      const size_t end = number_end(text, at);
      lexer.tokens_.push_back({Kind::kNumber, std::string(text.substr(at, end - at)), line});
      at = end;
    } else if (c == '\'' || c == '"') {
      std::string content;
      const size_t end = quoted_end(text, at, content);
      if (end == std::string_view::npos) {
        return Error(ErrorKind::kParse, fmt::format("{}:{}: a quote is opened but not closed", origin, line));
      }
      lexer.tokens_.push_back({Kind::kQuoted, std::move(content), line});
      at = end;
    } else if (kMarks.find(c) != std::string_view::npos) {
      lexer.tokens_.push_back({Kind::kMark, std::string(1, c), line});
      ++at;
    } else {
      return Error(ErrorKind::kParse, fmt::format("{}:{}: unexpected character '{}'", origin, line, c));
    }
  }
  lexer.tokens_.push_back({Kind::kEnd, "the end", line});
  return lexer;
}

bool Lexer::sees(std::string_view token) const {
  return (kind() == Kind::kWord || kind() == Kind::kMark) && now().text == token;
}

bool Lexer::take(std::string_view token) {
  if (!sees(token)) return false;
  ++next_;
  return true;
}

Status Lexer::expect(std::string_view token) {
  if (take(token)) return Status();
  return unexpected(fmt::format("'{}'", token));
}

Result<std::string> Lexer::word(std::string_view what) {
  if (kind() != Kind::kWord) return unexpected(what);
  return tokens_[next_++].text;
}

Result<std::string> Lexer::quoted(std::string_view what) {
  if (kind() != Kind::kQuoted) return unexpected(what);
  return tokens_[next_++].text;
}

bool Lexer::sees_integer() const {
  return kind() == Kind::kNumber || sees("-");
}

bool Lexer::sees_whole_number() const {
  const Token& token = sees("-") ? tokens_[next_ + 1] : now();  // the end follows every mark
  return token.kind == Kind::kNumber && std::all_of(token.text.begin(), token.text.end(), is_digit);
}

Result<int64_t> Lexer::integer(std::string_view what) {
  const bool negative = take("-");
  if (kind() != Kind::kNumber) return unexpected(what);
  const std::string text = (negative ? "-" : "") + now().text;
  int64_t value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc() || end != text.data() + text.size()) return unexpected(what);
  ++next_;
  return value;
}

Result<double> Lexer::number(std::string_view what) {
  const double sign = take("-") ? -1 : 1;
  double value = 0;
  if (take("inf")) return sign * std::numeric_limits<double>::infinity();
  if (take("nan")) return std::numeric_limits<double>::quiet_NaN();
  if (kind() != Kind::kNumber) return unexpected(what);
  const std::string& text = now().text;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc() || end != text.data() + text.size()) return unexpected(what);
  ++next_;
  return sign * value;
}

Result<Expr> Lexer::expression() {
  if (++depth_ > kDeepestExpression) {
    return error_here(fmt::format("expressions nest at most {} deep", kDeepestExpression));
  }
  Expr sum;
  int64_t sign = take("-") ? -1 : 1;
  while (true) {
    SPYRE_ASSIGN_OR_RETURN(const Expr part, product());
    sum = sum + sign * part;
    if (largest_number(sum) > kMostInExpression) return too_large();
    if (take("+")) {
      sign = 1;
    } else if (take("-")) {
      sign = -1;
    } else {
      break;
    }
  }
  --depth_;
  return sum;
}

Result<Expr> Lexer::product() {
  if (kind() != Kind::kNumber) return atom();
  SPYRE_ASSIGN_OR_RETURN(const int64_t factor, integer("an integer"));
  if (factor > kMostInExpression) return too_large();
  if (!take("*")) return Expr::constant(factor);
  SPYRE_ASSIGN_OR_RETURN(const Expr e, atom());
  if (factor != 0 && largest_number(e) > kMostInExpression / factor) return too_large();
  return factor * e;
}

Result<Expr> Lexer::atom() {
  if (take("(")) {
    SPYRE_ASSIGN_OR_RETURN(Expr e, expression());
    SPYRE_TRY(expect(")"));
    return e;
  }
  SPYRE_ASSIGN_OR_RETURN(std::string name, word("a symbol, floor(), Mod(), IndirectAccess() or an integer"));
  if (!take("(")) return Expr::symbol(std::move(name));
  if (name == "floor") return quotient();
  if (name == "Mod") return remainder();
  if (name == "IndirectAccess") {
    SPYRE_ASSIGN_OR_RETURN(std::string tensor, quoted("the quoted name of an index tensor"));
    SPYRE_TRY(expect(")"));
    return Expr::indirect(std::move(tensor));
  }
  return error_here(fmt::format("unknown function '{}', allowed are floor, Mod, IndirectAccess", name));
}

Result<Expr> Lexer::quotient() {
  SPYRE_ASSIGN_OR_RETURN(const Expr e, expression());
  SPYRE_TRY(expect("/"));
  SPYRE_ASSIGN_OR_RETURN(const int64_t divisor, integer("a positive divisor"));
  if (divisor <= 0) return error_here("a divisor must be positive");
  SPYRE_TRY(expect(")"));
  return Expr::floor_div(e, divisor);
}

Result<Expr> Lexer::remainder() {
  SPYRE_ASSIGN_OR_RETURN(const Expr e, expression());
  SPYRE_TRY(expect(","));
  SPYRE_ASSIGN_OR_RETURN(const int64_t divisor, integer("a positive divisor"));
  if (divisor <= 0) return error_here("a divisor must be positive");
  SPYRE_TRY(expect(")"));
  return Expr::mod(e, divisor);
}

Error Lexer::too_large() const {
  return error_here(fmt::format("a number of the expression is above {}", kMostInExpression));
}

Error Lexer::unexpected(std::string_view what) const {
  const std::string found = at_end() ? now().text : fmt::format("'{}'", now().text);
  return Error(ErrorKind::kParse,
               fmt::format("{}:{}: found {}, expected {}", origin_, now().line, found, what));
}

Error Lexer::error_here(std::string_view message) const {
  return Error(ErrorKind::kParse, fmt::format("{}:{}: {}", origin_, now().line, message));
}

}  // namespace spyre
