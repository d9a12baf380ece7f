#include "spyre/solve/validate.h"

#include <fmt/format.h>

#include <algorithm>

namespace spyre::solve {
namespace {

Error wrong(std::string message) {
  return Error(ErrorKind::kInvalidArgument, "placement: " + std::move(message));
}

Status validate_one(const Problem& problem, const Buffer& b, std::optional<Bytes> offset) {
  if (!offset.has_value()) {
    if (b.fixed.has_value())
      return wrong(fmt::format("'{}' is fixed at {} but not placed", b.name, b.fixed->count()));
    return Status();
  }
  if (!b.ineligible.empty())
    return wrong(fmt::format("'{}' is placed but ineligible: {}", b.name, b.ineligible));
  if (b.fixed.has_value() && *b.fixed != *offset) {
    return wrong(
        fmt::format("'{}' is fixed at {} but placed at {}", b.name, b.fixed->count(), offset->count()));
  }
  if (*offset % b.align != Bytes(0)) {
    return wrong(fmt::format("'{}' at {} is not a multiple of {}", b.name, offset->count(), b.align.count()));
  }
  if (*offset < Bytes(0) || *offset + b.size > problem.capacity) {
    return wrong(fmt::format("'{}' at {} with {} bytes leaves the capacity of {}", b.name, offset->count(),
                             b.size.count(), problem.capacity.count()));
  }
  return Status();
}

bool declares(const Buffer& child, BufferIndex parent) {
  return std::count(child.in_place_parents.begin(), child.in_place_parents.end(), parent) > 0;
}

}  // namespace

Status validate(const Problem& problem, const Placement& placement) {
  const auto& buffers = problem.buffers;
  if (placement.offset.size() != buffers.size()) {
    return wrong(fmt::format("{} offsets for {} buffers", placement.offset.size(), buffers.size()));
  }
  for (size_t i = 0; i < buffers.size(); ++i) {
    SPYRE_TRY(validate_one(problem, buffers[i], placement.offset[i]));
  }
  for (size_t j = 0; j < buffers.size(); ++j) {
    if (!placement.offset[j].has_value()) continue;
    for (size_t i = 0; i < buffers.size() && buffers[j].group >= 0; ++i) {
      if (buffers[i].group == buffers[j].group && !placement.offset[i].has_value()) {
        return wrong(
            fmt::format("'{}' is placed without '{}' of its group", buffers[j].name, buffers[i].name));
      }
    }
    for (size_t i = 0; i < j; ++i) {
      if (!placement.offset[i].has_value()) continue;
      const Buffer &a = buffers[i], &b = buffers[j];
      const Bytes at_a = *placement.offset[i], at_b = *placement.offset[j];
      const bool share_step = a.live.begin < b.live.end && b.live.begin < a.live.end;
      const bool share_byte = at_a < at_b + b.size && at_b < at_a + a.size;
      const bool in_place = at_a == at_b && (declares(a, j) || declares(b, i));
      if (share_step && a.tensor >= 0 && a.tensor == b.tensor && (a.group < 0 || a.group != b.group)) {
        return wrong(fmt::format("'{}' and '{}' are placed, but alternatives", a.name, b.name));
      }
      if (share_step && share_byte && !in_place) {
        return wrong(fmt::format("'{}' at {} and '{}' at {} are live together and share bytes", a.name,
                                 at_a.count(), b.name, at_b.count()));
      }
    }
  }
  return Status();
}

}  // namespace spyre::solve
