#include "spyre/passes/divide/division/span_reduction.h"

#include <algorithm>

#include "spyre/passes/divide/division/span.h"
#include "spyre/passes/divide/division/split_rules.h"

namespace spyre {
namespace {

/// Calls `visit` with every way to split `axes` (from the split each has now upwards) that the cores allow;
/// the last axis varies fastest.
template <typename Visit>
void for_each_combination(const DivisionProblem& problem, const std::vector<const AxisFacts*>& axes,
                          size_t next, Splits& splits, const Visit& visit) {
  if (next == axes.size()) {
    if (cores_used(splits) <= problem.cores) visit(splits);
    return;
  }
  const AxisFacts& axis = *axes[next];
  const int64_t current = splits[axis.name];
  for (const int64_t factor : axis.factors) {
    if (factor < current) continue;
    if (factor > problem.cores) break;
    splits[axis.name] = factor;
    for_each_combination(problem, axes, next + 1, splits, visit);
  }
  splits[axis.name] = current;
}

/// How good a combination is: fitting beats not fitting; then see span_reduction.h.
struct SplitCandidate {
  Splits splits;
  Span span;
  int64_t cores = 0;
  bool fits = false;

  bool better_than(const SplitCandidate& other) const {
    if (fits != other.fits) return fits;
    if (fits) return cores != other.cores ? cores < other.cores : span.bytes > other.span.bytes;
    return span.bytes != other.span.bytes ? span.bytes < other.span.bytes : cores < other.cores;
  }
};

class SpanReduction {
 public:
  SpanReduction(const DivisionProblem& problem, const std::vector<AxisFacts>& facts)
      : problem_(problem), facts_(facts) {
    for (const AxisFacts& axis : facts) splits_[axis.name] = 1;
  }

  void reduce(const DivisionTensor& tensor) {
    for (size_t d = 0; d + 1 < tensor.coordinates.size(); ++d) {
      if (span_fits(problem_, tensor, facts_, splits_)) return;
      if (const auto best = best_split(tensor, d)) splits_ = best->splits;
      if (per_core_span(tensor, facts_, splits_).dimension == d) return;
    }
  }

  const Splits& splits() const { return splits_; }

 private:
  /// The best way to split the axes of one dimension; none when it has no axis or the cores allow no split.
  std::optional<SplitCandidate> best_split(const DivisionTensor& tensor, size_t dimension) const {
    std::vector<const AxisFacts*> axes;
    for (const AxisFacts& axis : facts_) {
      if (axis.extent > 1 && tensor.coordinates[dimension].symbols().contains(axis.name))
        axes.push_back(&axis);
    }
    std::optional<SplitCandidate> best;
    if (axes.empty()) return best;
    Splits trial = splits_;
    for_each_combination(problem_, axes, 0, trial, [&](const Splits& splits) {
      const Span span = per_core_span(tensor, facts_, splits);
      SplitCandidate candidate{.splits = splits,
                               .span = span,
                               .cores = cores_used(splits),
                               .fits = span.bytes <= problem_.span_limit};
      if (!best || candidate.better_than(*best)) best = std::move(candidate);
    });
    return best;
  }

  const DivisionProblem& problem_;
  const std::vector<AxisFacts>& facts_;
  Splits splits_;
};

}  // namespace

Result<Splits> span_floors(const DivisionProblem& problem) {
  SPYRE_ASSIGN_OR_RETURN(const std::vector<AxisFacts> facts, axis_facts(problem));
  SpanReduction reduction(problem, facts);
  for (const DivisionTensor& tensor : problem.tensors) {
    if (!tensor.indirect()) reduction.reduce(tensor);
  }
  SPYRE_TRY(check_one_reduction(problem, facts, reduction.splits(), "to keep every span within the limit"));
  return reduction.splits();
}

}  // namespace spyre
