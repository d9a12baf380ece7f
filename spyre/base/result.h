#pragma once

#include <optional>
#include <utility>
#include <variant>

#include "spyre/base/error.h"

namespace spyre {

/// A value, or the reason why there is none. Nothing is swallowed: the type is [[nodiscard]].
///
///     Result<Layout> parse_layout(std::string_view text);
///     SPYRE_ASSIGN_OR_RETURN(const Layout layout, parse_layout(text));
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT: implicit on purpose
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT: implicit on purpose

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  /// The value. Asking for it when there is none is a bug in the caller and throws InternalError.
  T& value() & {
    require_ok();
    return std::get<0>(state_);
  }
  const T& value() const& {
    require_ok();
    return std::get<0>(state_);
  }
  T&& value() && {
    require_ok();
    return std::get<0>(std::move(state_));
  }

  const Error& error() const {
    SPYRE_CHECK(!ok(), "error() on a result that holds a value");
    return std::get<1>(state_);
  }

 private:
  void require_ok() const { SPYRE_CHECK(ok(), "value() on an error: " + std::get<1>(state_).to_string()); }

  std::variant<T, Error> state_;
};

/// Success, or the reason for failure.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Error error) : error_(std::move(error)) {}  // NOLINT: implicit on purpose

  bool ok() const { return !error_.has_value(); }
  explicit operator bool() const { return ok(); }
  const Error& error() const {
    SPYRE_CHECK(!ok(), "error() on success");
    return *error_;
  }

 private:
  std::optional<Error> error_;
};

}  // namespace spyre

/// Leaves the function with the error of a `Result` or `Status` expression, if it has one.
#define SPYRE_TRY(expression)                                     \
  do {                                                            \
    if (auto spyre_status_ = (expression); !spyre_status_.ok()) { \
      return spyre_status_.error();                               \
    }                                                             \
  } while (false)

#define SPYRE_CONCAT_INNER_(a, b) a##b
#define SPYRE_CONCAT_(a, b) SPYRE_CONCAT_INNER_(a, b)

/// `SPYRE_ASSIGN_OR_RETURN(auto x, compute());` declares x, or leaves the function with the error.
#define SPYRE_ASSIGN_OR_RETURN(declaration, expression) \
  SPYRE_ASSIGN_OR_RETURN_IMPL_(SPYRE_CONCAT_(spyre_result_, __LINE__), declaration, expression)
#define SPYRE_ASSIGN_OR_RETURN_IMPL_(result, declaration, expression) \
  auto result = (expression);                                         \
  if (!result.ok()) return result.error();                            \
  declaration = std::move(result).value()
