#include "spyre/solve/problem.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <unordered_set>

#include "spyre/solve/choices.h"

namespace spyre::solve {
namespace {

Error refused(std::string message) {
  return Error(ErrorKind::kInvalidArgument, "placement problem: " + std::move(message));
}

Status check_buffer(const Buffer& b) {
  if (b.name.empty() || b.name.find_first_of(" \t\r\n,") != std::string::npos) {
    return refused(fmt::format("buffer name '{}': expected a name without blanks or commas", b.name));
  }
  if (b.live.begin < Step(0) || b.live.length() <= 0) {
    return refused(fmt::format("'{}' lives from step {} to {}: expected 0 <= begin < end", b.name,
                               b.live.begin.count(), b.live.end.count()));
  }
  if (b.size <= Bytes(0) || b.align <= Bytes(0) || b.saves < Bytes(0)) {
    return refused(
        fmt::format("'{}' has size {}, align {}, saves {}: expected size and align above 0, saves not below",
                    b.name, b.size.count(), b.align.count(), b.saves.count()));
  }
  if (b.uses < 1 || b.uses > b.live.length()) {
    return refused(fmt::format("'{}' has {} uses in a life of {} steps: expected 1 to {}", b.name, b.uses,
                               b.live.length(), b.live.length()));
  }
  return Status();
}

Status check_in_place_pair(const Buffer& parent, const Buffer& child) {
  const std::string pair = fmt::format("'{}' in place of '{}'", child.name, parent.name);
  if (parent.live.end != child.live.begin + Step(1)) {
    return refused(fmt::format("{}: parent.end is {}, child.begin + 1 is {}; the two must be equal", pair,
                               parent.live.end.count(), child.live.begin.count() + 1));
  }
  if (child.size > parent.size) {
    return refused(fmt::format("{}: the child has {} bytes, the parent {}; a child may not be larger", pair,
                               child.size.count(), parent.size.count()));
  }
  if (read_count(parent.uses, parent.input) == 0) {
    return refused(pair + ": the in-place parent is a computed buffer that is never read");
  }
  if (parent.live.length() == 1 && !parent.in_place_parents.empty()) {
    return refused(pair + ": a parent that lives one step cannot itself take over a slot");
  }
  return Status();
}

Status check_parents(const Problem& problem, const Buffer& child) {
  std::vector<BufferIndex> seen;
  for (const BufferIndex id : child.in_place_parents) {
    if (id < 0 || id >= std::ssize(problem.buffers)) {
      return refused(fmt::format("'{}' names in-place parent {}: there are {} buffers", child.name, id,
                                 problem.buffers.size()));
    }
    if (std::find(seen.begin(), seen.end(), id) != seen.end()) {
      return refused(
          fmt::format("'{}' names in-place parent '{}' twice", child.name, problem.buffers[id].name));
    }
    seen.push_back(id);
    SPYRE_TRY(check_in_place_pair(problem.buffers[id], child));
  }
  return Status();
}

Status check_fixed(const Problem& problem, const Buffer& b) {
  if (!b.fixed.has_value()) return Status();
  if (!b.ineligible.empty())
    return refused(fmt::format("'{}' is both fixed and ineligible ({})", b.name, b.ineligible));
  if (*b.fixed < Bytes(0) || *b.fixed + b.size > problem.capacity || *b.fixed % b.align != Bytes(0)) {
    return refused(fmt::format("'{}' ({} bytes) is fixed at {}: expected a multiple of {} below {}", b.name,
                               b.size.count(), b.fixed->count(), b.align.count(), problem.capacity.count()));
  }
  return Status();
}

bool hands_over(const Problem& problem, BufferIndex parent, BufferIndex child) {
  const auto& parents = problem.buffers[child].in_place_parents;
  return std::find(parents.begin(), parents.end(), parent) != parents.end();
}

Status check_fixed_pairs(const Problem& problem) {
  std::vector<BufferIndex> fixed;
  for (BufferIndex i = 0; i < std::ssize(problem.buffers); ++i) {
    if (problem.buffers[i].fixed.has_value()) fixed.push_back(i);
  }
  for (size_t j = 0; j < fixed.size(); ++j) {
    for (size_t i = 0; i < j; ++i) {
      const Buffer &a = problem.buffers[fixed[i]], &b = problem.buffers[fixed[j]];
      if (are_alternatives(a, b)) {
        return refused(fmt::format("'{}' and '{}' are fixed, but alternatives", a.name, b.name));
      }
      if (!a.live.meets(b.live) || *a.fixed >= *b.fixed + b.size || *b.fixed >= *a.fixed + a.size) continue;
      if (*a.fixed == *b.fixed &&
          (hands_over(problem, fixed[i], fixed[j]) || hands_over(problem, fixed[j], fixed[i]))) {
        continue;
      }
      return refused(
          fmt::format("'{}' and '{}' are fixed on the same bytes at the same time", a.name, b.name));
    }
  }
  return Status();
}

// A group is one span of time: a source, and what is made of it while it is there.
Status check_groups(const Problem& problem) {
  std::map<int, std::vector<const Buffer*>> groups;
  for (const Buffer& b : problem.buffers) {
    if (b.group >= 0) groups[b.group].push_back(&b);
  }
  for (auto& [number, members] : groups) {
    std::stable_sort(members.begin(), members.end(),
                     [](const Buffer* a, const Buffer* b) { return a->live.begin < b->live.begin; });
    Step end = members.front()->live.end;
    for (const Buffer* b : members) {
      if (b != members.front() && b->live.begin >= end) {
        return refused(fmt::format("'{}' meets no other buffer of group {}: expected one span of time",
                                   b->name, number));
      }
      end = std::max(end, b->live.end);
    }
  }
  return Status();
}

}  // namespace

Result<Buffer> buffer_of_uses(std::string name, Bytes size, std::span<const int64_t> uses, bool input,
                              std::optional<Step> end_override) {
  if (uses.empty()) return refused(fmt::format("'{}' is used by no operation", name));
  for (size_t i = 1; i < uses.size(); ++i) {
    if (uses[i - 1] >= uses[i]) {
      return refused(
          fmt::format("'{}' is used by operation {} after {}: expected strictly increasing indices", name,
                      uses[i], uses[i - 1]));
    }
  }
  const Step end(uses.back() + 1);
  const int64_t count = std::ssize(uses);
  return Buffer{.name = std::move(name),
                .live = {Step(uses.front()), std::max(end, end_override.value_or(end))},
                .size = size,
                .uses = count,
                .input = input,
                .saves = size * (input ? count - 1 : count)};
}

bool are_alternatives(const Buffer& a, const Buffer& b) {
  const bool together = a.group >= 0 && a.group == b.group;
  return a.tensor >= 0 && a.tensor == b.tensor && !together && a.live.meets(b.live);
}

Status check_problem(const Problem& problem) {
  if (problem.capacity < Bytes(0)) {
    return refused(fmt::format("capacity {} is below 0", problem.capacity.count()));
  }
  std::unordered_set<std::string_view> names;
  for (const Buffer& b : problem.buffers) {
    SPYRE_TRY(check_buffer(b));
    if (!names.insert(b.name).second) return refused(fmt::format("two buffers are called '{}'", b.name));
  }
  for (const Buffer& b : problem.buffers) {
    SPYRE_TRY(check_parents(problem, b));
    SPYRE_TRY(check_fixed(problem, b));
  }
  SPYRE_TRY(check_groups(problem));
  return check_fixed_pairs(problem);
}

Bytes bytes_saved(const Problem& problem, const Placement& placement) {
  Bytes sum;
  for (size_t i = 0; i < problem.buffers.size(); ++i) {
    if (placement.offset[i].has_value()) sum += problem.buffers[i].saves;
  }
  return sum;
}

Bytes bytes_at_stake(const Problem& problem) {
  std::set<int> ineligible;
  for (const Buffer& b : problem.buffers) {
    if (!b.ineligible.empty() && b.group >= 0) ineligible.insert(b.group);
  }
  Choices choices;
  std::vector<double> value;
  double sum = 0;  // whole bytes below 2^53: exact
  for (const Buffer& b : problem.buffers) {
    const bool out = !b.ineligible.empty() || ineligible.contains(b.group);
    choices.add(b.live.begin.count(), b.live.end.count(), b.tensor, b.group);
    value.push_back(out ? 0 : static_cast<double>(b.saves.count()));
    sum += value.back();
  }
  return Bytes(std::llround(sum - choices.excess(value)));
}

std::string spill_reason(const Problem& problem, BufferIndex buffer) {
  const Buffer& b = problem.buffers[buffer];
  if (!b.ineligible.empty()) return b.ineligible;
  return b.size > problem.capacity ? "capacity" : "no room on scratchpad";
}

}  // namespace spyre::solve
