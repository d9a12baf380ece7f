#include "spyre/opspec/opspec.h"

#include "spyre/graph/core_map.h"

namespace spyre {

std::string_view to_string(Place place) {
  switch (place) {
    case Place::kHbm:
      return "hbm";
    case Place::kLx:
      return "lx";
    case Place::kHbmPool:
      return "hbm_pool";
  }
  return "unknown";
}

std::string_view to_string(ArgumentRole role) {
  switch (role) {
    case ArgumentRole::kInput:
      return "input";
    case ArgumentRole::kOutput:
      return "output";
    case ArgumentRole::kInputOutput:
      return "input_output";
    case ArgumentRole::kConstant:
      return "constant";
  }
  return "unknown";
}

bool operator==(const LoopSpec& a, const LoopSpec& b) {
  return a.count == b.count && a.count_symbol == b.count_symbol && a.bound == b.bound && a.body == b.body;
}

std::vector<std::pair<std::string, Expr>> default_core_map(const std::vector<IterationDim>& space,
                                                           bool matmul) {
  std::vector<std::pair<std::string, Expr>> map;
  for (const IterationDim& dim : space) map.emplace_back(dim.symbol, Expr());
  std::vector<int64_t> splits;
  for (const IterationDim& dim : space) splits.push_back(dim.split);
  const std::vector<int64_t> steps = default_core_steps(splits, matmul);
  for (size_t i = 0; i < space.size(); ++i) map[i].second = work_slice(steps[i], splits[i]);
  return map;
}

Expr work_slice(int64_t step, int64_t split) {
  return Expr::mod(Expr::floor_div(Expr::symbol("core_id"), step), split);
}

int64_t cores_used(const OpSpec& op) {
  int64_t cores = 1;
  for (const IterationDim& dim : op.iteration_space) cores *= dim.split;
  return cores;
}

}  // namespace spyre
