#include "spyre/solve/select.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "spyre/base/error.h"

namespace spyre::solve {
namespace {

constexpr int64_t kFirstPackNodes = 2'000;  // for one set that would be the new best, in the first round
constexpr int kMostUndecided = 32;          // sets of a round
constexpr int64_t kShrinkNodes = 2'000;     // for one step of shrinking a core
constexpr int64_t kWholeStates = 1 << 19;   // tables of the whole relaxation, all sections together
constexpr double kWhole = 1e-9;

/// Whether a packing with `b` but without `a` is never better than the one with `a` in b's place.
bool dominates(const Item& a, const Item& b, bool first_of_twins) {
  const bool free = a.fixed < 0 && b.fixed < 0 && b.parents.empty() && b.children.empty();
  // What takes a place in another's stead must be free to come, and the other free to go.
  if (b.group >= 0 || a.group >= 0 || (a.tensor >= 0 && a.tensor != b.tensor)) return false;
  const bool inside = a.begin >= b.begin && a.end <= b.end && a.size <= b.size && b.align % a.align == 0;
  if (!free || !inside || a.value < b.value) return false;
  const bool twins = a.begin == b.begin && a.end == b.end && a.size == b.size && a.align == b.align &&
                     a.value == b.value && a.parents.empty() && a.children.empty();
  return !twins || first_of_twins;
}

}  // namespace

Selection::Selection(const Island& island, SelectTricks tricks)
    : island_(island),
      tricks_(tricks),
      packer_(island, tricks.pack),
      fluid_(island.sections, island.height),
      choices_(choices_of(island)),
      whole_(island) {
  const int n = std::ssize(island.items);
  fate_.assign(n, Fate::kOpen);
  best_offsets_.assign(n, -1);
  load_.assign(island.sections, 0);
  int64_t unit = 0;
  for (const Item& item : island.items) unit = std::gcd(unit, item.value);
  value_unit_ = std::max<int64_t>(1, unit);
  implied_.resize(n);
  implying_.resize(n);
  group_of_.resize(n);
  for (int a = 0; a < n && !choices_.empty(); ++a) {
    for (int b = 0; b < n; ++b) {
      const Item &one = island.items[a], &other = island.items[b];
      if (a < b && are_alternatives(one, other)) cores_.push_back({{a, b}, true});
      if (a != b && one.group >= 0 && one.group == other.group) group_of_[a].push_back(b);
    }
  }
  for (int a = 0; a < n && tricks.dominance; ++a) {
    for (int b = 0; b < n; ++b) {
      if (a == b || !dominates(island.items[a], island.items[b], a < b)) continue;
      implied_[b].push_back(a);
      implying_[a].push_back(b);
    }
  }
  bool feasible = true;
  for (int i = 0; i < n; ++i) {
    if (island.items[i].fixed >= 0) feasible = feasible && decide(i, Fate::kIn);
  }
  SPYRE_CHECK(feasible, "fixed items do not collide");
  pack_nodes_ = kFirstPackNodes;
}

void Selection::seed(std::vector<int64_t> offsets) {
  int64_t value = 0;
  for (size_t i = 0; i < offsets.size(); ++i) value += offsets[i] >= 0 ? island_.items[i].value : 0;
  if (value <= best_value_) return;
  best_value_ = value;
  best_offsets_ = std::move(offsets);
}

int64_t Selection::all_values() const {
  return std::accumulate(island_.items.begin(), island_.items.end(), int64_t{0},
                         [](int64_t sum, const Item& item) { return sum + item.value; });
}

/// Loads alone would allow it, and most often it works: worth more patience than any smaller set.
void Selection::pack_everything(Deadline& deadline) {
  std::vector<int> all(island_.items.size());
  std::iota(all.begin(), all.end(), 0);
  Deadline slice(deadline.left() / 4 * 3);
  const int64_t given = slice.left();
  pack_nodes_ = std::numeric_limits<int64_t>::max() / 2;
  try_set(all, slice);
  pack_nodes_ = kFirstPackNodes;
  deadline.spend(given - slice.left());
}

void Selection::run(Deadline& deadline) {
  relax(deadline);
  root_bound_ = bound();
  if (root_bound_ == all_values() && cores_.empty()) pack_everything(deadline);
  // A set that is hard to decide is put off: other sets may be better, and a better best makes it needless.
  while (!proven_ && best_value_ < root_bound_) {
    undecided_ = 0;
    std::erase_if(cores_, [](const Core& core) { return !core.proven; });
    explore(deadline);
    if (deadline.passed()) break;
    proven_ = undecided_ == 0;
    pack_nodes_ *= 8;
  }
  if (best_value_ >= root_bound_) proven_ = true;
}

bool Selection::may_take_over(int child) const {
  const auto& parents = island_.items[child].parents;
  return std::any_of(parents.begin(), parents.end(), [&](int p) { return fate_[p] != Fate::kOut; });
}

bool Selection::decide(int item, Fate fate) {
  if (fate_[item] == fate) return true;
  if (fate_[item] != Fate::kOpen) return false;
  fate_[item] = fate;
  decided_.push_back(item);
  for (const int other : fate == Fate::kIn ? implied_[item] : implying_[item]) {
    if (!decide(other, fate)) return false;
  }
  return std::all_of(group_of_[item].begin(), group_of_[item].end(),
                     [&](int other) { return decide(other, fate); });
}

void Selection::undo_to(size_t mark) {
  for (; decided_.size() > mark; decided_.pop_back()) fate_[decided_.back()] = Fate::kOpen;
}

bool Selection::propagate_loads() {
  std::fill(load_.begin(), load_.end(), 0);
  for (int i = 0; i < std::ssize(island_.items); ++i) {
    if (fate_[i] != Fate::kIn) continue;
    const Item& item = island_.items[i];
    for (int t = item.begin + (may_take_over(i) ? 1 : 0); t < item.end; ++t) load_[t] += item.room;
  }
  if (std::any_of(load_.begin(), load_.end(), [&](int64_t load) { return load > island_.height; }))
    return false;
  for (int i = 0; i < std::ssize(island_.items); ++i) {
    if (fate_[i] != Fate::kOpen) continue;
    const Item& item = island_.items[i];
    const int first = item.begin + (may_take_over(i) ? 1 : 0);
    const bool fits = std::all_of(load_.begin() + first, load_.begin() + item.end,
                                  [&](int64_t load) { return load + item.room <= island_.height; });
    if (!fits && !decide(i, Fate::kOut)) return false;
  }
  return true;
}

/// A core with one undecided item left spills it; one that is wholly kept is a contradiction.
bool Selection::propagate_cores() {
  for (const Core& core : cores_) {
    int open = -1, open_count = 0;
    bool harmless = false;
    for (const int i : core.items) {
      harmless = harmless || fate_[i] == Fate::kOut;
      if (fate_[i] == Fate::kOpen) open = i, ++open_count;
    }
    if (harmless || open_count > 1) continue;
    if (open_count == 0 || !decide(open, Fate::kOut)) return false;
  }
  return true;
}

bool Selection::propagate() {
  for (size_t before = decided_.size() + 1; before != decided_.size();) {
    before = decided_.size();
    if (!propagate_loads() || !propagate_cores()) return false;
  }
  return true;
}

void Selection::relax(Deadline& deadline) {
  std::vector<FluidRelaxation::Item> items;
  for (int i = 0; i < std::ssize(island_.items); ++i) {
    const Item& item = island_.items[i];
    items.push_back({item.begin + (may_take_over(i) ? 1 : 0), item.end, item.room, item.value, fate_[i]});
  }
  fluid_.solve(items);
  deadline.spend(fluid_.work() + 4 * std::ssize(items));
}

/// The relaxation's bound, less what alternatives and groups take off it, and known cores: of each core one
/// item must go.
int64_t Selection::bound() const {
  double bound = fluid_.bound();
  std::vector<bool> counted(island_.items.size(), false);
  if (!choices_.empty()) {
    std::vector<double> open(island_.items.size(), 0);
    for (size_t i = 0; i < open.size(); ++i) {
      counted[i] = island_.items[i].tensor >= 0 || island_.items[i].group >= 0;
      if (fate_[i] == Fate::kOpen) open[i] = fluid_.surplus(i);
    }
    bound -= choices_.excess(open);
  }
  for (const Core& core : cores_) {
    double least = 1e300;
    for (const int i : core.items) {
      if (fate_[i] == Fate::kOut || counted[i]) least = 0;
      if (fate_[i] == Fate::kOpen) least = std::min(least, std::max(0.0, fluid_.surplus(i)));
    }
    if (least <= 0 || least == 1e300) continue;
    bound -= least;
    for (const int i : core.items) counted[i] = true;
  }
  return whole_values(bound);
}

/// The greatest sum of values that a bound allows; the margin covers rounding in the prices.
int64_t Selection::whole_values(double bound) const {
  return int64_t(std::floor(bound * (1 + 1e-12) + 1e-6)) / value_unit_ * value_unit_;
}

bool Selection::fix_by_surplus() {
  const double slack = fluid_.bound() * (1 + 1e-12) + 1e-6 - double(best_value_ + value_unit_);
  for (int i = 0; i < std::ssize(island_.items); ++i) {
    if (fate_[i] != Fate::kOpen || std::abs(fluid_.surplus(i)) <= slack) continue;
    if (!decide(i, fluid_.surplus(i) > 0 ? Fate::kIn : Fate::kOut)) return false;
  }
  return true;
}

/// The item the relaxation cuts most painfully, or -1 if it keeps or spills every item whole.
int Selection::fractional_item() const {
  int best = -1;
  double best_pain = 0;
  for (int i = 0; i < std::ssize(island_.items); ++i) {
    const double part = std::min(fluid_.kept(i), 1 - fluid_.kept(i));
    if (fate_[i] != Fate::kOpen || part < kWhole) continue;
    if (const double pain = part * double(island_.items[i].value); best < 0 || pain > best_pain) {
      best = i;
      best_pain = pain;
    }
  }
  return best;
}

/// An open item that the relaxation keeps together with an alternative of it, or -1.
int Selection::rival_item() const {
  for (const Core& core : cores_) {
    if (core.items.size() != 2 ||
        !are_alternatives(island_.items[core.items[0]], island_.items[core.items[1]]))
      continue;
    const bool both = std::all_of(core.items.begin(), core.items.end(),
                                  [&](int i) { return fate_[i] == Fate::kOpen && fluid_.kept(i) > 0.5; });
    if (both) return core.items[fluid_.surplus(core.items[0]) >= fluid_.surplus(core.items[1]) ? 0 : 1];
  }
  return -1;
}

const Selection::Core* Selection::violated_core(const std::vector<bool>& kept) const {
  for (const Core& core : cores_) {
    if (std::all_of(core.items.begin(), core.items.end(), [&](int i) { return kept[i]; })) return &core;
  }
  return nullptr;
}

/// An open member of a group of which only a part is kept, or -1.
int Selection::half_kept_group(const std::vector<bool>& kept) const {
  for (int i = 0; i < std::ssize(island_.items); ++i) {
    for (const int other : group_of_[i]) {
      if (kept[i] && !kept[other]) return i;
    }
  }
  return -1;
}

int Selection::undecided_of(const Core& core) const {
  int best = -1;
  for (const int i : core.items) {
    if (fate_[i] == Fate::kOpen && (best < 0 || fluid_.surplus(i) < fluid_.surplus(best))) best = i;
  }
  return best;
}

std::vector<int> Selection::shrink(const std::vector<int>& set, Deadline& deadline) {
  if (!tricks_.learn) return set;
  // Cheap items first: a core of dear ones takes more off the bound.
  std::vector<int> order = set;
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return fluid_.surplus(a) < fluid_.surplus(b); });
  std::vector<int> core = set;
  for (const int item : order) {
    std::vector<int> without = core;
    std::erase(without, item);
    if (packer_.pack(without, kShrinkNodes, deadline) == PackVerdict::kImpossible) core = std::move(without);
  }
  return core;
}

