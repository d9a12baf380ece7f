#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "spyre/base/json_fwd.h"
#include "spyre/base/result.h"
#include "spyre/base/units.h"
#include "spyre/graph/graph.h"
#include "spyre/solve/problem.h"
#include "spyre/solve/solver.h"

namespace spyre {

/// Bytes of every core's LX that a plan may use, when the back end keeps a fraction of it for itself
/// (DXP_LX_FRAC_AVAIL). 64 KiB for programs and debugging are set aside before; the rest is rounded up to
/// whole sticks:
///
///     usable_lx(0) = 2031616     usable_lx(0.2) = 1625344     usable_lx(1) = 0
///
/// Refused: a fraction outside [0, 1].
Result<Bytes> usable_lx(double back_end_fraction);

/// Answers of a solver to questions it was asked before. Passes on their way to a plan ask the same ones
/// again: what the search for divisions ends with is what planning begins with.
class KnownAnswers {
 public:
  const solve::Solution* find(const solve::Problem& problem) const;
  void add(const solve::Problem& problem, const solve::Solution& solution);

 private:
  std::deque<std::pair<solve::Problem, solve::Solution>> answers_;  // the latest few
};

struct ScratchpadOptions {
  Bytes capacity = Bytes(1625344);   ///< usable_lx(0.2)
  std::string solver = "portfolio";  ///< LAYOUT_SOLVER
  bool in_place = true;              ///< results may take over the slot of an operand
  bool clone_inputs = true;          ///< inputs read several times may be copied into LX
  bool copy_out = true;              ///< results that are read again may be made in LX and copied out once
  bool relayouts = true;  ///< readers divided otherwise than the writer may be served over the ring
  bool evictions = true;  ///< buffers may leave LX while they rest, and be fetched again
  bool quick = false;     ///< asks for whole lives only: enough to tell which of two divisions is better
  /// LX keeps what a bundle leaves for a later one (cut_bundles.h). Otherwise whoever has the card in between
  /// may wipe it, and only device memory carries anything from one bundle to the next.
  bool across_bundles = true;
  std::function<void()> progress;       ///< called whenever the solver has answered
  std::shared_ptr<KnownAnswers> known;  ///< of this compilation; none: every question is asked anew
};

/// What was decided for every buffer, and why.
struct ScratchpadPlan {
  struct Entry {
    std::string buffer;
    int64_t first = 0, last = 0;   ///< nodes that touch it first and last, before clones were inserted
    Bytes per_core;                ///< what each core holds; of a barred buffer all of it
    std::optional<Bytes> address;  ///< the same on every core; none: device memory
    std::string reason;            ///< why it is not in LX; of one that is, why device memory needs it too
    std::string in_place_of;       ///< the buffer whose slot it took over
    bool clone = false;            ///< fetched from device memory: its copy is in LX
    bool copied_out = false;       ///< made in LX, and copied to device memory once
    std::string copy_of;           ///< another division of this buffer, made by a shuffle
    std::string part_of;           ///< a later stretch of this buffer's life, named x@2, x@3, ...
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
  int64_t work = 0;                ///< units that the solver spent, over all questions
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

/// Keeps buffers in LX, the scratchpad of the cores, instead of device memory.
///
///     m = max x;  d = x - m;  e = exp d;  s = sum e;  y = e / s          (M x N, one core)
///
///     in device memory     x x m . d . e . . s . y     8MN + 4N elements
///     m, d, e, s in LX     x x . . . . . . . . . y     3MN
///     and a clone of x     x . . . . . . . . . . y     2MN
///
/// Which buffers may live there is decided in scratchpad/residency.h; which do, and at which address, by a
/// solver (solve/). Two questions are asked (scratchpad/placement_question.h): first every buffer for its
/// whole life; where that leaves one outside for lack of room, also for stretches of it, so that the solver
/// may evict what rests and reload it later. The answer that saves more stays, the first when they save the
/// same. Placed buffers get `BufferPlace::kLx`. Copies (scratchpad/lx_copies.h) are inserted where a plan
/// needs them, and readers redirected to them: of inputs, of what device memory needs too, of what is fetched
/// again, of what cores need in another division.
///
/// Needs divided work. Changes no result, bit for bit.
Result<ScratchpadPlan> plan_scratchpad(Graph& graph, const ScratchpadOptions& options = {});

}  // namespace spyre
