#pragma once

#include <span>

#include "spyre/program/bundle_tokens.h"
#include "spyre/program/device_program.h"

namespace spyre::program {

/// An affine map before it is applied: its expression is a linear form whose atoms are argument positions
/// (dims first, then symbols).
///
///     affine_map<(d0, d1)[s0] -> (s0 + 256*d0 + 128*d1)>
struct AffineMap {
  int dims = 0, symbols = 0;
  LinearForm form;
};

/// Reads a map at the cursor. Sums and multiples only: divisions are not linear.
Result<AffineMap> parse_affine_map(TokenCursor& in);

/// The map's expression with its arguments in place, dims first.
Result<LinearForm> apply_map(const AffineMap& map, std::span<const LinearForm> arguments);

}  // namespace spyre::program
