#pragma once

#include "spyre/solve/text.h"

namespace spyre::solve {

inline Problem parsed(std::string_view text) {
  return parse_problem(text, "test").value();
}

}  // namespace spyre::solve
