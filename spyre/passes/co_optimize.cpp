#include "spyre/passes/co_optimize.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>

#include "spyre/graph/core_map.h"
#include "spyre/ops/ops.h"
#include "spyre/passes/co_optimize/division_menu.h"

namespace spyre {
namespace {

using State = std::vector<int>;  // by node: which entry of its menu

// How far a node's new division is carried along the buffers it shares with others.
enum class Reach { kAlone, kVector, kAll };

// One buffer under the divisions of the nodes that touch it: in device memory, and in LX if it may be there.
struct BufferCase {
  PlanCost off, on;
  double gain = 0;  // ns, of being in LX
  bool resident = false;
  struct Piece {
    int64_t begin, end;
    Bytes size;
  };
  std::vector<Piece> pieces;  // of LX: the buffer itself first, then its copies
  const CoreView* view = nullptr;
};

class Search {
 public:
  Search(const Graph& graph, const GraphAccess& access, const CoOptimizeOptions& options, double room)
      : graph_(graph),
        access_(access),
        options_(options),
        room_(static_cast<int64_t>(static_cast<double>(options.scratchpad.capacity.count()) * room)),
        judge_(graph, access,
               {.clone_inputs = options.scratchpad.clone_inputs,
                .copy_out = options.scratchpad.copy_out,
                .relayouts = options.scratchpad.relayouts,
                .across_bundles = options.scratchpad.across_bundles}),
        cases_(graph.buffers.size()) {
    build_menus(true);
    if (combinations() > options.search_whole) build_menus(false);
    find_in_place_pairs();
  }

  State run() {
    State best(graph_.nodes.size(), 0);
    double least = evaluate(best);
    exact_ = combinations() <= options_.search_whole;
    if (exact_) {
      try_everything(best, least);
    } else {
      climb(best, least);
    }
    expected_ = {least};
    return best;
  }

  /// What the found plan should cost, if what fits by size also finds a place.
  Nanos expected() const { return expected_; }

  const std::vector<Loop>& loops(size_t node, int entry) const {
    return menus_[node].entries()[static_cast<size_t>(entry)].loops;
  }
  int64_t evaluated() const { return evaluated_; }
  bool exact() const { return exact_; }

 private:
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

  // Pairs in which the child may lie on the parent, whatever the divisions, if it dies there.
  void find_in_place_pairs() {
    parents_.resize(graph_.buffers.size());
    for (size_t n = 0; n < access_.ops.size(); ++n) {
      const NormalOp& op = access_.ops[n];
      const OpInfo* info = find_op(op.op.op);
      if (info == nullptr || !info->in_place || !options_.scratchpad.in_place) continue;
      for (size_t i = 0; i < op.op.inputs.size(); ++i) {
        const auto parent = static_cast<size_t>(op.op.inputs[i].buffer);
        const auto child = static_cast<size_t>(op.op.output.buffer);
        const bool alike = op.input(i).dims == op.output().dims &&
                           graph_.buffers[parent].layout == graph_.buffers[child].layout;
        if (alike && parent != child) parents_[child].push_back(parent);
      }
    }
  }

  const MenuEntry& entry(const State& state, size_t node) const {
    return menus_[node].entries()[static_cast<size_t>(state[node])];
  }

  const BufferCase& case_of(const State& state, BufferId id) {
    const std::vector<BufferTouch>& touches = access_.touches[static_cast<size_t>(id)];
    std::vector<int> key;
    key.reserve(touches.size());
    for (const BufferTouch& touch : touches) key.push_back(state[touch.node]);
    auto [found, fresh] = cases_[static_cast<size_t>(id)].try_emplace(std::move(key));
    if (fresh) found->second = make_case(state, id);
    return found->second;
  }