void Selection::try_set(const std::vector<int>& set, Deadline& deadline) {
  const PackVerdict verdict = packer_.pack(set, pack_nodes_, deadline);
  if (verdict == PackVerdict::kPacked) {
    std::vector<int64_t> offsets(island_.items.size(), -1);
    for (const int i : set) offsets[i] = packer_.offset(i);
    seed(std::move(offsets));
    return;
  }
  const bool impossible = verdict == PackVerdict::kImpossible;
  undecided_ += impossible ? 0 : 1;
  cores_.push_back({impossible ? shrink(set, deadline) : set, impossible});
}

void Selection::branch(int item, Fate first, Deadline& deadline) {
  const size_t mark = decided_.size();
  for (const Fate fate : {first, first == Fate::kIn ? Fate::kOut : Fate::kIn}) {
    if (decide(item, fate)) explore(deadline);
    undo_to(mark);
  }
}

bool Selection::relax_whole(Deadline& deadline) {
  if (!tricks_.whole || !whole_.solve(fate_, kWholeStates)) return false;
  deadline.spend(whole_.work());
  return true;
}

void Selection::explore(Deadline& deadline) {
  const size_t mark = decided_.size();
  while (!deadline.passed() && undecided_ < kMostUndecided && propagate()) {
    relax(deadline);
    if (bound() <= best_value_) break;
    if (tricks_.surplus) {
      const size_t before = decided_.size();
      if (!fix_by_surplus()) break;
      if (decided_.size() > before) continue;
    }
    int cut = fractional_item();
    if (cut < 0) cut = rival_item();
    if (cut >= 0 && !relax_whole(deadline)) {
      branch(cut, fluid_.kept(cut) >= 0.5 ? Fate::kIn : Fate::kOut, deadline);
      break;
    }
    if (cut >= 0 && whole_.bound() <= best_value_) break;
    std::vector<bool> kept(island_.items.size());
    for (int i = 0; i < std::ssize(island_.items); ++i) {
      const bool fluid_kept = fate_[i] == Fate::kIn || (fate_[i] == Fate::kOpen && fluid_.kept(i) > 0.5);
      kept[i] = cut >= 0 ? whole_.kept(i) : fluid_kept;
    }
    if (const Core* core = violated_core(kept)) {
      branch(undecided_of(*core), Fate::kOut, deadline);
      break;
    }
    if (const int half = half_kept_group(kept); half >= 0) {
      branch(half, Fate::kIn, deadline);
      break;
    }
    std::vector<int> set;
    for (int i = 0; i < std::ssize(island_.items); ++i) {
      if (kept[i]) set.push_back(i);
    }
    try_set(set, deadline);
  }
  undo_to(mark);
}

}  // namespace spyre::solve
