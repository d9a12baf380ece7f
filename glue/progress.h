#pragma once

#include <string>

#include "spyre/driver/progress_line.h"

namespace spyre::glue {

/// The line of this process on stderr; null where none is shown (SPYRE_PROGRESS).
ProgressLine* progress_line();

/// Work that the line tells of; inside other work, a part of it.
class ProgressScope {
 public:
  explicit ProgressScope(std::string what) {
    if (ProgressLine* const line = progress_line()) line->begin(std::move(what));
  }
  ~ProgressScope() {
    if (ProgressLine* const line = progress_line()) line->end();
  }
  ProgressScope(const ProgressScope&) = delete;
  ProgressScope& operator=(const ProgressScope&) = delete;
};

}  // namespace spyre::glue
