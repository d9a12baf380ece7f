#pragma once

#include <c10/core/Allocator.h>

namespace spyre::glue {

/// Host memory that copies may use without staging: whole pages, locked where the system allows it.
c10::Allocator* pinned_allocator();

/// True for any address inside a block of that allocator.
bool is_pinned(const void* data);

}  // namespace spyre::glue
