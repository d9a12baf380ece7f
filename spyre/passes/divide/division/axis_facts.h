#pragma once

#include <string>
#include <vector>

#include "spyre/passes/divide/division/division_problem.h"

namespace spyre {

/// What the tensors of a problem say about one of its axes.
///
///     {c0: 4, c1: 100} over fp16 [2, 4, 64] = [floor(c1/64), c0, Mod(c1, 64)]
///
///     c0: 4 elements, counted one by one        size 4, splits 1, 2, 4
///     c1: 100 elements along the stick          size 2 sticks of 64 lanes, splits 1, 2
///
/// A stick axis shared by tensors of different element widths is counted in the stick with the most elements:
/// a slice that is whole in the longest stick is whole in the shorter ones too.
struct AxisFacts {
  std::string name;
  int64_t extent = 1;            ///< elements
  bool stick = false;            ///< runs along the stick of some tensor
  bool reduction = false;        ///< does not choose a stick of the output
  int64_t lanes = 1;             ///< elements of one unit: of the longest stick, or 1
  int64_t size = 1;              ///< units; the last one may be partly filled
  std::vector<int64_t> factors;  ///< legal splits, ascending, never empty; the core count is not applied

  /// Elements of the axis that a card stores and computes: whole units.
  int64_t padded_extent() const { return size * lanes; }
  /// Elements of the longest slice under a split.
  int64_t slice_extent(int64_t split) const;
  bool allows(int64_t split) const;
  /// `61 sticks` or `512`: the size, for messages.
  std::string size_text() const;
};

/// The facts of every axis, in iteration order. Refuses a malformed problem (`check_problem`) and an axis
/// that its constraints leave without any legal split.
Result<std::vector<AxisFacts>> axis_facts(const DivisionProblem& problem);

const AxisFacts& facts_of(const std::vector<AxisFacts>& facts, std::string_view axis);

/// `c0 is 61 sticks long and divides into 1 or 61 parts`: why an axis can not be cut otherwise.
std::string describe_factors(const DivisionProblem& problem, const AxisFacts& axis);

}  // namespace spyre
