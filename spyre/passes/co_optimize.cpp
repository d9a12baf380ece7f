#include "spyre/passes/co_optimize.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>

#include "spyre/base/json.h"
#include "spyre/passes/co_optimize/trial_plan.h"

namespace spyre {
namespace {

// How far a node's new division is carried along the buffers it shares with others.
enum class Reach { kAlone, kVector, kAll };

// Nodes that one move may take along. What lies further away has moves of its own.
constexpr size_t kMostCarried = 16;

class PlanSearch {
 public:
  PlanSearch(const Graph& graph, const GraphAccess& access, const CoOptimizeOptions& options)
      : graph_(graph),
        access_(access),
        options_(options),
        budget_(options.plans_per_node * std::ssize(graph.nodes)),
        judge_(graph, access, rules_of(options.scratchpad)),
        plan_(graph, access, judge_, menus_, options.scratchpad.in_place),
        picked_(graph.nodes.size(), -1) {
    build_menus(true);
    if (combinations() > options.search_whole) build_menus(false);
  }

  /// Searches with this many bytes of LX to count on.
  void run(int64_t room) {
    plan_.start(room);
    least_ = plan_.time();
    exact() ? try_everything() : climb(budget_);
  }

  /// What the found plan should cost, if what fits by size also finds a place.
  Nanos expected() const { return {least_}; }
  /// How the found plan divides a node; none: as it is.
  const std::vector<Loop>* loops(size_t node) const {
    return plan_.chosen(node) == 0 ? nullptr : &plan_.entry(node).loops;
  }
  int64_t evaluated() const { return evaluated_; }
  bool exact() const { return combinations() <= options_.search_whole; }

 private:
  using Move = std::vector<TrialPlan::Change>;

  void build_menus(bool every_order) {
    menus_.clear();
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      menus_.emplace_back(
          graph_, access_, n, judge_,
          DivisionMenu::Rules{
              .cores = options_.cores, .keep_sums = options_.keep_sums, .every_order = every_order});
      // A menu with every order is for graphs that are searched whole.
      if (every_order && combinations_so_far() > options_.search_whole) return;
    }
  }

  // Plans there are; no more is said of large numbers than that they are too large.
  int64_t combinations() const {
    return menus_.size() < graph_.nodes.size() ? options_.search_whole + 1 : combinations_so_far();
  }
  int64_t combinations_so_far() const {
    int64_t product = 1;
    for (const DivisionMenu& menu : menus_) {
      if (product > options_.search_whole) return product;
      product *= static_cast<int64_t>(menu.listed());
    }
    return product;
  }

  void look_at(const Move& move) {
    ++evaluated_;
    if (options_.progress) options_.progress();
    plan_.change(move);
  }

  void try_everything() {
    Move best, state;
    for (size_t n = 0; n < menus_.size(); ++n) state.emplace_back(n, 0);
    while (true) {
      look_at(state);
      if (plan_.time() < least_) least_ = plan_.time(), best = state;
      plan_.take_back();
      size_t n = 0;
      while (n < state.size() && ++state[n].second == static_cast<int>(menus_[n].listed()))
        state[n++].second = 0;
      if (n == state.size()) break;
    }
    plan_.change(best);
  }

  // Until no node has a move that gains anything. A node is asked again when something near it has changed.
  void climb(int64_t left) {
    std::vector<char> asked(menus_.size(), 0);
    bool improved = true;
    while (improved && left > 0) {
      improved = false;
      for (const size_t node : heaviest_first()) {
        if (asked[node] || left <= 0) continue;
        asked[node] = 1;
        const Move move = best_move(node, left);
        if (move.empty()) continue;
        plan_.change(move);
        improved = true;
        for (const auto& [moved, entry] : move) {
          for (const size_t near : neighbours(moved)) asked[near] = 0;
        }
      }
    }
    least_ = plan_.time();
  }

