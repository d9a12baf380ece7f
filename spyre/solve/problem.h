#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "spyre/base/result.h"
#include "spyre/base/units.h"

namespace spyre::solve {

/// A point of the schedule: the index of an operation in the flat list.
using Step = Count<struct StepTag>;

/// Half-open: live from `begin` on, gone at `end`. A buffer last touched by operation 7 has end 8.
struct Lifetime {
  Step begin, end;

  constexpr int64_t length() const { return (end - begin).count(); }
  constexpr bool meets(const Lifetime& other) const { return begin < other.end && other.begin < end; }
  friend bool operator==(const Lifetime&, const Lifetime&) = default;
};

/// Index of a buffer in `Problem::buffers`.
using BufferIndex = int;

/// Addresses in LX are multiples of one stick unless a problem says otherwise.
inline constexpr Bytes kPlacementAlign{128};

/// One tensor (its share on one core) that would like to live in LX.
struct Buffer {
  std::string name;  ///< unique, without blanks
  Lifetime live;
  Bytes size;
  Bytes align = kPlacementAlign;
  int64_t uses = 1;    ///< operations that touch it; a read and a write by one operation count once
  bool input = false;  ///< its first use is a read: it exists before the program starts
  Bytes saves;         ///< off-chip traffic that residency avoids: what a solver maximises
  std::vector<BufferIndex> in_place_parents;  ///< whose slot it may take over, best first
  std::optional<Bytes> fixed;                 ///< it must lie exactly here
  std::string ineligible;                     ///< why it must stay off chip; empty if it may be placed
  /// Buffers of one tensor are parts of its life, or ways to hold it: at most one of them at any step. -1:
  /// the buffer is a tensor of its own.
  int tensor = -1;
  int group = -1;  ///< of an all-or-nothing group, placed together or not at all; -1: none

  friend bool operator==(const Buffer&, const Buffer&) = default;
};

/// Placement of buffers in one core's LX, as data: no graph, no layout, no machine.
///
///     offset                              a solver gives each buffer a base offset, or leaves it off chip.
///      ^   +----+                         Two buffers that are live at a common step must not share a byte.
///      |   | C  +---------+
///      | +-+----+    B    |               Exception, the in-place hand-over: when P's last reader writes C,
///      | |  A   |         |               C may take over P's slot, at exactly P's base. P and C then share
///      | +------+---------+               one step (P.end == C.begin + 1) and P's bytes still belong to
///      +-------------------> step         nobody else during it. A slot is handed over once; chains share
///                                         one base.
///
/// A tensor that is used, idle, and used again is offered whole and in parts, and the solver chooses:
///
///     tensor 0   |===============|   saves 9: it keeps its place in the idle gap
///                |====|              saves 2: given up after its first readers; the rest of the life is
///                           |====|   saves 3: another buffer, fetched again for the later ones
///
/// Two buffers of one tensor that meet are never both placed, unless they are of one group.
struct Problem {
  Bytes capacity;
  std::vector<Buffer> buffers;

  friend bool operator==(const Problem&, const Problem&) = default;
};

/// One entry per buffer of the problem; nullopt: the buffer stays in device memory.
struct Placement {
  std::vector<std::optional<Bytes>> offset;

  friend bool operator==(const Placement&, const Placement&) = default;
};

/// The buffer that operations `uses` (strictly increasing indices) touch. Residency saves every read and, for
/// a computed buffer, the write; an input must still be fetched once. `end_override` keeps it live longer, as
/// a read inside a counted loop does.
Result<Buffer> buffer_of_uses(std::string name, Bytes size, std::span<const int64_t> uses, bool input,
                              std::optional<Step> end_override = std::nullopt);

/// Reads among `uses` operations: all of them for an input, all but the first for a computed buffer.
constexpr int64_t read_count(int64_t uses, bool input) {
  return input || uses == 0 ? uses : uses - 1;
}

/// Whether two buffers are alternatives: of one tensor, not of one group, with a step in common.
bool are_alternatives(const Buffer& a, const Buffer& b);

/// Whether a problem keeps its contract: positive sizes, unique names, lifetimes that hold their uses, legal
/// in-place pairs (P.end == C.begin + 1, C not larger than P, a computed P is read before), fixed offsets
/// that fit, are aligned and do not collide, groups without a gap in time. Every solver takes only problems
/// that pass.
Status check_problem(const Problem& problem);

/// Sum of `saves` over the placed buffers, and over all that endless room would let be placed together.
Bytes bytes_saved(const Problem& problem, const Placement& placement);
Bytes bytes_at_stake(const Problem& problem);

/// Why an unplaced buffer is off chip: what makes it ineligible, "capacity" when it could never fit, "no room on scratchpad"
/// when a solver preferred others.
std::string spill_reason(const Problem& problem, BufferIndex buffer);

}  // namespace spyre::solve
