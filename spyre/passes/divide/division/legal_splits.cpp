#include "spyre/passes/divide/division/legal_splits.h"

#include <limits>

#include "spyre/passes/divide/division/split_rules.h"

namespace spyre {
namespace {

class Enumeration {
 public:
  Enumeration(const DivisionProblem& problem, const std::vector<AxisFacts>& facts, const Splits& floors,
              size_t limit)
      : problem_(problem), facts_(facts), floors_(floors), limit_(limit) {}

  std::vector<Splits> run() {
    extend(0, 1);
    return std::move(found_);
  }

 private:
  void extend(size_t next, int64_t cores) {
    if (next == facts_.size()) {
      if (is_legal(problem_, facts_, floors_, splits_)) found_.push_back(splits_);
      return;
    }
    const AxisFacts& axis = facts_[next];
    for (const int64_t factor : axis.factors) {
      if (cores * factor > problem_.cores || found_.size() >= limit_) break;
      splits_[axis.name] = factor;
      extend(next + 1, cores * factor);
    }
  }

  const DivisionProblem& problem_;
  const std::vector<AxisFacts>& facts_;
  const Splits& floors_;
  const size_t limit_;
  Splits splits_;
  std::vector<Splits> found_;
};

}  // namespace

Result<std::vector<Splits>> legal_splits(const DivisionProblem& problem, const Splits& floors, size_t limit) {
  SPYRE_ASSIGN_OR_RETURN(const std::vector<AxisFacts> facts, axis_facts(problem));
  if (limit == 0) return std::vector<Splits>();
  return Enumeration(problem, facts, floors, limit).run();
}

Result<Splits> cheapest_split(const DivisionProblem& problem, const Splits& floors, const Splits& seed,
                              const SplitCost& cost) {
  SPYRE_ASSIGN_OR_RETURN(const std::vector<AxisFacts> facts, axis_facts(problem));
  SPYRE_ASSIGN_OR_RETURN(const std::vector<Splits> candidates,
                         legal_splits(problem, floors, std::numeric_limits<size_t>::max()));
  Splits best = seed;
  double least =
      is_legal(problem, facts, floors, seed) ? cost(problem, seed) : std::numeric_limits<double>::infinity();
  for (const Splits& candidate : candidates) {
    const double price = cost(problem, candidate);
    if (price < least) {
      least = price;
      best = candidate;
    }
  }
  return best;
}

}  // namespace spyre
