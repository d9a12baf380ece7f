#pragma once

#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "spyre/base/json.h"
#include "spyre/base/text.h"
#include "spyre/cost/matmul.h"
#include "spyre/cost/test_agreement.h"

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
