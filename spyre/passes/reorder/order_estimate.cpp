#include "spyre/passes/reorder/order_estimate.h"

#include <algorithm>
#include <limits>

namespace spyre {
namespace {

void add_once(std::vector<size_t>& nodes, size_t node) {
  if (std::find(nodes.begin(), nodes.end(), node) == nodes.end()) nodes.push_back(node);
}

}  // namespace

OrderEstimate::OrderEstimate(const Graph& graph, const GraphAccess& access, std::vector<Holding> holdings,
                             Bytes capacity, bool in_place)
    : capacity_(capacity.count()) {
  std::erase_if(holdings, [](const Holding& h) { return !h.residency.barred.empty(); });
  for (const Holding& holding : holdings) {
    const Residency& residency = holding.residency;
    Item item{.nodes = {},
              .writers = {},
              .copies = {},
              .size = residency.per_core.count(),
              .saves = residency.saves.count(),
              .clone = residency.clone,
              .copied_out = residency.copied_out,
              .parents = {}};
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
      if (lies_alike(graph, access, holding, holdings[p])) item.parents.push_back(p);
    }
    items_.push_back(std::move(item));
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

int64_t OrderEstimate::first_overload(const std::vector<bool>& kept) {
  std::fill(load_.begin(), load_.end(), 0);
  work_ += static_cast<int64_t>(pieces_.size() + load_.size());
  for (size_t p = 0; p < pieces_.size(); ++p) {
    const Piece& piece = pieces_[p];
    if (!kept[piece.item]) continue;
    const Item& item = items_[piece.item];
    int64_t begin = piece.begin;
    if (p == source_[piece.item]) {
      const bool takes_over = std::any_of(item.parents.begin(), item.parents.end(), [&](size_t parent) {
        return kept[parent] && pieces_[source_[parent]].end == piece.begin + 1;
      });
      begin += takes_over ? 1 : 0;
    }
    if (begin >= piece.end) continue;
    load_[static_cast<size_t>(begin)] += piece.size;
    load_[static_cast<size_t>(piece.end)] -= piece.size;
  }
  int64_t first = -1, live = 0;
  for (size_t step = 0; step < load_.size(); ++step) {
    live += load_[step];
    load_[step] = live;
    if (live > capacity_ && first < 0) first = static_cast<int64_t>(step);
  }
  return first;
}

OrderLoss OrderEstimate::loss_of(const std::vector<size_t>& order) {
  lay_out(order);
  OrderLoss loss;
  std::vector<bool> kept(items_.size(), true);
  int64_t over = first_overload(kept);
  for (const int64_t live : load_) loss.overload += std::max<int64_t>(0, live - capacity_);
  for (; over >= 0; over = first_overload(kept)) {
    const Piece* worst = nullptr;
    for (const Piece& piece : pieces_) {
      if (!kept[piece.item] || piece.begin > over || piece.end <= over) continue;
      const auto worth = [&](const Piece& p) {
        return static_cast<double>(items_[p.item].saves) / static_cast<double>(p.size);
      };
      if (worst == nullptr || worth(piece) < worth(*worst)) worst = &piece;
    }
    kept[worst->item] = false;
    loss.off_chip += items_[worst->item].saves;
  }
  return loss;
}

}  // namespace spyre
