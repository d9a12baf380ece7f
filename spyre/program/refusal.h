#pragma once

#include <fmt/format.h>

#include <string_view>

#include "spyre/base/error.h"

namespace spyre::program {

/// The one form of a refusal in this layer: "<file>: <field>: found <found>, allowed: <allowed>".
inline Error refusal(std::string_view file, std::string_view field, std::string_view found,
                     std::string_view allowed, ErrorKind kind = ErrorKind::kInvalidArgument) {
  return Error(kind, fmt::format("{}: {}: found {}, allowed: {}", file, field, found, allowed));
}

}  // namespace spyre::program
