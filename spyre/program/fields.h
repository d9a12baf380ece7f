#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "spyre/base/json_fwd.h"
#include "spyre/base/result.h"

/// Reading JSON written by someone else: every failure names the file, the field, what was found and what is
/// allowed. A `Field` is a JSON value that knows the file it is in. How it was reached is looked up when someone asks, which
/// is when it is refused.
///
///     Field dsc = ...;                                   // sdsc_0.json: dscs_[0].add
///     dsc.at("numCoresUsed_").integer(1, 32)             // "sdsc_0.json: dscs_[0].add.numCoresUsed_: found
///     ..."
namespace spyre::program {

class Field {
 public:
  /// The whole of a file. Name and content outlive every field below.
  Field(std::string_view file, const Json& whole) : Field(file, whole, whole) {}

  const Json& json() const { return *json_; }
  /// The same field, with paths that begin below `ancestor`.
  Field told_from(const Field& ancestor) const { return {file_, *ancestor.json_, *json_}; }

  bool has(std::string_view key) const;
  /// The member `key` of an object; an error if this is no object or has no such member.
  Result<Field> at(std::string_view key) const;
  /// The same, or nothing where the key is absent or null.
  Result<std::optional<Field>> find(std::string_view key) const;

  /// Members of an object in written order, elements of an array. At most `limit` of them.
  Result<std::vector<std::pair<const std::string&, Field>>> members(size_t limit) const;
  Result<std::vector<Field>> elements(size_t limit) const;

  /// An integer in [low, high]; the decimal string form that fold data uses is accepted too.
  Result<int64_t> integer(int64_t low, int64_t high) const;
  /// A number; `"inf"`, `"-inf"` and `"nan"` stand for what JSON cannot write.
  Result<double> number() const;
  Result<std::string> text() const;
  Result<std::vector<std::string>> texts(size_t limit) const;

  /// "<file>: <path>: found <found>, allowed: <allowed>".
  Error refuse(std::string_view found, std::string_view allowed,
               ErrorKind kind = ErrorKind::kInvalidArgument) const;
  /// The same with the value itself, shortened, as what was found.
  Error refuse_value(std::string_view allowed) const;

 private:
  Field(std::string_view file, const Json& from, const Json& json)
      : file_(file), from_(&from), json_(&json) {}
  std::string path() const;

  std::string_view file_;
  const Json* from_;  ///< where paths begin
  const Json* json_;
};

/// The member `key` of an object, or a fallback where it is absent.
Result<int64_t> optional_integer(const Field& owner, std::string_view key, int64_t low, int64_t high,
                                 int64_t fallback);
Result<std::string> optional_text(const Field& owner, std::string_view key, std::string fallback);

/// Parses text that may be hostile: at most `kMaxJsonBytes` long and `kMaxJsonDepth` deep.
inline constexpr size_t kMaxJsonBytes = 64u << 20;
inline constexpr int kMaxJsonDepth = 64;
Result<Json> parse_bounded_json(std::string_view text, std::string_view file);

/// A decimal integer, the whole text, no sign but '-'.
std::optional<int64_t> parse_decimal(std::string_view text);

}  // namespace spyre::program