  std::vector<size_t> heaviest_first() const {
    std::vector<int64_t> moved(menus_.size(), 0);
    std::vector<size_t> order(menus_.size());
    for (size_t n = 0; n < menus_.size(); ++n) {
      order[n] = n;
      for (const TouchView& operand : plan_.entry(n).operands) moved[n] += operand.moved.count();
    }
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return moved[a] > moved[b]; });
    return order;
  }

  // The move of this node that gains most; empty: none gains.
  Move best_move(size_t node, int64_t& left) {
    Move best, last;
    double least = plan_.time() * (1 - 1e-9);
    for (int e = 0; e < static_cast<int>(menus_[node].listed()); ++e) {
      for (const Reach reach : {Reach::kAlone, Reach::kVector, Reach::kAll}) {
        if (left <= 0) return best;
        Move move = carry(node, e, reach);
        if (move.empty() || move == last) continue;
        --left;
        look_at(move);
        if (plan_.time() < least) least = plan_.time(), best = move;
        plan_.take_back();
        last = std::move(move);
      }
    }
    return best;
  }

  // A node takes another division. Its neighbours, and theirs, divide their work so that shared buffers have
  // one view.
  Move carry(size_t from, int taken, Reach reach) {
    Move move = {{from, taken}};
    picked_[from] = taken;
    for (size_t done = 0; done < move.size() && reach != Reach::kAlone; ++done) {
      const size_t node = move[done].first;
      const NormalOp& op = access_.ops[node];
      for (size_t i = op.index_count(); i < op.access.operands.size(); ++i) {
        const BufferId id = operand_buffer(op, i);
        const CoreView* view = entry(node).operands[i].view;
        const Buffer& buffer = graph_.buffers[static_cast<size_t>(id)];
        if (view == nullptr || buffer.is_input || buffer.fill) continue;
        for (const BufferTouch& touch : access_.touches[static_cast<size_t>(id)]) {
          if (picked_[touch.node] >= 0 || move.size() >= kMostCarried) continue;
          const bool matmul = access_.ops[touch.node].op.is_matmul();
          if (matmul && reach != Reach::kAll) continue;
          if (entry(touch.node).operands[touch.operand].view == view) continue;
          const int adopted = menus_[touch.node].adopt(touch.operand, view);
          if (adopted < 0) continue;
          picked_[touch.node] = adopted;
          move.emplace_back(touch.node, adopted);
        }
      }
    }
    for (const auto& [node, entry] : move) picked_[node] = -1;
    std::erase_if(move, [&](const TrialPlan::Change& c) { return plan_.chosen(c.first) == c.second; });
    return move;
  }

  const MenuEntry& entry(size_t node) const {
    return picked_[node] < 0 ? plan_.entry(node) : menus_[node].entries()[static_cast<size_t>(picked_[node])];
  }

  // The nodes that share a buffer with this one, and itself.
  std::vector<size_t> neighbours(size_t node) const {
    std::vector<size_t> found;
    const NormalOp& op = access_.ops[node];
    for (size_t i = 0; i < op.access.operands.size(); ++i) {
      const auto buffer = static_cast<size_t>(operand_buffer(op, i));
      if (graph_.buffers[buffer].fill) continue;
      for (const BufferTouch& touch : access_.touches[buffer]) found.push_back(touch.node);
    }
    return found;
  }

  const Graph& graph_;
  const GraphAccess& access_;
  const CoOptimizeOptions& options_;
  const int64_t budget_;  // plans looked at in one run
  ResidencyJudge judge_;
  std::deque<DivisionMenu> menus_;
  TrialPlan plan_;
  std::vector<int> picked_;  // by node, while a move is put together: its entry; -1: as planned
  double least_ = 0;
  int64_t evaluated_ = 0;
};

void divide(Node& node, const std::vector<Loop>& loops) {
  for (const Loop& decided : loops) {
    for (Loop& loop : node.loops) {
      if (loop.name == decided.name) loop.split = decided.split, loop.step = decided.step;
    }
  }
}

// What a graph costs once its scratchpads are planned.
Result<PlanCost> planned_cost(Graph graph, ScratchpadOptions options) {
  options.quick = true;
  SPYRE_ASSIGN_OR_RETURN(const ScratchpadPlan plan, plan_scratchpad(graph, options));
  return cost_of(graph);
}

}  // namespace

std::string CoOptimizeReport::to_text() const {
  return fmt::format("separate  {}\njoint     {}\n{} plans looked at{}\n", separate.to_text(),
                     joint.to_text(), evaluated, exact ? ", all there are" : "");
}

Json CoOptimizeReport::to_json() const {
  const auto cost = [](const PlanCost& c) -> Json {
    return {
        {"us", c.total().us()},         {"hbm_read", c.read.count()},   {"hbm_written", c.written.count()},
        {"memory_us", c.memory().us()}, {"compute_us", c.compute.us()}, {"vector_us", c.vector.us()},
        {"ring_us", c.ring.us()}};
  };
  return {{"separate", cost(separate)}, {"joint", cost(joint)}, {"evaluated", evaluated}, {"exact", exact}};
}

Result<CoOptimizeReport> co_optimize(Graph& graph, const CoOptimizeOptions& options) {
  CoOptimizeReport report;
  SPYRE_ASSIGN_OR_RETURN(report.separate, planned_cost(graph, options.scratchpad));
  report.joint = report.separate;
  SPYRE_ASSIGN_OR_RETURN(const GraphAccess access, access_of(graph));
  // Sizes that fit together may still find no place together; with less room to count on they do.
  Graph best = graph;
  PlanSearch search(graph, access, options);
  for (const double room : {1.0, 0.85, 0.7}) {
    search.run(static_cast<int64_t>(static_cast<double>(options.scratchpad.capacity.count()) * room));
    Graph divided = graph;
    for (size_t n = 0; n < divided.nodes.size(); ++n) {
      if (const std::vector<Loop>* loops = search.loops(n)) divide(divided.nodes[n], *loops);
    }
    SPYRE_ASSIGN_OR_RETURN(const PlanCost joint, planned_cost(divided, options.scratchpad));
    if (joint.total() < report.joint.total()) {
      best = std::move(divided);
      report.joint = joint;
    }
    if (joint.total() <= search.expected() * 1.01) break;
  }
  report.evaluated = search.evaluated();
  report.exact = search.exact();
  graph = std::move(best);
  return report;
}

}  // namespace spyre
