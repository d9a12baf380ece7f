#include <algorithm>
#include <cmath>

#include "spyre/device/exec/kernels.h"

namespace spyre::exec {
namespace {

/// NaN ranks above every number, as a sort on the host has it.
bool ranks_before(float a, float b) {
  return std::isnan(a) ? !std::isnan(b) : a > b;
}

/// Dims of the three roles: `searched` is in the input only, `rank` in the result (or the list of indices)
/// only.
struct SearchRoles {
  std::vector<int> common;
  int searched = -1, rank = -1;
};

SearchRoles search_roles(const BoundOp& bound, const Tensor& values, const Tensor& ranked) {
  SearchRoles roles;
  for (int d = 0; d < bound.dims(); ++d) {
    const bool in_values = values.present(d), in_ranked = ranked.present(d);
    if (in_values && !in_ranked) {
      roles.searched = d;
    } else if (!in_values && in_ranked) {
      roles.rank = d;
    } else {
      roles.common.push_back(d);
    }
  }
  return roles;
}

/// Positions along the searched dim, best first; equal values keep their order.
std::vector<std::pair<float, int64_t>> ranked_values(const BoundOp& bound, Operand& x, int searched,
                                                     Coordinate g) {
  std::vector<std::pair<float, int64_t>> values;
  for (g[searched] = 0; g[searched] < bound.limit[searched]; ++g[searched]) {
    values.emplace_back(masked_value(bound, x, g), g[searched]);
  }
  std::stable_sort(values.begin(), values.end(),
                   [](const auto& a, const auto& b) { return ranks_before(a.first, b.first); });
  return values;
}

void run_topk_result(const Work& work) {
  const BoundOp& bound = work.bound;
  const SearchRoles roles = search_roles(bound, bound.input(0), bound.output());
  const bool wants_index = work.op().info->id == OpId::topkindex;
  for (int core = 0; core < static_cast<int>(work.op().cores.size()); ++core) {
    Operand x = work.input(0, core);
    Sink sink = work.output(core);
    Coordinate g{};
    for_each_point(bound.boxes[core], roles.common, g, work.fault, [&](const Coordinate& at) {
      const auto values = ranked_values(bound, x, roles.searched, at);
      Coordinate out = at;
      for (out[roles.rank] = bound.boxes[core].lower[roles.rank];
           out[roles.rank] < bound.boxes[core].upper[roles.rank]; ++out[roles.rank]) {
        if (out[roles.rank] < static_cast<int64_t>(values.size())) {
          const auto& [value, position] = values[out[roles.rank]];
          sink.value(out, wants_index ? static_cast<float>(position) : value);
        }
      }
    });
  }
}

/// Values at the listed positions stay, all others become zero.
void run_keep_by_index(const Work& work) {
  const BoundOp& bound = work.bound;
  const SearchRoles roles = search_roles(bound, bound.output(), bound.input(1));
  for (int core = 0; core < static_cast<int>(work.op().cores.size()); ++core) {
    Operand x = work.input(0, core), indices = work.input(1, core);
    Sink sink = work.output(core);
    Coordinate g{};
    for_each_point(bound.boxes[core], roles.common, g, work.fault, [&](const Coordinate& at) {
      Coordinate point = at;
      std::vector<bool> kept(bound.limit[roles.searched], false);
      for (point[roles.rank] = 0; point[roles.rank] < bound.limit[roles.rank]; ++point[roles.rank]) {
        const float index = indices.value(point);
        if (index >= 0 && index < static_cast<float>(kept.size())) {
          kept[static_cast<size_t>(index)] = true;
        }
      }
      const Box& box = bound.boxes[core];
      for (point[roles.searched] = box.lower[roles.searched];
           point[roles.searched] < box.upper[roles.searched]; ++point[roles.searched]) {
        sink.value(point, kept[point[roles.searched]] ? x.value(point) : 0.0f);
      }
    });
  }
}

}  // namespace

void run_topk(const Work& work) {
  if (work.op().info->id == OpId::keepbyindex) {
    run_keep_by_index(work);
  } else {
    run_topk_result(work);
  }
}

}  // namespace spyre::exec
