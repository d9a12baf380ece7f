#include "spyre/passes/divide/co_optimize/division_search.h"

#include <algorithm>

namespace spyre {
namespace {

// Nodes that one change may take along. What lies further away has changes of its own.
constexpr size_t kMostCarried = 16;

std::vector<const std::vector<lx::Division>*> divisions_of(const std::deque<DivisionMenu>& menus) {
  std::vector<const std::vector<lx::Division>*> divisions;
  for (const DivisionMenu& menu : menus) divisions.push_back(&menu.entries());
  return divisions;
}

}  // namespace

DivisionSearch::DivisionSearch(const lx::Analysis& analysis, lx::Objective sum,
                               const CoOptimizeOptions& options)
    : analysis_(analysis),
      graph_(analysis.graph()),
      access_(analysis.access()),
      options_(options),
      menus_(choose_menus()),
      plan_(analysis, divisions_of(menus_), sum),
      picked_(graph_.nodes.size(), -1) {}

// Menus with every order of the cores are for graphs that are searched whole.
std::deque<DivisionMenu> DivisionSearch::choose_menus() {
  std::deque<DivisionMenu> whole = build_menus(true);
  exact_ = few_plans(whole);
  if (exact_) return whole;
  std::deque<DivisionMenu> usual = build_menus(false);
  exact_ = few_plans(usual);  // without the orders there may be few after all
  return usual;
}

std::deque<DivisionMenu> DivisionSearch::build_menus(bool every_order) const {
  std::deque<DivisionMenu> menus;
  for (size_t n = 0; n < graph_.nodes.size(); ++n) {
    menus.emplace_back(
        analysis_, n,
        DivisionMenu::Rules{
            .cores = options_.cores, .keep_sums = options_.keep_sums, .every_order = every_order});
    if (every_order && !few_plans(menus)) return menus;
  }
  return menus;
}

// The product may be astronomical: it is not followed further than the answer needs.
bool DivisionSearch::few_plans(const std::deque<DivisionMenu>& menus) const {
  int64_t plans = 1;
  for (const DivisionMenu& menu : menus) {
    if (plans > options_.search_whole) return false;
    plans *= static_cast<int64_t>(menu.listed());
  }
  return plans <= options_.search_whole;
}

void DivisionSearch::run(int64_t room) {
  plan_.start(room);
  least_ = plan_.cost();
  exact_ ? try_everything() : climb(options_.plans_per_node * std::ssize(graph_.nodes));
}

void DivisionSearch::look_at(const Changes& changes) {
  ++evaluated_;
  if (options_.progress) options_.progress();
  plan_.change(changes);
}

void DivisionSearch::try_everything() {
  Changes best, state;
  for (size_t n = 0; n < menus_.size(); ++n) state.emplace_back(n, 0);
  while (true) {
    look_at(state);
    if (plan_.cost() < least_) least_ = plan_.cost(), best = state;
    plan_.take_back();
    size_t n = 0;
    while (n < state.size() && ++state[n].second == static_cast<int>(menus_[n].listed()))
      state[n++].second = 0;
    if (n == state.size()) break;
  }
  plan_.change(best);
}

// Until no node has a change that gains anything. A node is asked again when something near it has changed.
void DivisionSearch::climb(int64_t left) {
  std::vector<char> asked(menus_.size(), 0);
  bool improved = true;
  while (improved && left > 0) {
    improved = false;
    for (const size_t node : heaviest_first()) {
      if (asked[node] || left <= 0) continue;
      asked[node] = 1;
      const Changes changes = best_change(node, left);
      if (changes.empty()) continue;
      plan_.change(changes);
      improved = true;
      for (const auto& [changed, taken] : changes) {
        for (const size_t near : neighbours(changed)) asked[near] = 0;
      }
    }
  }
  least_ = plan_.cost();
}

std::vector<size_t> DivisionSearch::heaviest_first() const {
  std::vector<int64_t> moved(menus_.size(), 0);
  std::vector<size_t> order(menus_.size());
  for (size_t n = 0; n < menus_.size(); ++n) {
    order[n] = n;
    for (const lx::TouchView& operand : plan_.division(n).operands) moved[n] += operand.moved.counted.count();
  }
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return moved[a] > moved[b]; });
  return order;
}

// The change of this node that gains most; empty: none gains.
DivisionSearch::Changes DivisionSearch::best_change(size_t node, int64_t& left) {
  Changes best, last;
  // Costs are sums of floating-point numbers: a gain in their last digits is none, and would be found again and again.
  double least = plan_.cost() * (1 - 1e-9);
  for (int e = 0; e < static_cast<int>(menus_[node].listed()); ++e) {
    for (const Reach reach : {Reach::kAlone, Reach::kVector, Reach::kAll}) {
      if (left <= 0) return best;
      Changes changes = carry(node, e, reach);
      if (changes.empty() || changes == last) continue;
      --left;
      look_at(changes);
      if (plan_.cost() < least) least = plan_.cost(), best = changes;
      plan_.take_back();
      last = std::move(changes);
    }
  }
  return best;
}

// A node takes another division. Its neighbours, and theirs, divide their work so that shared buffers have
// one view.
DivisionSearch::Changes DivisionSearch::carry(size_t from, int taken, Reach reach) {
  Changes changes = {{from, taken}};
  picked_[from] = taken;
  for (size_t done = 0; done < changes.size() && reach != Reach::kAlone; ++done) {
    const size_t node = changes[done].first;
    const NormalOp& op = access_.ops[node];
    for (size_t i = op.index_count(); i < op.access.operands.size(); ++i) {
      const BufferId id = lx::operand_buffer(op, i);
      const lx::CoreView* view = division(node).operands[i].view;
      const Buffer& buffer = graph_.buffers[static_cast<size_t>(id)];
      if (view == nullptr || buffer.is_input || buffer.fill) continue;
      for (const lx::BufferTouch& touch : access_.touches[static_cast<size_t>(id)]) {
        if (picked_[touch.node] >= 0 || changes.size() >= kMostCarried) continue;
        const bool matmul = access_.ops[touch.node].op.is_matmul();
        if (matmul && reach != Reach::kAll) continue;
        if (division(touch.node).operands[touch.operand].view == view) continue;
        const int adopted = menus_[touch.node].adopt(touch.operand, view);
        if (adopted < 0) continue;
        picked_[touch.node] = adopted;
        changes.emplace_back(touch.node, adopted);
      }
    }
  }
  for (const auto& [node, entry] : changes) picked_[node] = -1;
  std::erase_if(changes, [&](const lx::TrialPlan::Change& c) { return plan_.chosen(c.first) == c.second; });
  return changes;
}

const lx::Division& DivisionSearch::division(size_t node) const {
  return picked_[node] < 0 ? plan_.division(node)
                           : menus_[node].entries()[static_cast<size_t>(picked_[node])];
}

// The nodes that share a buffer with this one, and itself.
std::vector<size_t> DivisionSearch::neighbours(size_t node) const {
  std::vector<size_t> found;
  const NormalOp& op = access_.ops[node];
  for (size_t i = 0; i < op.access.operands.size(); ++i) {
    const auto buffer = static_cast<size_t>(lx::operand_buffer(op, i));
    if (graph_.buffers[buffer].fill) continue;
    for (const lx::BufferTouch& touch : access_.touches[buffer]) found.push_back(touch.node);
  }
  return found;
}

}  // namespace spyre
