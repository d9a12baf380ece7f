#pragma once

#include <vector>

#include "spyre/cost/rates.h"
#include "spyre/cost/test_sweep.h"

namespace spyre {

/// The figures of Rates that are fitted to the sweep, in the order of the page.
struct Fitted {
  const char* name;
  double Rates::*rate;
};
const std::vector<Fitted>& fitted_to_sweep();

/// `start` with those figures chosen so that the closed form of decode matmuls is least off these rows, root
/// mean square: one figure after the other, in ever smaller steps. The same rows give the same figures.
Rates fit(const std::vector<Measured>& rows, Rates start);

}  // namespace spyre
