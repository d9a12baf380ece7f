#pragma once

#include <c10/core/ScalarType.h>

#include <optional>

#include "spyre/layout/host_type.h"

namespace spyre::glue {

/// PyTorch's dtypes and ours. float64, complex and the other dtypes without a row in host_type.h are refused,
/// everywhere with the same RuntimeError.
std::optional<HostType> try_host_type(c10::ScalarType dtype);
HostType host_type_of(c10::ScalarType dtype);
c10::ScalarType dtype_of(HostType type);

/// True when tensors of the dtype can live on the card.
inline bool is_supported_dtype(c10::ScalarType dtype) {
  return try_host_type(dtype).has_value();
}

/// Warns, once per process, that int64 is stored as int32. Off by setting or by `set_downcast_warning(false)`.
void warn_downcast_once();
bool downcast_warning();
void set_downcast_warning(bool enabled);

}  // namespace spyre::glue
