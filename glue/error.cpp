#include "glue/error.h"

#include <c10/util/Exception.h>

namespace spyre::glue {

namespace {

/// Set once, while the package loads.
std::function<void(const std::string&)>& fault_hook() {
  static auto* const hook = new std::function<void(const std::string&)>;  // never destroyed
  return *hook;
}

}  // namespace

void set_fault_hook(std::function<void(const std::string& message)> hook) {
  fault_hook() = std::move(hook);
}

void raise(const Error& error) {
  if (error.kind == ErrorKind::kDeviceFault && fault_hook()) {
    fault_hook()(error.to_string());
  }
  TORCH_CHECK_WITH(OutOfMemoryError, error.kind != ErrorKind::kOutOfMemory, error.to_string());
  TORCH_CHECK(false, error.to_string());
}

}  // namespace spyre::glue
