// The model against hardware: upstream's measured sweep of decode matmuls under forced splits.
#include <gtest/gtest.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <numeric>
#include <sstream>

#include "spyre/base/json.h"
#include "spyre/base/text.h"
#include "spyre/cost/split_score.h"

namespace spyre {
namespace {

struct Measured {
  MatmulShape shape;
  MatmulSplit split;
  double us;
};

/// Rows of the sweep by projection: qkv, o_proj, gate_up, down.
std::map<std::string, std::vector<Measured>> read_sweep() {
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

struct Agreement {
  double rms_error;         ///< of predicted / measured - 1
  double rank_correlation;  ///< Spearman's
};

std::vector<double> ranks(const std::vector<double>& values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return values[a] < values[b]; });
  std::vector<double> rank(values.size());
  for (size_t i = 0; i < order.size(); ++i) rank[order[i]] = double(i);
  return rank;
}

template <typename Predict>
Agreement agreement(const std::vector<Measured>& rows, Predict predict) {
  std::vector<double> predicted, measured;
  double squares = 0;
  for (const Measured& row : rows) {
    predicted.push_back(predict(row));
    measured.push_back(row.us);
    squares += std::pow(predicted.back() / row.us - 1, 2);
  }
  const std::vector<double> a = ranks(predicted), b = ranks(measured);
  double distance = 0;
  for (size_t i = 0; i < a.size(); ++i) distance += (a[i] - b[i]) * (a[i] - b[i]);
  const double n = double(rows.size());
  return {std::sqrt(squares / n), 1 - 6 * distance / (n * (n * n - 1))};
}

double our_us(const Measured& row) {
  return decode_matmul_time(row.shape, row.split, fitted_rates()).us();
}

TEST(DecodeSweep, OurTimeIsWithinNinePercentInEveryFamily) {
  const auto families = read_sweep();
  ASSERT_EQ(families.size(), 4u);
  for (const auto& [name, rows] : families) {
    const Agreement found = agreement(rows, our_us);
    RecordProperty(name + "_rms_error", std::to_string(found.rms_error));
    RecordProperty(name + "_rank_correlation", std::to_string(found.rank_correlation));
    EXPECT_LT(found.rms_error, 0.09) << name;
    EXPECT_GT(found.rank_correlation, 0.75) << name;
  }
}

TEST(DecodeSweep, AcrossAllFamiliesTheOrderIsNearlyRight) {
  std::vector<Measured> all;
  for (const auto& [name, rows] : read_sweep()) all.insert(all.end(), rows.begin(), rows.end());
  EXPECT_EQ(all.size(), 238u);
  const Agreement found = agreement(all, our_us);
  EXPECT_LT(found.rms_error, 0.08);
  EXPECT_GT(found.rank_correlation, 0.98);
  // Upstream's execution estimate adds compute, memory and partial sums: a ranking, not a time.
  const Agreement score = agreement(all, [](const Measured& row) {
    return score_split(row.shape, row.split, 32, fitted_rates()).execution();
  });
  EXPECT_GT(score.rms_error, 4 * found.rms_error);
}

}  // namespace
}  // namespace spyre
