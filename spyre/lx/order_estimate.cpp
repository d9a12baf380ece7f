#include "spyre/lx/order_estimate.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace spyre::lx {
namespace {

void add_once(std::vector<size_t>& nodes, size_t node) {
  if (std::find(nodes.begin(), nodes.end(), node) == nodes.end()) nodes.push_back(node);
}

}  // namespace

OrderEstimate::OrderEstimate(const Graph& graph, const GraphAccess& access, const PlannerOptions& options)
    : capacity_(options.capacity.count()) {
  const ResidencyJudge judge(graph, access, options.moves);
  const bool in_place = options.moves.allows(Move::kTakeOverSlot);
  std::vector<Holding> holdings;
  for (BufferId id = 0; id < std::ssize(graph.buffers); ++id)
    holdings.push_back({id, {}, judge.judge(id, judge.touches_of(id))});
  std::erase_if(holdings, [](const Holding& h) { return !h.residency.ineligible.empty(); });
  for (const Holding& holding : holdings) {
    const Residency& residency = holding.residency;
    Item item{.nodes = {},
              .writers = {},
              .copies = {},
              .size = residency.per_core.count(),
              .saves = residency.saves.count(),
              .clone = residency.clone,
              .copied_out = residency.copied_out,
              .parents = {},
              .successors = {}};
    for (const BufferTouch& touch : residency.direct) {
      add_once(item.nodes, touch.node);
      if (touch.writes) add_once(item.writers, touch.node);
    }
    for (const Relayout& relayout : residency.relayouts) {
      Copy copy{.readers = {}, .size = relayout.per_core.count()};
      for (const BufferTouch& touch : relayout.readers) add_once(copy.readers, touch.node);
      item.copies.push_back(std::move(copy));
    }
    for (size_t p = 0; p < holdings.size() && in_place; ++p) {
      if (same_mapping(graph, access, holding, holdings[p])) item.parents.push_back(p);
    }
    items_.push_back(std::move(item));
  }
  for (size_t i = 0; i < items_.size(); ++i) {
    for (const size_t parent : items_[i].parents) items_[parent].successors.push_back(i);
  }
  position_.resize(graph.nodes.size());
  load_.resize(2 * graph.nodes.size() + 3);
}

// Lives under an order, in the steps of residency.h: node at position p runs at 2p + 1, copies for it at 2p.
void OrderEstimate::lay_out(const std::vector<size_t>& order) {
  for (size_t i = 0; i < order.size(); ++i) position_[order[i]] = i;
  const auto run = [&](size_t node) { return 2 * static_cast<int64_t>(position_[node]) + 1; };
  pieces_.clear();
  source_.clear();
  for (size_t i = 0; i < items_.size(); ++i) {
    const Item& item = items_[i];
    Piece source{i, std::numeric_limits<int64_t>::max(), 0, item.size};
    for (const size_t node : item.nodes) {
      source.begin = std::min(source.begin, run(node) - (item.clone ? 1 : 0));
      source.end = std::max(source.end, run(node) + 1);
    }
    for (const size_t node : item.writers) {
      if (item.copied_out) source.end = std::max(source.end, run(node) + 2);
    }
    source_.push_back(pieces_.size());
    pieces_.push_back(source);
    for (const Copy& copy : item.copies) {
      Piece piece{i, std::numeric_limits<int64_t>::max(), 0, copy.size};
      for (const size_t node : copy.readers) {
        piece.begin = std::min(piece.begin, run(node) - 1);
        piece.end = std::max(piece.end, run(node) + 1);
      }
      Piece& made_of = pieces_[source_[i]];
      made_of.begin = std::min(made_of.begin, piece.begin);
      made_of.end = std::max(made_of.end, piece.begin + 1);
      pieces_.push_back(piece);
    }
  }
}

bool OrderEstimate::takes_over(size_t item) const {
  const int64_t begin = pieces_[source_[item]].begin;
  return std::any_of(items_[item].parents.begin(), items_[item].parents.end(), [&](size_t parent) {
    return kept_[parent] && pieces_[source_[parent]].end == begin + 1;
  });
}

void OrderEstimate::load_all() {
  kept_.assign(items_.size(), 1);
  std::fill(load_.begin(), load_.end(), 0);
  work_ += static_cast<int64_t>(pieces_.size() + load_.size());
  for (size_t p = 0; p < pieces_.size(); ++p) {
    const Piece& piece = pieces_[p];
    const int64_t begin = piece.begin + (p == source_[piece.item] && takes_over(piece.item) ? 1 : 0);
    if (begin >= piece.end) continue;
    load_[static_cast<size_t>(begin)] += piece.size;
    load_[static_cast<size_t>(piece.end)] -= piece.size;
  }
  std::partial_sum(load_.begin(), load_.end(), load_.begin());
}

// An successor lies where its parent lay and is as large: loads never rise.
void OrderEstimate::drop(size_t item) {
  const bool late = takes_over(item);
  std::vector<size_t> successors;
  for (const size_t successor : items_[item].successors) {
    if (kept_[successor] && takes_over(successor)) successors.push_back(successor);
  }
  kept_[item] = 0;
  const size_t end = item + 1 < source_.size() ? source_[item + 1] : pieces_.size();
  for (size_t p = source_[item]; p < end; ++p) {
    const Piece& piece = pieces_[p];
    const int64_t begin = piece.begin + (p == source_[item] && late ? 1 : 0);
    for (int64_t step = begin; step < piece.end; ++step) load_[static_cast<size_t>(step)] -= piece.size;
    work_ += std::max<int64_t>(0, piece.end - begin);
  }
  for (const size_t successor : successors) {
    const Piece& piece = pieces_[source_[successor]];
    if (!takes_over(successor) && piece.begin < piece.end)
      load_[static_cast<size_t>(piece.begin)] += piece.size;
  }
}

size_t OrderEstimate::overload_from(size_t step) {
  const auto found = std::find_if(load_.begin() + static_cast<std::ptrdiff_t>(step), load_.end(),
                                  [&](int64_t live) { return live > capacity_; });
  work_ += found - load_.begin() - static_cast<std::ptrdiff_t>(step);
  return static_cast<size_t>(found - load_.begin());
}

OrderLoss OrderEstimate::loss_of(const std::vector<size_t>& order) {
  lay_out(order);
  load_all();
  OrderLoss loss;
  for (const int64_t live : load_) loss.overload += std::max<int64_t>(0, live - capacity_);
  const auto worth = [&](const Piece& p) {
    return static_cast<double>(items_[p.item].saves) / static_cast<double>(p.size);
  };
  for (size_t over = overload_from(0); over < load_.size(); over = overload_from(over)) {
    const auto step = static_cast<int64_t>(over);
    const Piece* worst = nullptr;
    for (const Piece& piece : pieces_) {
      if (!kept_[piece.item] || piece.begin > step || piece.end <= step) continue;
      if (worst == nullptr || worth(piece) < worth(*worst)) worst = &piece;
    }
    work_ += std::ssize(pieces_);
    loss.off_chip += items_[worst->item].saves;
    drop(worst->item);
  }
  return loss;
}

}  // namespace spyre::lx
