#pragma once

#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace spyre {

/// Why something did not happen. The edge (glue, a tool's main) turns a kind into an exception or an exit
/// code.
///
/// Three families, told apart from the first line on:
///  - *refused*: the program asks for what we cannot or may not do; returned as a `Result`;
///  - *fault*:   the emulated card was driven wrongly; reported as a card would, with core and address;
///  - *bug*:     we broke our own rule; thrown as `InternalError` by SPYRE_CHECK.
enum class ErrorKind {
  kInvalidArgument,  ///< a value is malformed or out of its documented range
  kUnsupported,      ///< well formed, but the card or this software cannot do it
  kOutOfMemory,      ///< the card has no room; the message carries the figures
  kOutOfRange,       ///< an index, address or size reaches past the thing it refers to
  kUseAfterFree,     ///< a handle outlived what it named
  kNotFound,         ///< a file, field, device or symbol does not exist
  kParse,            ///< text that does not follow its grammar
  kBadFork,          ///< the device is used in a child made by fork after the parent started it
  kDeviceFault,      ///< the card stopped: bad address, bad instruction, poisoned stream
  kShutdown,         ///< the runtime is gone or going
};

std::string_view to_string(ErrorKind kind);

/// The node of a program that an error is about, as the program's author knows it.
struct ErrorNode {
  std::string name;
  std::string aten;    ///< the operator it comes from, or empty
  std::string source;  ///< file and line, or empty

  friend bool operator==(const ErrorNode&, const ErrorNode&) = default;
};

/// What was found, what was allowed, where, and what to try. Texts are for people; whoever has to decide something reads
/// `kind`, `node`, `item` and `extents`.
struct Error {
  ErrorKind kind;
  std::string message;             ///< one line: what was found and what was allowed
  std::vector<std::string> notes;  ///< facts that explain it, one line each
  std::string hint;                ///< what to try, or empty
  std::optional<ErrorNode> node;   ///< of a graph, where one is to blame
  std::optional<size_t>
      item;  ///< of a sequence that was passed (the body of a kernel), where one is to blame
  /// What extents of a graph are computed from that would have to be fixed, to be compiled for one size each.
  std::vector<std::string> extents;

  Error(ErrorKind error_kind, std::string text) : kind(error_kind), message(std::move(text)) {}

  /// Adds a fact. Chainable, so that an error reads as one expression.
  Error&& note(std::string text) &&;
  /// Says what to try. Chainable.
  Error&& try_instead(std::string text) &&;
  /// Says which node it is about. Chainable.
  Error&& about(ErrorNode culprit) &&;
  /// Says which item it is about. Chainable.
  Error&& at_item(size_t position) &&;

  /// Says which extent it is about. Chainable.
  Error&& of_extent(std::string source) &&;

  /// The message, then `  note ...` lines (where the node comes from, then the notes), then a `  try  ...` line.
  std::string to_string() const;
};

inline Error invalid(std::string text) {
  return Error(ErrorKind::kInvalidArgument, std::move(text));
}
inline Error unsupported(std::string text) {
  return Error(ErrorKind::kUnsupported, std::move(text));
}

/// We broke our own rule. Never caused by user input alone.
class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

namespace detail {
[[noreturn]] void check_failed(const char* file, int line, const char* condition, const std::string& message);
}  // namespace detail

}  // namespace spyre

/// States a rule of our own. `SPYRE_CHECK(cond, "why it must hold")` throws InternalError when it does not.
#define SPYRE_CHECK(condition, message)                                         \
  do {                                                                          \
    if (!(condition)) {                                                         \
      ::spyre::detail::check_failed(__FILE__, __LINE__, #condition, (message)); \
    }                                                                           \
  } while (false)
