#include "spyre/opspec/opspec.h"

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
  const Expr core = Expr::symbol("core_id");
  int64_t faster_cores = 1;
  const auto assign = [&](size_t i) {
    map[i].second = Expr::mod(Expr::floor_div(core, faster_cores), space[i].split);
    faster_cores *= space[i].split;
  };
  const size_t last = space.size() - 1;
  if (matmul && !space.empty()) assign(last);
  for (size_t i = 0; i < space.size(); ++i) {
    if (!matmul || i != last) assign(i);
  }
  return map;
}

int64_t cores_used(const OpSpec& op) {
  int64_t cores = 1;
  for (const IterationDim& dim : op.iteration_space) cores *= dim.split;
  return cores;
}

}  // namespace spyre
