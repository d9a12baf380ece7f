#include "spyre/lx/trial_plan.h"

#include <algorithm>
#include <limits>

#include "spyre/graph/core_map.h"
#include "spyre/ops/ops.h"

namespace spyre::lx {
namespace {

// A buffer has a case for every combination of its nodes' divisions. One that dozens of nodes read has no end of them,
// and is rarely kept whole.
constexpr size_t kMostTouches = 32;

// Pairs in which the child may lie on the parent, whatever the divisions, if it dies there.
std::vector<std::vector<size_t>> in_place_pairs(const Analysis& analysis) {
  const std::vector<Buffer>& buffers = analysis.graph().buffers;
  std::vector<std::vector<size_t>> parents(buffers.size());
  if (!analysis.moves().allows(Move::kTakeOverSlot)) return parents;
  for (const NormalOp& op : analysis.access().ops) {
    if (!info_of(op.op.op).in_place) continue;
    for (size_t i = 0; i < op.op.inputs.size(); ++i) {
      const auto parent = static_cast<size_t>(op.op.inputs[i].buffer);
      const auto child = static_cast<size_t>(op.op.output.buffer);
      const bool alike =
          op.input(i).dims == op.output().dims && buffers[parent].layout == buffers[child].layout;
      if (alike && parent != child) parents[child].push_back(parent);
    }
  }
  return parents;
}

}  // namespace

Division division_of(const Analysis& analysis, const NormalOp& op,
                     std::span<const DeviceLayout* const> layouts) {
  Division division{.loops = op.access.loops, .cores = cores_used(op.access.loops)};
  for (size_t i = 0; i < op.access.operands.size(); ++i)
    division.operands.push_back(analysis.view_of(op, i, layouts));
  division.work = work_cost(op, layouts);
  return division;
}

TrialPlan::TrialPlan(const Analysis& analysis, std::vector<const std::vector<Division>*> divisions,
                     Objective objective)
    : analysis_(analysis),
      access_(analysis.access()),
      objective_(objective),
      divisions_(std::move(divisions)),
      off_chip_(analysis.graph().buffers.size()),
      alone_(divisions_.size()),
      cases_(off_chip_.size()),
      estimate_(steps_of(analysis.graph()), in_place_pairs(analysis)) {
  for (size_t b = 0; b < off_chip_.size(); ++b) {
    off_chip_[b] =
        !analysis.ineligible(static_cast<BufferId>(b)).empty() || access_.touches[b].size() > kMostTouches;
  }
}

void TrialPlan::start(int64_t room) {
  chosen_.assign(divisions_.size(), 0);
  estimate_.start(room);
  left_out_.clear();
  cost_ = PlanCost();
  for (size_t n = 0; n < chosen_.size(); ++n) cost_ += cost_alone(n);
  std::vector<size_t> touched;
  for (size_t b = 0; b < off_chip_.size(); ++b) {
    if (!off_chip_[b]) touched.push_back(b);
  }
  place(touched, estimate_.all());
}

void TrialPlan::change(const std::vector<Change>& changes) {
  estimate_.mark();
  cost_before_ = cost_;
  left_out_before_ = left_out_;
  chosen_before_.clear();
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
  // Where the buffers were until now, too: what was left out may take the room they give up.
  Window window{std::numeric_limits<int64_t>::max(), 0};
  for (const size_t b : touched) {
    if (estimate_.in_lx(b)) window.include(*now(b));
  }
  place(touched, window);
}

// Costs are put back, not taken off again: sums of floating-point numbers do not return to where they were.
void TrialPlan::take_back() {
  for (const auto& [node, before] : chosen_before_) chosen_[node] = before;
  estimate_.undo();
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
  const Residency residency = residency_of(analysis_, static_cast<BufferId>(buffer), seen);
  if (!residency.ineligible.empty()) return made;
  made.view = analysis_.intern(residency.view);
  const Bytes whole = analysis_.graph().buffers[buffer].layout->byte_size().value();
  if (residency.clone)
    made.on += traffic_cost(copy_traffic(whole, residency.view.cores()), false, residency.view.cores());
  if (residency.copied_out)
    made.on += traffic_cost(copy_traffic(whole, residency.view.cores()), true, residency.view.cores());
  for (const BufferTouch& touch : residency.off_chip) made.on += cost(touch);
  const auto add_piece = [&](const solve::Lifetime& life, Bytes size) {
    made.pieces.push_back({life.begin.count(), life.end.count(), size.count()});
  };
  add_piece(life_of(residency), residency.per_core);
  for (const Relayout& relayout : residency.relayouts) {
    made.on.ring = made.on.ring + shuffle_time(residency.view, relayout.view);
    add_piece(life_of(relayout), relayout.per_core);
  }
  made.gain = made.off.total(objective_).ns - made.on.total(objective_).ns;
  return made;
}

void TrialPlan::put(size_t buffer, const Case& chosen, bool in_lx) {
  if (const Case* before = now(buffer)) cost_ -= estimate_.in_lx(buffer) ? before->on : before->off;
  cost_ += in_lx ? chosen.on : chosen.off;
  estimate_.set(buffer, &chosen, in_lx);
}

void TrialPlan::place(const std::vector<size_t>& buffers, Window window) {
  std::vector<size_t> placed = buffers;
  for (const size_t b : buffers) {
    const Case& chosen = case_of(b);
    put(b, chosen, chosen.wanted());
    if (chosen.wanted()) window.include(chosen);
  }
  // There may be room again for what was left out.
  std::erase_if(left_out_, [&](size_t b) {
    if (std::binary_search(buffers.begin(), buffers.end(), b)) return true;
    if (!window.meets(*now(b))) return false;
    put(b, *now(b), true);
    placed.push_back(b);
    return true;
  });
  for (const size_t b : placed) {
    if (estimate_.in_lx(b)) window.include(*now(b));
  }
  // Who may take over whose slot depends on who is there, so all are put first. Outside the window nothing is more
  // crowded than it was: that is what makes a trial cheap.
  for (const size_t b : placed) estimate_.settle(b);
  for (const size_t b : estimate_.make_room(window)) {
    cost_ -= now(b)->on;
    cost_ += now(b)->off;
    left_out_.push_back(b);
  }
}

}  // namespace spyre::lx
