#pragma once

#include <string>
#include <string_view>

#include "spyre/base/result.h"

/// The text of bundle.mlir, word by word.
namespace spyre::program {

enum class TokenKind { kWord, kNumber, kString, kSign, kEnd };

struct Token {
  TokenKind kind = TokenKind::kEnd;
  std::string_view text;
  int line = 1;
};

/// Cuts a text into tokens. Words may start with one of % # @ !; `->` is one sign; numbers carry no sign;
/// `//` starts a comment.
class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  Token next();

 private:
  void skip_blanks();

  std::string_view text_;
  size_t at_ = 0;
  int line_ = 1;
};

/// Looks at one token at a time; words refusals with file and line.
class TokenCursor {
 public:
  /// Both the text and the file's name must outlive the cursor.
  TokenCursor(std::string_view text, const std::string& file) : lexer_(text), file_(file) { advance(); }

  const Token& token() const { return token_; }
  void advance() { token_ = lexer_.next(); }

  bool is_sign(std::string_view text) const { return token_.kind == TokenKind::kSign && token_.text == text; }
  bool is_word(std::string_view text) const { return token_.kind == TokenKind::kWord && token_.text == text; }

  /// Steps over a given sign or word, if it is there; if it must be there.
  bool accept(std::string_view text);
  Status expect(std::string_view text);
  /// `: type`
  Status expect_type(std::string_view type);

  /// A word with a prefix, `%x`; `what` says in a refusal what was wanted.
  Result<std::string> name(char prefix, std::string_view what);
  Result<int64_t> integer();

  /// "<file>: line <n>: found <found>, allowed: <allowed>"; without `found`, the token.
  Error refuse(std::string_view allowed) const;
  Error refuse(std::string_view found, std::string_view allowed, ErrorKind kind = ErrorKind::kParse) const;

  /// Says of a failure where it happened.
  template <typename T>
  Result<T> checked(Result<T> result) const {
    return result.ok() ? std::move(result) : Result<T>(here(result.error()));
  }

 private:
  Error here(const Error& error) const;

  Lexer lexer_;
  const std::string& file_;
  Token token_;
};

}  // namespace spyre::program
