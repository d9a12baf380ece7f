#include "spyre/solve/pack_order.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <random>

namespace spyre::solve {

std::vector<int> rank_items(const Island& island, const std::vector<int>& chosen, int order,
                            const std::vector<int64_t>& blame) {
  std::vector<int64_t> crowd(island.sections, 0);
  for (const int i : chosen) {
    for (int t = island.items[i].begin; t < island.items[i].end; ++t) crowd[t] += island.items[i].room;
  }
  const auto most = [](const std::vector<int64_t>& of, const Item& item) {
    return double(*std::max_element(of.begin() + item.begin, of.begin() + item.end));
  };
  std::mt19937_64 random(order);
  const auto draw = [&] { return double(random() >> 11) * 0x1p-53; };
  const double crowd_share = 8 * draw(), width_share = draw(), area_share = draw();
  const double blame_share = order % 2 == 0 ? 4 * draw() : 0;
  std::vector<std::pair<std::array<double, 3>, int>> keyed;
  for (const int i : chosen) {
    const Item& item = island.items[i];
    const double load = most(crowd, item);
    const double width = order % 2 == 0 ? double(item.end - item.begin) : double(item.life);
    const double area = width * double(item.size);
    const std::array<std::array<double, 3>, kPlainOrders / 2> plain = {
        {{load, width, area}, {area, load, width}, {load, area, width}, {width, area, load}}};
    const double mixed = crowd_share * std::log2(load) + width_share * std::log2(width) +
                         area_share * std::log2(area) + blame_share * std::log2(1 + most(blame, item)) +
                         2 * draw();
    keyed.push_back({order < kPlainOrders ? plain[order / 2] : std::array<double, 3>{mixed, 0, 0}, i});
  }
  std::stable_sort(keyed.begin(), keyed.end(),
                   [](const auto& x, const auto& y) { return x.first > y.first; });
  std::vector<int> rank(island.items.size(), 0);
  for (int r = 0; r < std::ssize(keyed); ++r) rank[keyed[r].second] = r;
  return rank;
}

}  // namespace spyre::solve
