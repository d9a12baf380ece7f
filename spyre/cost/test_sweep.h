#pragma once

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <sstream>
#include <string>
#include <vector>

#include "spyre/base/json.h"
#include "spyre/base/text.h"
#include "spyre/cost/matmul.h"

/// Upstream's measured sweep of decode matmuls under forced splits, and how well something predicts it.
namespace spyre {

struct Measured {
  MatmulShape shape;
  MatmulSplit split;
  double us = 0;
};

/// Rows of the sweep by projection: qkv, o_proj, gate_up, down.
inline std::map<std::string, std::vector<Measured>> read_sweep() {
  std::istringstream lines(read_text(SPYRE_TIMING_CORPUS "/decode-matmul-sweep.csv").value());
  std::map<std::string, std::vector<Measured>> families;
  for (std::string line; std::getline(lines, line);) {
    const std::vector<std::string> cells = split_trimmed(line, ',');
    if (line.starts_with('#') || cells.at(0) == "projection") continue;
    const auto number = [&](int column) { return std::stoi(cells.at(column)); };
    families[cells[0]].push_back({.shape = {.m = number(1), .n = number(3), .k = number(2)},
                                  .split = {.m = number(4), .n = number(5), .k = number(6)},
                                  .us = std::stod(cells.at(8))});
  }
  return families;
}

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

template <typename Predict>
Agreement agreement(const std::vector<Measured>& rows, Predict predict) {
  std::vector<double> predicted, measured;
  for (const Measured& row : rows) {
    predicted.push_back(predict(row));
    measured.push_back(row.us);
  }
  return agreement(predicted, measured);
}

}  // namespace spyre
