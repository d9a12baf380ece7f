#include "spyre/lx/trial_plan.h"

#include <algorithm>
#include <limits>

#include "spyre/ops/ops.h"

namespace spyre::lx {
namespace {

constexpr size_t kMostTouches = 32;

// Pairs in which the child may lie on the parent, whatever the divisions, if it dies there.
std::vector<std::vector<size_t>> in_place_pairs(const Graph& graph, const GraphAccess& access) {
  std::vector<std::vector<size_t>> parents(graph.buffers.size());
  for (const NormalOp& op : access.ops) {
    const OpInfo* info = find_op(op.op.op);
    if (info == nullptr || !info->in_place) continue;
    for (size_t i = 0; i < op.op.inputs.size(); ++i) {
      const auto parent = static_cast<size_t>(op.op.inputs[i].buffer);
      const auto child = static_cast<size_t>(op.op.output.buffer);
      const bool alike =
          op.input(i).dims == op.output().dims && graph.buffers[parent].layout == graph.buffers[child].layout;
      if (alike && parent != child) parents[child].push_back(parent);
    }
  }
  return parents;
}

}  // namespace

TrialPlan::TrialPlan(const Graph& graph, const GraphAccess& access, const ResidencyJudge& judge,
                     std::vector<const std::vector<Division>*> divisions, bool in_place)
    : graph_(graph),
      access_(access),
      judge_(judge),
      divisions_(std::move(divisions)),
      parents_(graph.buffers.size()),
      children_(graph.buffers.size()),
      off_chip_(graph.buffers.size()),
      alone_(graph.nodes.size()),
      cases_(graph.buffers.size()) {
  for (size_t b = 0; b < off_chip_.size(); ++b)
    off_chip_[b] = judge.is_ineligible(static_cast<BufferId>(b)) || access.touches[b].size() > kMostTouches;
  if (in_place) parents_ = in_place_pairs(graph, access);
  for (size_t child = 0; child < parents_.size(); ++child) {
    for (const size_t parent : parents_[child]) children_[parent].push_back(child);
  }
}

void TrialPlan::start(int64_t room) {
  room_ = room;
  chosen_.assign(graph_.nodes.size(), 0);
  stays_.assign(graph_.buffers.size(), {});
  live_.assign(2 * graph_.nodes.size() + 2, 0);
  left_out_.clear();
  cost_ = PlanCost();
  for (size_t n = 0; n < chosen_.size(); ++n) cost_ += cost_alone(n);
  std::vector<size_t> touched;
  for (size_t b = 0; b < stays_.size(); ++b) {
    if (!off_chip_[b]) touched.push_back(b);
  }
  place(touched, {0, std::ssize(live_)});
}

void TrialPlan::change(const std::vector<Change>& changes) {
  cost_before_ = cost_;
  left_out_before_ = left_out_;
  chosen_before_.clear();
  stays_before_.clear();
  std::vector<size_t> touched;
  for (const auto& [node, taken] : changes) {
    chosen_before_.emplace_back(node, chosen_[node]);
    cost_ -= cost_alone(node);
    chosen_[node] = taken;
    cost_ += cost_alone(node);
    const NormalOp& op = access_.ops[node];
    for (size_t i = 0; i < op.access.operands.size(); ++i) {
      const auto buffer = static_cast<size_t>(operand_buffer(op, i));
      if (!off_chip_[buffer]) touched.push_back(buffer);
    }
  }
  std::sort(touched.begin(), touched.end());
  touched.erase(std::unique(touched.begin(), touched.end()), touched.end());
  Window window{std::numeric_limits<int64_t>::max(), 0};
  for (const size_t b : touched) window.include(stays_[b]);
  place(touched, window);
}

void TrialPlan::take_back() {
  for (const auto& [node, before] : chosen_before_) chosen_[node] = before;
  for (auto undone = stays_before_.rbegin(); undone != stays_before_.rend(); ++undone) {
    occupy(undone->first, -1);
    stays_[undone->first] = undone->second;
    occupy(undone->first, +1);
  }
  left_out_ = left_out_before_;
  cost_ = cost_before_;
}

// What a node costs apart from the buffers that may live in LX.
const PlanCost& TrialPlan::cost_alone(size_t node) {
  std::vector<PlanCost>& known = alone_[node];
  for (size_t e = known.size(); e < divisions_[node]->size(); ++e) {
    const Division& division = (*divisions_[node])[e];
    PlanCost cost = division.work;
    for (size_t i = 0; i < division.operands.size(); ++i) {
      if (!off_chip_[static_cast<size_t>(operand_buffer(access_.ops[node], i))]) continue;
      cost += traffic_cost(division.operands[i].moved, i + 1 == division.operands.size(), division.cores);
    }
    known.push_back(cost);
  }
  return known[static_cast<size_t>(chosen_[node])];
}

const TrialPlan::Case& TrialPlan::case_of(size_t buffer) {
  const std::vector<BufferTouch>& touches = access_.touches[buffer];
  key_.clear();
  for (const BufferTouch& touch : touches) key_.push_back(chosen_[touch.node]);
  auto [found, fresh] = cases_[buffer].try_emplace(key_);
  if (fresh) found->second = make_case(buffer);
  return found->second;
}

TrialPlan::Case TrialPlan::make_case(size_t buffer) const {
  const std::vector<BufferTouch>& touches = access_.touches[buffer];
  const auto cost = [&](const BufferTouch& touch) {
    return traffic_cost(division(touch.node).operands[touch.operand].moved, touch.writes,
                        division(touch.node).cores);
  };
  Case made;
  std::vector<TouchView> seen;
  for (const BufferTouch& touch : touches) {
    seen.push_back(division(touch.node).operands[touch.operand]);
    made.off += cost(touch);
  }
  const Residency residency = judge_.judge(static_cast<BufferId>(buffer), seen);
  if (!residency.ineligible.empty()) return made;
  made.view = judge_.intern(residency.view);
  const Bytes whole = graph_.buffers[buffer].layout->byte_size().value();
  if (residency.clone) made.on += traffic_cost(whole, false, residency.view.cores());
  if (residency.copied_out) made.on += traffic_cost(whole, true, residency.view.cores());
  for (const BufferTouch& touch : residency.off_chip) made.on += cost(touch);
  const auto add_piece = [&](const solve::Lifetime& life, Bytes size) {
    made.pieces.push_back({life.begin.count(), life.end.count(), size.count()});
  };
  add_piece(life_of(residency), residency.per_core);
  for (const Relayout& relayout : residency.relayouts) {
    made.on.ring = made.on.ring + shuffle_time(residency.view, relayout.view);
    add_piece(life_of(relayout), relayout.per_core);
  }
  made.gain = made.off.total().ns - made.on.total().ns;
  return made;
}

void TrialPlan::Window::include(const Stay& stay) {
  if (!stay.in_lx) return;
  for (const Case::Piece& piece : stay.kind->pieces) {
    begin = std::min(begin, piece.begin);
    end = std::max(end, piece.end);
  }
}

bool TrialPlan::Window::overlaps(const Case& kind) const {
  return std::any_of(kind.pieces.begin(), kind.pieces.end(),
                     [&](const Case::Piece& piece) { return piece.begin < end && begin < piece.end; });
}

bool TrialPlan::takes_over(size_t child) const {
  const Case& own = *stays_[child].kind;
  return std::any_of(parents_[child].begin(), parents_[child].end(), [&](size_t parent) {
    const Stay& stay = stays_[parent];
    return stay.in_lx && stay.kind->view == own.view &&
           stay.kind->pieces.front().end == own.pieces.front().begin + 1;
  });
}

void TrialPlan::occupy(size_t buffer, int sign) {
  const Stay& stay = stays_[buffer];
  if (!stay.in_lx) return;
  for (const Case::Piece& piece : stay.kind->pieces) {
    const int64_t begin = &piece == &stay.kind->pieces.front() ? stay.begin : piece.begin;
    for (int64_t t = begin; t < piece.end; ++t) live_[static_cast<size_t>(t)] += sign * piece.size;
  }
}

void TrialPlan::set(size_t buffer, const Case* kind, bool in_lx) {
  Stay& stay = stays_[buffer];
  stays_before_.emplace_back(buffer, stay);
  occupy(buffer, -1);
  if (stay.kind != nullptr) cost_ -= stay.in_lx ? stay.kind->on : stay.kind->off;
  stay = {kind, in_lx, in_lx ? kind->pieces.front().begin : 0};
  cost_ += in_lx ? kind->on : kind->off;
  occupy(buffer, +1);
}

// Settles where the first piece of a buffer begins.
void TrialPlan::settle(size_t buffer) {
  Stay& stay = stays_[buffer];
  if (!stay.in_lx) return;
  const int64_t begin = stay.kind->pieces.front().begin + (takes_over(buffer) ? 1 : 0);
  if (begin == stay.begin) return;
  stays_before_.emplace_back(buffer, stay);
  occupy(buffer, -1);
  stay.begin = begin;
  occupy(buffer, +1);
}

void TrialPlan::place(const std::vector<size_t>& buffers, Window window) {
  std::vector<size_t> placed = buffers;
  for (const size_t b : buffers) {
    const Case& kind = case_of(b);
    set(b, &kind, kind.wanted());
    window.include(stays_[b]);
  }
  // There may be room again for what was left out.
  std::erase_if(left_out_, [&](size_t b) {
    if (std::binary_search(buffers.begin(), buffers.end(), b)) return true;
    if (!window.overlaps(*stays_[b].kind)) return false;
    set(b, stays_[b].kind, true);
    placed.push_back(b);
    return true;
  });
  for (const size_t b : placed) window.include(stays_[b]);
  for (const size_t b : placed) {
    settle(b);
    for (const size_t child : children_[b]) settle(child);
  }
  make_room(window);
}

void TrialPlan::make_room(Window window) {
  for (int64_t t = window.begin; t < window.end; ++t) {
    while (live_[static_cast<size_t>(t)] > room_) {
      size_t worst = 0;
      double least = std::numeric_limits<double>::max();
      for (size_t b = 0; b < stays_.size(); ++b) {
        if (!stays_[b].in_lx) continue;
        for (const Case::Piece& piece : stays_[b].kind->pieces) {
          if (piece.begin > t || piece.end <= t) continue;
          const double worth = stays_[b].kind->gain / static_cast<double>(piece.size);
          if (worth < least) worst = b, least = worth;
        }
      }
      set(worst, stays_[worst].kind, false);
      left_out_.push_back(worst);
      for (const size_t child : children_[worst]) settle(child);
    }
  }
}

}  // namespace spyre::lx