  BufferCase make_case(const State& state, BufferId id) {
    const std::vector<BufferTouch>& touches = access_.touches[static_cast<size_t>(id)];
    std::vector<TouchView> seen;
    BufferCase made;
    const auto cost = [&](const BufferTouch& touch) {
      const MenuEntry& node = entry(state, touch.node);
      return traffic_cost(node.operands[touch.operand].moved, touch.writes, node.cores);
    };
    for (const BufferTouch& touch : touches) {
      seen.push_back(entry(state, touch.node).operands[touch.operand]);
      made.off += cost(touch);
    }
    const Residency residency = judge_.judge(id, seen);
    if (!residency.barred.empty()) return made;
    made.resident = true;
    made.view = judge_.intern(residency.view);
    const Bytes whole = graph_.buffers[static_cast<size_t>(id)].layout->byte_size().value();
    if (residency.clone) made.on += traffic_cost(whole, false, residency.view.cores());
    if (residency.copied_out) made.on += traffic_cost(whole, true, residency.view.cores());
    for (const BufferTouch& touch : residency.off_chip) made.on += cost(touch);
    const auto add_piece = [&](const solve::Lifetime& life, Bytes size) {
      made.pieces.push_back({life.begin.count(), life.end.count(), size});
    };
    add_piece(life_of(residency), residency.per_core);
    for (const Relayout& relayout : residency.relayouts) {
      made.on.ring = made.on.ring + shuffle_time(residency.view, relayout.view);
      add_piece(life_of(relayout), relayout.per_core);
    }
    made.gain = made.off.total().ns - made.on.total().ns;
    return made;
  }

  // Modelled time of the plan that these divisions allow.
  double evaluate(const State& state) {
    ++evaluated_;
    if (options_.progress) options_.progress();
    PlanCost cost;
    for (size_t n = 0; n < state.size(); ++n) cost += entry(state, n).work;
    std::vector<const BufferCase*> cases(graph_.buffers.size(), nullptr);
    std::vector<char> in_lx(graph_.buffers.size(), 0);
    for (size_t b = 0; b < cases.size(); ++b) {
      if (access_.touches[b].empty()) continue;
      cases[b] = &case_of(state, static_cast<BufferId>(b));
      in_lx[b] = cases[b]->resident && cases[b]->gain > 0;
    }
    fit(cases, in_lx);
    for (size_t b = 0; b < cases.size(); ++b) {
      if (cases[b] != nullptr) cost += in_lx[b] ? cases[b]->on : cases[b]->off;
    }
    return cost.total().ns;
  }

  // Leaves out what does not fit, the least useful for its size first. Fragments are the solver's concern.
  void fit(const std::vector<const BufferCase*>& cases, std::vector<char>& in_lx) {
    const size_t steps = 2 * graph_.nodes.size() + 2;
    while (true) {
      std::vector<int64_t> change(steps + 1, 0);
      for (size_t b = 0; b < cases.size(); ++b) {
        if (!in_lx[b]) continue;
        for (size_t p = 0; p < cases[b]->pieces.size(); ++p) {
          const BufferCase::Piece& piece = cases[b]->pieces[p];
          const int64_t begin = piece.begin + (p == 0 && takes_over(cases, in_lx, b) ? 1 : 0);
          if (begin >= piece.end) continue;
          change[static_cast<size_t>(begin)] += piece.size.count();
          change[static_cast<size_t>(piece.end)] -= piece.size.count();
        }
      }
      int64_t live = 0, over = -1;
      for (size_t t = 0; t < steps && over < 0; ++t) {
        live += change[t];
        if (live > room_) over = static_cast<int64_t>(t);
      }
      if (over < 0) return;
      int worst = -1;
      double least = 0;
      for (size_t b = 0; b < cases.size(); ++b) {
        if (!in_lx[b]) continue;
        for (const BufferCase::Piece& piece : cases[b]->pieces) {
          if (piece.begin > over || piece.end <= over) continue;
          const double worth = cases[b]->gain / static_cast<double>(piece.size.count());
          if (worst < 0 || worth < least) worst = static_cast<int>(b), least = worth;
        }
      }
      in_lx[static_cast<size_t>(worst)] = 0;
    }
  }

  bool takes_over(const std::vector<const BufferCase*>& cases, const std::vector<char>& in_lx,
                  size_t child) const {
    const BufferCase& own = *cases[child];
    return std::any_of(parents_[child].begin(), parents_[child].end(), [&](size_t parent) {
      return in_lx[parent] && cases[parent]->view == own.view &&
             cases[parent]->pieces.front().end == own.pieces.front().begin + 1;
    });
  }

  void try_everything(State& best, double& least) {
    State state(graph_.nodes.size(), 0);
    while (true) {
      if (const double cost = evaluate(state); cost < least) least = cost, best = state;
      size_t n = 0;
      while (n < state.size() && ++state[n] == static_cast<int>(menus_[n].listed())) state[n++] = 0;
      if (n == state.size()) return;
    }
  }

