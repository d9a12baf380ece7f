#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "spyre/base/result.h"
#include "spyre/graph/expr.h"

namespace spyre {

/// Words, numbers, quoted text and punctuation of the OpSpec text form, with a cursor.
///
/// `#` starts a comment that runs to the end of its line. Line breaks and blanks only separate. Every failure
/// names the origin (a file name, say), the line, what was found and what was allowed.
class Lexer {
 public:
  static Result<Lexer> read(std::string_view text, std::string_view origin);

  bool at_end() const { return kind() == Kind::kEnd; }
  /// Whether the next token is this word or punctuation mark.
  bool sees(std::string_view token) const;
  /// Takes the next token if it is this one.
  bool take(std::string_view token);
  Status expect(std::string_view token);
  Result<std::string> word(std::string_view what);
  Result<std::string> quoted(std::string_view what);
  bool sees_quoted() const { return kind() == Kind::kQuoted; }
  Result<int64_t> integer(std::string_view what);
  Result<double> number(std::string_view what);  ///< `inf` and `nan` are numbers
  bool sees_integer() const;
  /// Whether the next token is a number, of either sign, without point and exponent.
  bool sees_whole_number() const;

  /// sum := ['-'] product (('+' | '-') product)* ; product := [integer '*'] atom ; atom as in expr.h
  Result<Expr> expression();

  /// "file:3: found 'x', expected <what>".
  Error unexpected(std::string_view what) const;
  /// "file:3: <message>".
  Error error_here(std::string_view message) const;

 private:
  enum class Kind { kWord, kNumber, kQuoted, kMark, kEnd };
  struct Token {
    Kind kind;
    std::string text;
    int line;
  };

  Kind kind() const { return tokens_[next_].kind; }
  const Token& now() const { return tokens_[next_]; }
  Error too_large() const;
  Result<Expr> product();
  Result<Expr> atom();
  Result<Expr> quotient();
  Result<Expr> remainder();

  std::string origin_;
  std::vector<Token> tokens_;
  size_t next_ = 0;
  int depth_ = 0;  ///< of nested expressions, bounded so that hostile text cannot exhaust the stack
};

}  // namespace spyre
