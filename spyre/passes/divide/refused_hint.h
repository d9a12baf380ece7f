#pragma once

#include <cstdint>
#include <string>

namespace spyre {

/// A wished split that could not be followed.
struct RefusedHint {
  std::string node, loop;
  int64_t split = 1;
  std::string reason;
};

}  // namespace spyre