  void climb(State& best, double& least) {
    bool improved = true;
    while (improved && evaluated_ < options_.budget) {
      improved = false;
      for (const size_t node : heaviest_first(best)) improved = improve(node, best, least) || improved;
    }
  }

  std::vector<size_t> heaviest_first(const State& state) {
    std::vector<int64_t> moved(state.size(), 0);
    std::vector<size_t> order(state.size());
    for (size_t n = 0; n < state.size(); ++n) {
      order[n] = n;
      for (const TouchView& operand : entry(state, n).operands) moved[n] += operand.moved.count();
    }
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return moved[a] > moved[b]; });
    return order;
  }

  bool improve(size_t node, State& best, double& least) {
    const State start = best;
    bool improved = false;
    std::vector<State> tried;
    for (int e = 0; e < static_cast<int>(menus_[node].listed()); ++e) {
      for (const Reach reach : {Reach::kAlone, Reach::kVector, Reach::kAll}) {
        if (evaluated_ >= options_.budget) return improved;
        State state = start;
        state[node] = e;
        if (reach != Reach::kAlone) carry(state, node, reach);
        if (state == start || (!tried.empty() && tried.back() == state)) continue;
        const double cost = evaluate(state);
        tried.push_back(state);
        if (cost >= least * (1 - 1e-9)) continue;
        least = cost;
        best = std::move(state);
        improved = true;
      }
    }
    return improved;
  }

  // Lets the neighbours of a node, and theirs, divide their work so that shared buffers have one view.
  void carry(State& state, size_t from, Reach reach) {
    std::vector<char> done(state.size(), 0);
    std::deque<size_t> queue = {from};
    done[from] = 1;
    while (!queue.empty()) {
      const size_t node = queue.front();
      queue.pop_front();
      const NormalOp& op = access_.ops[node];
      for (size_t i = op.index_count(); i < op.access.operands.size(); ++i) {
        const BufferId id = operand_buffer(op, i);
        const CoreView* view = entry(state, node).operands[i].view;
        const Buffer& buffer = graph_.buffers[static_cast<size_t>(id)];
        if (view == nullptr || buffer.is_input || buffer.fill) continue;
        for (const BufferTouch& touch : access_.touches[static_cast<size_t>(id)]) {
          if (done[touch.node]) continue;
          const bool matmul = access_.ops[touch.node].op.is_matmul();
          if (matmul && reach != Reach::kAll) continue;
          if (entry(state, touch.node).operands[touch.operand].view == view) continue;
          const int adopted = menus_[touch.node].adopt(touch.operand, *view);
          if (adopted < 0) continue;
          state[touch.node] = adopted;
          done[touch.node] = 1;
          queue.push_back(touch.node);
        }
      }
    }
  }

  const Graph& graph_;
  const GraphAccess& access_;
  const CoOptimizeOptions& options_;
  const int64_t room_;  // bytes of LX the search counts on
  ResidencyJudge judge_;
  std::deque<DivisionMenu> menus_;
  std::vector<std::map<std::vector<int>, BufferCase>> cases_;  // by buffer
  std::vector<std::vector<size_t>> parents_;                   // by child
  int64_t evaluated_ = 0;
  bool exact_ = false;
  Nanos expected_;
};

void divide(Node& node, const std::vector<Loop>& loops) {
  for (const Loop& decided : loops) {
    for (Loop& loop : node.loops) {
      if (loop.name == decided.name) loop.split = decided.split, loop.step = decided.step;
    }
  }
}

// What a graph costs once its scratchpads are planned.
Result<PlanCost> planned_cost(Graph graph, const ScratchpadOptions& options) {
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
  for (const double room : {1.0, 0.85, 0.7}) {
    Search search(graph, access, options, room);
    const State chosen = search.run();
    report.evaluated += search.evaluated();
    report.exact = report.exact || search.exact();
    Graph divided = graph;
    for (size_t n = 0; n < chosen.size(); ++n) {
      if (chosen[n] != 0) divide(divided.nodes[n], search.loops(n, chosen[n]));
    }
    SPYRE_ASSIGN_OR_RETURN(const PlanCost joint, planned_cost(divided, options.scratchpad));
    if (joint.total() < report.joint.total()) {
      best = std::move(divided);
      report.joint = joint;
    }
    if (joint.total() <= search.expected() * 1.01) break;
  }
  graph = std::move(best);
  return report;
}

}  // namespace spyre
