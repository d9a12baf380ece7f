#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace spyre {

/// Of predictions with what was measured.
struct Agreement {
  double rms_error = 0;         ///< of predicted / measured - 1
  double bias = 0;              ///< its mean
  double rank_correlation = 0;  ///< Spearman's
};

/// Positions in ascending order; equal values share the mean of theirs.
inline std::vector<double> ranks(const std::vector<double>& values) {
  std::vector<double> rank;
  for (const double value : values) {
    const auto below =
        std::count_if(values.begin(), values.end(), [&](double other) { return other < value; });
    const auto equal = std::count(values.begin(), values.end(), value);
    rank.push_back(double(below) + double(equal - 1) / 2);
  }
  return rank;
}

inline double correlation(const std::vector<double>& a, const std::vector<double>& b) {
  const double n = double(a.size());
  const double mean_a = std::accumulate(a.begin(), a.end(), 0.0) / n;
  const double mean_b = std::accumulate(b.begin(), b.end(), 0.0) / n;
  double ab = 0, aa = 0, bb = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    ab += (a[i] - mean_a) * (b[i] - mean_b);
    aa += (a[i] - mean_a) * (a[i] - mean_a);
    bb += (b[i] - mean_b) * (b[i] - mean_b);
  }
  return ab / std::sqrt(aa * bb);
}

inline Agreement agreement(const std::vector<double>& predicted, const std::vector<double>& measured) {
  Agreement found = {.rank_correlation = correlation(ranks(predicted), ranks(measured))};
  const double n = double(measured.size());
  for (size_t i = 0; i < measured.size(); ++i) {
    const double error = predicted[i] / measured[i] - 1;
    found.rms_error += error * error / n;
    found.bias += error / n;
  }
  found.rms_error = std::sqrt(found.rms_error);
  return found;
}

}  // namespace spyre
