#pragma once

#include <algorithm>
#include <map>
#include <vector>

#include "spyre/cost/rates.h"

namespace spyre::timing {

/// The rate of an amount that is spread evenly over each of many spans: what all together do, moment by moment.
class RateOverTime {
 public:
  void add(Nanos begin, Nanos end, double amount) {
    if (end <= begin || amount <= 0) return;
    const double rate = amount / (end - begin).ns;
    changes_[begin.ns] += rate;
    changes_[end.ns] -= rate;
  }

  /// The rate from `at` on, amounts per ns.
  struct Level {
    Nanos at;
    double value = 0;
  };
  std::vector<Level> levels() const {
    std::vector<Level> levels;
    double rate = 0;
    for (const auto& [at, change] : changes_) {
      rate += change;
      levels.push_back({{at}, std::max(0.0, rate)});
    }
    if (!levels.empty()) levels.back().value = 0;  // what the last sum leaves is rounding
    return levels;
  }

 private:
  std::map<double, double> changes_;
};

}  // namespace spyre::timing
