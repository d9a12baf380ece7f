#include <algorithm>

#include "spyre/device/timing/timeline.h"

namespace spyre::timing {
std::vector<Phase> core_states(const Timeline& timeline, int core) {
  std::vector<const Phase*> phases;
  std::vector<Nanos> edges = {Nanos{0}, timeline.kernel};
  for (const Phase& phase : timeline.phases) {
    if (phase.core != core || phase.begin >= phase.end) continue;
    phases.push_back(&phase);
    edges.insert(edges.end(), {phase.begin, phase.end});
  }
  std::sort(edges.begin(), edges.end());
  edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
  std::sort(phases.begin(), phases.end(), [](const Phase* a, const Phase* b) { return a->begin < b->begin; });

  std::vector<Phase> states;
  std::vector<const Phase*> active;
  size_t next = 0;
  for (size_t i = 0; i + 1 < edges.size(); ++i) {
    std::erase_if(active, [&](const Phase* phase) { return phase->end <= edges[i]; });
    for (; next < phases.size() && phases[next]->begin <= edges[i]; ++next) active.push_back(phases[next]);
    Phase state = {.core = core, .begin = edges[i], .end = edges[i + 1]};
    for (const Phase* phase : active) {
      if (phase->unit < state.unit) {
        state.unit = phase->unit;
        state.execute = phase->execute;
      }
    }
    if (!states.empty() && states.back().unit == state.unit && states.back().execute == state.execute) {
      states.back().end = state.end;
    } else {
      states.push_back(state);
    }
  }
  return states;
}

}  // namespace spyre::timing
