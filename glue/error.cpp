#include "glue/error.h"

#include <c10/util/Exception.h>

namespace spyre::glue {

void raise(const Error& error) {
  TORCH_CHECK_WITH(OutOfMemoryError, error.kind != ErrorKind::kOutOfMemory, error.to_string());
  TORCH_CHECK(false, error.to_string());
}

}  // namespace spyre::glue
