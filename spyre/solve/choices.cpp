#include "spyre/solve/choices.h"

#include <algorithm>
#include <map>

namespace spyre::solve {
namespace {

// For each group whether all its members are placed.
std::map<int, bool> whole_groups(const Problem& problem, const Placement& placement) {
  std::map<int, bool> whole;
  for (size_t i = 0; i < problem.buffers.size(); ++i) {
    if (problem.buffers[i].group < 0) continue;
    const auto found = whole.try_emplace(problem.buffers[i].group, true).first;
    found->second = found->second && placement.offset[i].has_value();
  }
  return whole;
}

}  // namespace

void Choices::add(int64_t begin, int64_t end, int tensor, int group) {
  const int item = count_++;
  if (tensor < 0 && group < 0) return;
  auto unit = std::find_if(units_.begin(), units_.end(),
                           [&](const Unit& u) { return group >= 0 && u.group == group; });
  if (unit == units_.end()) {
    units_.push_back({.items = {}, .group = group});
    unit = units_.end() - 1;
  }
  unit->items.push_back(item);
  if (tensor < 0) return;
  // A group has no gap in time (problem.h), so what it spans is what it meets.
  unit->begin = unit->tensor < 0 ? begin : std::min(unit->begin, begin);
  unit->end = unit->tensor < 0 ? end : std::max(unit->end, end);
  unit->tensor = tensor;
}

double Choices::excess(const std::vector<double>& value) const {
  struct Priced {
    int64_t begin, end;
    double value;
  };
  double excess = 0;
  std::map<int, std::vector<Priced>> tensors;
  for (const Unit& unit : units_) {
    double sum = 0;
    for (const int item : unit.items) {
      sum += value[item];
      excess += std::max(0.0, value[item]);
    }
    if (sum <= 0) continue;
    if (unit.tensor >= 0) {
      tensors[unit.tensor].push_back({unit.begin, unit.end, sum});
    } else {
      excess -= sum;
    }
  }
  for (auto& [tensor, units] : tensors) {
    std::stable_sort(units.begin(), units.end(),
                     [](const Priced& a, const Priced& b) { return a.end < b.end; });
    std::vector<double> best = {0};  // of the first units
    for (size_t k = 0; k < units.size(); ++k) {
      const auto before =
          std::upper_bound(units.begin(), units.begin() + static_cast<std::ptrdiff_t>(k), units[k].begin,
                           [](int64_t at, const Priced& u) { return at < u.end; });
      best.push_back(std::max(best[k], units[k].value + best[static_cast<size_t>(before - units.begin())]));
    }
    excess -= best.back();
  }
  return std::max(0.0, excess);
}

void drop_incomplete(const Problem& problem, Placement& placement) {
  const bool any = std::any_of(problem.buffers.begin(), problem.buffers.end(),
                               [](const Buffer& b) { return b.group >= 0; });
  if (!any) return;
  const std::map<int, bool> whole = whole_groups(problem, placement);
  for (size_t i = 0; i < problem.buffers.size(); ++i) {
    const int group = problem.buffers[i].group;
    if (group >= 0 && !whole.at(group)) placement.offset[i] = problem.buffers[i].fixed;
  }
}

std::vector<bool> placeable(const Problem& problem) {
  std::vector<bool> may(problem.buffers.size());
  std::map<int, bool> whole;
  for (size_t i = 0; i < may.size(); ++i) {
    const Buffer& b = problem.buffers[i];
    may[i] = b.ineligible.empty() && b.size <= problem.capacity;
    if (b.group < 0) continue;
    const auto found = whole.try_emplace(b.group, true).first;
    found->second = found->second && may[i];
  }
  for (size_t i = 0; i < may.size(); ++i) {
    if (const int group = problem.buffers[i].group; group >= 0) may[i] = whole.at(group);
  }
  return may;
}

Placement place_in_groups(const Problem& problem, const std::function<Placement(const Problem&)>& once) {
  Problem asked = problem;
  while (true) {  // ends: each round leaves one group less
    Placement placement = once(asked);
    bool incomplete = false;
    const std::map<int, bool> whole = whole_groups(asked, placement);
    for (size_t i = 0; i < asked.buffers.size(); ++i) {
      Buffer& b = asked.buffers[i];
      if (b.group < 0 || whole.at(b.group) || !placement.offset[i].has_value()) continue;
      incomplete = true;
      for (Buffer& member : asked.buffers) {
        if (member.group == b.group) member.ineligible = "no room for the whole group";
      }
    }
    if (!incomplete) return placement;
  }
}

}  // namespace spyre::solve
