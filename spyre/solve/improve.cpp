#include "spyre/solve/improve.h"

#include <algorithm>
#include <map>
#include <set>

#include "spyre/solve/choices.h"

namespace spyre::solve {
namespace {

/// How large windows are, and how long one is searched.
struct WindowSize {
  int64_t free_buffers;
  int64_t work;
};

constexpr WindowSize kSmallest = {28, 400'000};  // often searched to the end

/// The buffers of a window, as a problem of their own.
struct Window {
  Problem problem;
  std::vector<BufferIndex> ids;  ///< in the whole problem
};

class WindowSearch {
 public:
  WindowSearch(const Problem& problem, Placement& placement, const SelectTricks& tricks, Deadline& deadline)
      : problem_(problem), placement_(placement), tricks_(tricks), deadline_(deadline) {
    const std::vector<bool> may = placeable(problem);
    for (BufferIndex i = 0; i < std::ssize(problem.buffers); ++i) {
      if (may[i]) by_begin_.push_back(i);
      if (problem.buffers[i].group >= 0) groups_[problem.buffers[i].group].push_back(i);
      longest_ = std::max(longest_, problem.buffers[i].live.length());
    }
    std::stable_sort(by_begin_.begin(), by_begin_.end(), [&](BufferIndex a, BufferIndex b) {
      return problem.buffers[a].live.begin < problem.buffers[b].live.begin;
    });
  }

  /// One round over all spilled buffers, dearest first. True if something was gained.
  bool round(WindowSize size) {
    std::vector<BufferIndex> spilled;
    for (const BufferIndex i : by_begin_) {
      if (placement_.offset[i].has_value() || problem_.buffers[i].saves == Bytes(0)) continue;
      if (!better_placed(problem_.buffers[i])) spilled.push_back(i);
    }
    std::stable_sort(spilled.begin(), spilled.end(), [&](BufferIndex a, BufferIndex b) {
      return problem_.buffers[a].saves > problem_.buffers[b].saves;
    });
    bool gained = false;
    for (const BufferIndex i : spilled) {
      if (deadline_.passed()) break;
      if (!placement_.offset[i].has_value() && search(open_window(problem_.buffers[i].live, size), size))
        gained = true;
    }
    return gained;
  }

 private:
  /// Calls visit(id) for each buffer that shares a step with the span.
  template <typename Visit>
  void each_meeting(const Lifetime& span, Visit visit) {
    const Step earliest = span.begin - Step(longest_);
    auto at = std::lower_bound(by_begin_.begin(), by_begin_.end(), earliest, [&](BufferIndex b, Step step) {
      return problem_.buffers[b].live.begin < step;
    });
    for (; at != by_begin_.end() && problem_.buffers[*at].live.begin < span.end; ++at) {
      deadline_.spend(1);
      if (problem_.buffers[*at].live.meets(span)) visit(*at);
    }
  }

  /// Whether an alternative is placed that saves as much.
  bool better_placed(const Buffer& b) {
    bool found = false;
    if (b.tensor < 0) return found;
    each_meeting(b.live, [&](BufferIndex other) {
      const Buffer& placed = problem_.buffers[other];
      found = found || (placement_.offset[other].has_value() && are_alternatives(b, placed) &&
                        placed.saves >= b.saves);
    });
    return found;
  }

  int64_t free_inside(const Lifetime& span) {
    int64_t count = 0;
    each_meeting(span, [&](BufferIndex b) {
      const Lifetime& live = problem_.buffers[b].live;
      count += live.begin >= span.begin && live.end <= span.end;
    });
    return count;
  }

  /// Grows the span evenly while few enough buffers live wholly inside.
  Window open_window(Lifetime span, WindowSize size) {
    for (Step more(1); more < Step(1 << 20); more += more) {
      const Lifetime wider = {span.begin - more, span.end + more};
      if (free_inside(wider) > size.free_buffers) break;
      span = wider;
    }
    // A group is free only as a whole.
    std::set<int> held;
    each_meeting(span, [&](BufferIndex b) {
      if (problem_.buffers[b].group < 0) return;
      for (const BufferIndex member : groups_[problem_.buffers[b].group]) {
        const Lifetime& live = problem_.buffers[member].live;
        if (live.begin < span.begin || live.end > span.end) held.insert(problem_.buffers[b].group);
      }
    });
    Window window{.problem = {.capacity = problem_.capacity}};
    std::vector<std::pair<BufferIndex, BufferIndex>> inside_of;  // id in the whole -> id in the window
    each_meeting(span, [&](BufferIndex b) {
      const Lifetime& live = problem_.buffers[b].live;
      const bool inside = live.begin >= span.begin && live.end <= span.end;
      const bool free = inside && !held.contains(problem_.buffers[b].group);
      if (!free && !placement_.offset[b].has_value()) return;
      Buffer part = problem_.buffers[b];
      part.live = {std::max(live.begin, span.begin), std::min(live.end, span.end)};
      if (!free) part.fixed = placement_.offset[b], part.group = -1;
      inside_of.push_back({b, BufferIndex(window.ids.size())});
      window.ids.push_back(b);
      window.problem.buffers.push_back(std::move(part));
    });
    std::sort(inside_of.begin(), inside_of.end());
    for (Buffer& b : window.problem.buffers) {
      std::vector<BufferIndex> parents;
      for (const BufferIndex parent : b.in_place_parents) {
        const auto found =
            std::lower_bound(inside_of.begin(), inside_of.end(), std::pair(parent, BufferIndex(0)));
        if (found != inside_of.end() && found->first == parent) parents.push_back(found->second);
      }
      b.in_place_parents = std::move(parents);
    }
    return window;
  }

  bool search(const Window& window, WindowSize size) {
    std::vector<BufferIndex> all(window.ids.size());
    for (BufferIndex i = 0; i < std::ssize(all); ++i) all[i] = i;
    bool gained = false;
    for (const Island& island : cut_islands(window.problem, all)) {
      Selection selection(island, tricks_);
      std::vector<int64_t> now;
      for (const Item& item : island.items) {
        now.push_back(placement_.offset[window.ids[item.id]].value_or(Bytes(-1)).count());
      }
      selection.seed(std::move(now));
      const int64_t before = selection.value();
      Deadline slice(std::min(size.work, deadline_.left()));
      const int64_t given = slice.left();
      selection.run(slice);
      deadline_.spend(given - slice.left() + std::ssize(island.items) * std::ssize(island.items));
      if (selection.value() <= before) continue;
      gained = true;
      for (size_t i = 0; i < island.items.size(); ++i) {
        const int64_t offset = selection.offsets()[i];
        placement_.offset[window.ids[island.items[i].id]] =
            offset >= 0 ? std::optional(Bytes(offset)) : std::nullopt;
      }
    }
    return gained;
  }

  const Problem& problem_;
  Placement& placement_;
  const SelectTricks& tricks_;
  Deadline& deadline_;
  std::vector<BufferIndex> by_begin_;
  std::map<int, std::vector<BufferIndex>> groups_;
  int64_t longest_ = 0;
};

}  // namespace

void improve_by_windows(const Problem& problem, Placement& placement, const SelectTricks& tricks,
                        Deadline& deadline) {
  WindowSearch search(problem, placement, tricks, deadline);
  const int64_t largest = std::max(kSmallest.free_buffers, std::ssize(problem.buffers) / 2);
  for (WindowSize size = kSmallest; size.free_buffers <= largest;
       size = {size.free_buffers * 2, size.work * 4}) {
    while (!deadline.passed() && search.round(size)) {
    }
  }
}

}  // namespace spyre::solve
