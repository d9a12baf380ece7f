#include "spyre/solve/sections.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>

namespace spyre::solve {
namespace {

Island make_island(const Problem& problem, const std::vector<BufferIndex>& members) {
  int64_t unit = 0;
  for (const BufferIndex id : members) unit = std::gcd(unit, problem.buffers[id].align.count());
  Island island{.capacity = problem.capacity.count()};
  std::vector<Step> cuts;
  std::unordered_map<BufferIndex, int> item_of;
  for (const BufferIndex id : members) {
    cuts.push_back(problem.buffers[id].live.begin);
    cuts.push_back(problem.buffers[id].live.end);
    item_of.emplace(id, std::ssize(item_of));
  }
  std::sort(cuts.begin(), cuts.end());
  cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
  island.sections = std::ssize(cuts) - 1;
  const auto section = [&](Step at) -> int {
    return std::lower_bound(cuts.begin(), cuts.end(), at) - cuts.begin();
  };
  for (const BufferIndex id : members) {
    const Buffer& b = problem.buffers[id];
    Item item{.id = id,
              .begin = section(b.live.begin),
              .end = section(b.live.end),
              .life = b.live.length(),
              .size = b.size.count(),
              .align = b.align.count(),
              .value = b.saves.count(),
              .room = round_up(b.size.count(), unit),
              .fixed = b.fixed.value_or(Bytes(-1)).count(),
              .tensor = b.tensor,
              .group = b.group};
    const int64_t highest = (island.capacity - item.size) / unit * unit;
    island.height = std::max(island.height, highest + item.room);
    for (const BufferIndex parent : b.in_place_parents) {
      if (const auto found = item_of.find(parent); found != item_of.end())
        item.parents.push_back(found->second);
    }
    island.items.push_back(std::move(item));
  }
  for (int child = 0; child < std::ssize(island.items); ++child) {
    for (const int parent : island.items[child].parents) island.items[parent].children.push_back(child);
  }
  return island;
}

}  // namespace

Choices choices_of(const Island& island) {
  Choices choices;
  for (const Item& item : island.items) choices.add(item.begin, item.end, item.tensor, item.group);
  return choices;
}

std::vector<Island> cut_islands(const Problem& problem, const std::vector<BufferIndex>& chosen) {
  std::vector<BufferIndex> by_begin;
  for (const BufferIndex id : chosen) {
    if (problem.buffers[id].size <= problem.capacity) by_begin.push_back(id);
  }
  std::stable_sort(by_begin.begin(), by_begin.end(), [&](BufferIndex a, BufferIndex b) {
    return problem.buffers[a].live.begin < problem.buffers[b].live.begin;
  });
  std::vector<Island> islands;
  std::vector<BufferIndex> members;
  Step sea;  // everything so far has ended here
  for (const BufferIndex id : by_begin) {
    if (!members.empty() && problem.buffers[id].live.begin >= sea) {
      islands.push_back(make_island(problem, members));
      members.clear();
    }
    members.push_back(id);
    sea = std::max(sea, problem.buffers[id].live.end);
  }
  if (!members.empty()) islands.push_back(make_island(problem, members));
  return islands;
}

}  // namespace spyre::solve
