#pragma once

#include <cstdint>
#include <vector>

#include "spyre/solve/sections.h"

namespace spyre::solve {

/// Orders in which the packer prefers items at equal height; which one is good differs from problem to
/// problem.
inline constexpr int kPlainOrders = 8;

/// The rank of each item of the island (0 is preferred); items that are not chosen keep rank 0.
///
/// The first kPlainOrders sort by load (of the fullest section an item crosses), width (its life, in sections
/// or in steps) and area (width times size), in different orders of importance. All later ones are mixtures
/// drawn at random, every second of which also favours items in sections with much `blame`, by section: there
/// earlier tries failed.
std::vector<int> rank_items(const Island& island, const std::vector<int>& chosen, int order,
                            const std::vector<int64_t>& blame);

}  // namespace spyre::solve
