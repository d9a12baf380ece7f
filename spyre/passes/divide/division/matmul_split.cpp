#include "spyre/passes/divide/division/matmul_split.h"

#include <algorithm>

#include "spyre/passes/divide/division/axis_facts.h"
#include "spyre/passes/divide/division/work_distribution.h"

namespace spyre {
namespace {

struct AxisRoles {
  std::vector<const AxisFacts*> batch;
  const AxisFacts* m = nullptr;
  const AxisFacts* n = nullptr;
  const AxisFacts* k = nullptr;
  MatmulExtents shape;
};

/// The output axes other than N, sorted into M and batch. Answers whether there is an M.
bool choose_rows(const std::vector<const AxisFacts*>& others, const DivisionTensor& a,
                 const DivisionTensor& b, AxisRoles& roles) {
  const auto in_one_input = [&](const AxisFacts* axis) { return a.uses(axis->name) != b.uses(axis->name); };
  const auto last = std::find_if(others.rbegin(), others.rend(), in_one_input);
  if (last == others.rend()) return false;
  roles.m = *last;
  std::ranges::copy_if(others, std::back_inserter(roles.batch),
                       [&](const AxisFacts* axis) { return axis != roles.m; });
  roles.shape.shared_weight = roles.batch.empty() || std::ranges::count_if(others, in_one_input) > 1;
  return true;
}

bool narrow(const DivisionTensor& tensor) {
  return tensor.itemsize <= 2;
}

std::optional<AxisRoles> find_roles(const DivisionProblem& problem, const std::vector<AxisFacts>& facts) {
  if (problem.role != OpRole::kMatmul || problem.tensors.size() != 3) return std::nullopt;
  const DivisionTensor &a = problem.tensors[0], &b = problem.tensors[1], &output = problem.output();
  if (!narrow(a) || !narrow(b)) return std::nullopt;

  AxisRoles roles;
  std::vector<const AxisFacts*> others;
  const auto along_stick = output.coordinates.back().symbols();
  for (const AxisFacts& axis : facts) {
    if (axis.extent == 1) continue;
    const bool is_n = along_stick.contains(axis.name);
    const bool is_k = !output.uses(axis.name);
    if ((is_n && roles.n != nullptr) || (is_k && roles.k != nullptr)) return std::nullopt;
    if (is_n) {
      roles.n = &axis;
    } else if (is_k) {
      roles.k = &axis;
    } else {
      others.push_back(&axis);
    }
  }
  if (roles.n == nullptr || roles.k == nullptr || !choose_rows(others, a, b, roles)) return std::nullopt;

  const bool weight_first = a.uses(roles.n->name);
  MatmulExtents& shape = roles.shape;
  for (const AxisFacts* axis : roles.batch) shape.batch *= axis->padded_extent();
  shape.m = roles.m->padded_extent();
  shape.n = roles.n->padded_extent();
  shape.k = roles.k->padded_extent();
  shape.left_bytes = (weight_first ? b : a).itemsize;
  shape.weight_bytes = (weight_first ? a : b).itemsize;
  shape.output_bytes = output.itemsize;
  return roles;
}

/// Visits every way to split the batch axes, then m, n and k.
class SplitSearch {
 public:
  SplitSearch(const AxisRoles& roles, Splits start, int64_t cores)
      : roles_(roles), splits_(std::move(start)), cores_(cores), axes_(roles.batch) {
    axes_.insert(axes_.end(), {roles.m, roles.n, roles.k});
  }

  std::optional<Splits> best() {
    extend(0, 1);
    return best_;
  }

 private:
  void extend(size_t next, int64_t used) {
    if (next == axes_.size()) return judge();
    const AxisFacts& axis = *axes_[next];
    const bool keep_whole = &axis == roles_.k && roles_.shape.weight_bytes == 1;
    for (const int64_t factor : axis.factors) {
      if (used * factor > cores_ || (keep_whole && factor > 1)) break;
      splits_[axis.name] = factor;
      extend(next + 1, used * factor);
    }
  }

  void judge();

  const AxisRoles& roles_;
  Splits splits_;
  int64_t cores_;
  std::vector<const AxisFacts*> axes_;
  std::optional<Splits> best_;
  double least_ = 0;
};

MatmulFactors factors_of(const AxisRoles& roles, const Splits& splits) {
  MatmulFactors factors{.m = split_of(splits, roles.m->name),
                        .n = split_of(splits, roles.n->name),
                        .k = split_of(splits, roles.k->name)};
  for (const AxisFacts* axis : roles.batch) factors.b *= split_of(splits, axis->name);
  return factors;
}

void SplitSearch::judge() {
  const double score = score_matmul(roles_.shape, factors_of(roles_, splits_), cores_).total();
  if (best_ && score >= least_) return;
  best_ = splits_;
  least_ = score;
}

}  // namespace

std::optional<Splits> plan_matmul(const DivisionProblem& problem) {
  const auto facts = axis_facts(problem);
  if (!facts.ok()) return std::nullopt;
  const auto roles = find_roles(problem, facts.value());
  if (!roles) return std::nullopt;
  Splits whole;
  for (const AxisFacts& axis : facts.value()) whole[axis.name] = 1;
  const auto best = SplitSearch(*roles, whole, problem.cores).best();
  const auto common = distribute_work(problem, {});
  const bool fewer = best && common.ok() && cores_used(*best) < cores_used(common.value());
  return fewer && roles->shape.weight_bytes != 1 ? std::nullopt : best;
}

std::optional<MatmulScore> matmul_score(const DivisionProblem& problem, const Splits& splits) {
  const auto facts = axis_facts(problem);
  if (!facts.ok() || cores_used(splits) > problem.cores) return std::nullopt;
  const auto roles = find_roles(problem, facts.value());
  if (!roles) return std::nullopt;
  return score_matmul(roles->shape, factors_of(*roles, splits), problem.cores);
}

}  // namespace spyre
