#include "spyre/solve/stacking.h"

#include <algorithm>

#include "spyre/solve/choices.h"

namespace spyre::solve {

Stacking::Stacking(const Problem& problem) : problem_(problem) {
  const int n = std::ssize(problem.buffers);
  neighbours_.resize(n);
  fixed_.resize(n);
  partners_.resize(n);
  for (BufferIndex i = 0; i < n; ++i) {
    if (problem.buffers[i].ineligible.empty() && !problem.buffers[i].fixed.has_value()) movable_.push_back(i);
    for (const BufferIndex parent : problem.buffers[i].in_place_parents) {
      partners_[i].push_back(parent);
      partners_[parent].push_back(i);
    }
  }
  for (const BufferIndex i : movable_) {
    for (BufferIndex j = 0; j < n; ++j) {
      const Buffer& other = problem.buffers[j];
      if (i == j || !other.ineligible.empty() || !other.live.meets(problem.buffers[i].live)) continue;
      (other.fixed.has_value() ? fixed_ : neighbours_)[i].push_back(j);
    }
    std::sort(fixed_[i].begin(), fixed_[i].end(), [&](BufferIndex a, BufferIndex b) {
      return *problem.buffers[a].fixed < *problem.buffers[b].fixed;
    });
    work_ += std::ssize(neighbours_[i]) + 1;
  }
  placement_.offset.resize(n);
}

/// Raises the offset above every fixed buffer in the way. False if that leaves the capacity.
bool Stacking::clear_of_fixed(BufferIndex id, Bytes& offset) const {
  const Buffer& b = problem_.buffers[id];
  offset = round_up(offset, b.align);
  for (const BufferIndex f : fixed_[id]) {
    const Buffer& other = problem_.buffers[f];
    if (*other.fixed < offset + b.size && offset < *other.fixed + other.size) {
      offset = round_up(*other.fixed + other.size, b.align);
    }
  }
  return offset + b.size <= problem_.capacity;
}

std::optional<Bytes> Stacking::partner_base(BufferIndex id) const {
  const Buffer& b = problem_.buffers[id];
  for (const BufferIndex partner : partners_[id]) {
    if (!placement_.offset[partner].has_value() || problem_.buffers[partner].fixed.has_value()) continue;
    const Bytes base = *placement_.offset[partner];
    const bool lowest = std::all_of(neighbours_[id].begin(), neighbours_[id].end(), [&](BufferIndex j) {
      const auto& offset = placement_.offset[j];
      return j == partner || !offset.has_value() || *offset + problem_.buffers[j].size <= base;
    });
    Bytes raised = base;
    if (lowest && base % b.align == Bytes(0) && clear_of_fixed(id, raised) && raised == base) return base;
  }
  return std::nullopt;
}

std::optional<Bytes> Stacking::find_offset(BufferIndex id) const {
  const auto alternative_placed = [&](BufferIndex j) {
    return placement_.offset[j].has_value() && are_alternatives(problem_.buffers[id], problem_.buffers[j]);
  };
  if (std::any_of(neighbours_[id].begin(), neighbours_[id].end(), alternative_placed)) return std::nullopt;
  if (std::any_of(fixed_[id].begin(), fixed_[id].end(), alternative_placed)) return std::nullopt;
  if (const auto base = partner_base(id)) return base;
  Bytes offset;
  for (const BufferIndex j : neighbours_[id]) {
    if (placement_.offset[j].has_value())
      offset = std::max(offset, *placement_.offset[j] + problem_.buffers[j].size);
  }
  return clear_of_fixed(id, offset) ? std::optional(offset) : std::nullopt;
}

Bytes Stacking::stack(const std::vector<BufferIndex>& order) {
  for (size_t i = 0; i < problem_.buffers.size(); ++i) placement_.offset[i] = problem_.buffers[i].fixed;
  for (const BufferIndex id : order) placement_.offset[id] = find_offset(id);
  drop_incomplete(problem_, placement_);
  return bytes_saved(problem_, placement_);
}

}  // namespace spyre::solve
