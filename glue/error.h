#pragma once

#include <functional>
#include <stdexcept>
#include <string>
#include <utility>

#include "spyre/base/result.h"

namespace spyre::glue {

/// Turns an error of the core into the exception PyTorch users know: torch.OutOfMemoryError for kOutOfMemory,
/// RuntimeError for everything else, with the whole message (notes and hint included).
[[noreturn]] void raise(const Error& error);

/// Is told about every fault of a device before it is raised.
void set_fault_hook(std::function<void(const std::string& message)> hook);

/// A refusal of the compiler on its way to Python, where it is `torch_spyre._C.CompileError`: a RuntimeError with the
/// fields of the error, for whoever has to decide what to do instead.
class CompileRefused : public std::runtime_error {
 public:
  explicit CompileRefused(Error refusal)
      : std::runtime_error(refusal.to_string()), error(std::move(refusal)) {}

  const Error error;
};

inline void check(const Status& status) {
  if (!status.ok()) {
    raise(status.error());
  }
}

template <typename T>
T unwrap(Result<T> result) {
  if (!result.ok()) {
    raise(result.error());
  }
  return std::move(result).value();
}

}  // namespace spyre::glue
