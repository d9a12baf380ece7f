#pragma once

#include <optional>
#include <string>
#include <vector>

#include "spyre/base/json_fwd.h"
#include "spyre/base/units.h"
#include "spyre/solve/problem.h"

namespace spyre::lx {

/// What was decided for every buffer, and why.
struct Plan {
  struct Entry {
    std::string buffer;
    int64_t first = 0, last = 0;   ///< nodes that touch it first and last, before clones were inserted
    Bytes per_core;                ///< what each core holds; of an ineligible buffer all of it
    std::optional<Bytes> address;  ///< the same on every core; none: device memory
    std::string reason;            ///< why it is not in LX; of one that is, why device memory needs it too
    std::string in_place_of;       ///< the buffer whose slot it took over
    bool clone = false;            ///< fetched from device memory: its copy is in LX
    bool copied_out = false;       ///< made in LX, and copied to device memory once
    std::string copy_of;           ///< another division of this buffer, made by a shuffle
    std::string part_of;           ///< a later segment of this buffer's live range, named x@2, x@3, ...
    std::optional<int64_t> evicted_after;    ///< node after which it leaves LX, though others read it
    std::optional<int64_t> reloaded_before;  ///< node before which it is fetched again
    Bytes saves;                             ///< device memory traffic that residency avoids, or would avoid
    Bytes pays;                              ///< traffic of the copies in and out, already taken off `saves`
    solve::Lifetime live;                    ///< in steps: node n runs at 2n + 1, copies made for it at 2n
    std::vector<int64_t> made_by, read_by;   ///< nodes; a copy in another division has only its own readers
  };
  Bytes capacity;
  std::string solver;
  bool optimal = false;            ///< proven: no other placement saves more
  int64_t work = 0;                ///< units that the solver spent, over all problems
  std::vector<Entry> entries;      ///< in the order of first touches
  std::vector<std::string> nodes;  ///< names, before clones were inserted
  solve::Problem asked;            ///< the placement problem, with every alternative that was offered

  /// Device memory traffic that the plan avoids, and that it could avoid with an endless LX.
  Bytes saved() const;
  Bytes at_stake() const;
  /// No placement saves more than this: what was found, where that is proven best; else a relaxation of the
  /// whole problem (solve/bounds.h).
  Bytes most_saved() const;
  /// First byte that no buffer uses.
  Bytes peak() const;

  Json to_json() const;
};

}  // namespace spyre::lx
