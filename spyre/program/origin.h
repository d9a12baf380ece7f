#pragma once

#include <string>
#include <string_view>

namespace spyre::program {

/// Where one operation comes from, as its sdsc file says (`debug_handle_`). Nothing of it changes what the operation
/// does; it is for profiles and reports.
struct OpOrigin {
  std::string aten;    ///< ATen operator
  std::string source;  ///< `model.py:12`
};

/// Empty where the text is of another kind, or says nothing.
OpOrigin origin_in(std::string_view sdsc);

}  // namespace spyre::program
