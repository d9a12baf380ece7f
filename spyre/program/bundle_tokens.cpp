#include "spyre/program/bundle_tokens.h"

#include <fmt/format.h>

#include <algorithm>

#include "spyre/program/fields.h"

namespace spyre::program {
namespace {

bool is_word_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ||
         c == '$';
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

}  // namespace

Token Lexer::next() {
  skip_blanks();
  const size_t start = at_;
  if (at_ >= text_.size()) {
    return {TokenKind::kEnd, "end of file", line_};
  }
  const char c = text_[at_++];
  if (c == '"') {
    while (at_ < text_.size() && text_[at_] != '"' && text_[at_] != '\n') {
      ++at_;
    }
    const std::string_view inside = text_.substr(start + 1, at_ - start - 1);
    at_ = std::min(at_ + 1, text_.size());
    return {TokenKind::kString, inside, line_};
  }
  if (is_digit(c)) {
    while (at_ < text_.size() && is_digit(text_[at_])) {
      ++at_;
    }
    return {TokenKind::kNumber, text_.substr(start, at_ - start), line_};
  }
  if (is_word_char(c) || c == '%' || c == '#' || c == '@' || c == '!') {
    while (at_ < text_.size() && is_word_char(text_[at_])) {
      ++at_;
    }
    return {TokenKind::kWord, text_.substr(start, at_ - start), line_};
  }
  if (c == '-' && at_ < text_.size() && text_[at_] == '>') {
    ++at_;
  }
  return {TokenKind::kSign, text_.substr(start, at_ - start), line_};
}

void Lexer::skip_blanks() {
  while (at_ < text_.size()) {
    const char c = text_[at_];
    if (c == '\n') {
      ++line_;
      ++at_;
    } else if (c == ' ' || c == '\t' || c == '\r') {
      ++at_;
    } else if (c == '/' && text_.substr(at_, 2) == "//") {
      while (at_ < text_.size() && text_[at_] != '\n') {
        ++at_;
      }
    } else {
      break;
    }
  }
}

bool TokenCursor::accept(std::string_view text) {
  const bool there = is_sign(text) || is_word(text);
  if (there) {
    advance();
  }
  return there;
}

Status TokenCursor::expect(std::string_view text) {
  if (!accept(text)) {
    return refuse(fmt::format("'{}'", text));
  }
  return Status();
}

Status TokenCursor::expect_type(std::string_view type) {
  SPYRE_TRY(expect(":"));
  return expect(type);
}

Result<std::string> TokenCursor::name(char prefix, std::string_view what) {
  if (token_.kind != TokenKind::kWord || token_.text.size() < 2 || token_.text[0] != prefix) {
    return refuse(what);
  }
  std::string text(token_.text);
  advance();
  return text;
}

Result<int64_t> TokenCursor::integer() {
  const bool negative = accept("-");
  const std::optional<int64_t> value =
      token_.kind == TokenKind::kNumber ? parse_decimal(token_.text) : std::nullopt;
  if (!value) {
    return refuse("a 64-bit integer");
  }
  advance();
  return negative ? -*value : *value;
}

Error TokenCursor::refuse(std::string_view allowed) const {
  return refuse(fmt::format("'{}'", token_.text.substr(0, 60)), allowed);
}

Error TokenCursor::refuse(std::string_view found, std::string_view allowed, ErrorKind kind) const {
  return Error(kind, fmt::format("{}: line {}: found {}, allowed: {}", file_, token_.line, found, allowed));
}

Error TokenCursor::here(const Error& error) const {
  return Error(error.kind, fmt::format("{}: line {}: {}", file_, token_.line, error.message));
}

}  // namespace spyre::program
