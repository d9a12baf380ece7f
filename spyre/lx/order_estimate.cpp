#include "spyre/lx/order_estimate.h"

#include <algorithm>
#include <limits>

#include "spyre/lx/in_place.h"

namespace spyre::lx {
namespace {

void add_once(std::vector<size_t>& nodes, size_t node) {
  if (std::find(nodes.begin(), nodes.end(), node) == nodes.end()) nodes.push_back(node);
}

// By holding, those whose slot it may take over; when they end where it begins depends on the order.
std::vector<std::vector<size_t>> parents_of(const Analysis& analysis, const std::vector<Holding>& holdings) {
  std::vector<std::vector<size_t>> parents(holdings.size());
  if (!analysis.moves().allows(Move::kTakeOverSlot)) return parents;
  for (size_t child = 0; child < holdings.size(); ++child) {
    for (size_t parent = 0; parent < holdings.size(); ++parent) {
      if (same_mapping(analysis, holdings[child], holdings[parent])) parents[child].push_back(parent);
    }
  }
  return parents;
}

}  // namespace

OrderEstimate::OrderEstimate(const Analysis& analysis, Bytes capacity)
    : OrderEstimate(analysis, capacity, holdings_of(analysis)) {}

OrderEstimate::OrderEstimate(const Analysis& analysis, Bytes capacity, const std::vector<Holding>& holdings)
    : capacity_(capacity.count()),
      position_(analysis.graph().nodes.size()),
      claims_(holdings.size()),
      estimate_(steps_of(analysis.graph()), parents_of(analysis, holdings)) {
  for (size_t i = 0; i < holdings.size(); ++i) {
    items_.push_back(item_of(holdings[i].residency));
    claims_[i].view = analysis.intern(holdings[i].residency.view);
    claims_[i].gain = static_cast<double>(items_[i].saves);
  }
}

// Of every buffer that may be in LX for its whole live range.
std::vector<Holding> OrderEstimate::holdings_of(const Analysis& analysis) {
  std::vector<Holding> holdings;
  for (BufferId id = 0; id < std::ssize(analysis.graph().buffers); ++id) {
    Residency residency = residency_of(analysis, id, analysis.views(id));
    if (residency.ineligible.empty()) holdings.push_back({id, {}, std::move(residency)});
  }
  return holdings;
}

OrderEstimate::Item OrderEstimate::item_of(const Residency& residency) {
  Item item{.nodes = {},
            .writers = {},
            .copies = {},
            .size = residency.per_core.count(),
            .saves = residency.saves.count(),
            .clone = residency.clone,
            .copied_out = residency.copied_out};
  for (const BufferTouch& touch : residency.direct) {
    add_once(item.nodes, touch.node);
    if (touch.writes) add_once(item.writers, touch.node);
  }
  for (const Relayout& relayout : residency.relayouts) {
    Copy copy{.readers = {}, .size = relayout.per_core.count()};
    for (const BufferTouch& touch : relayout.readers) add_once(copy.readers, touch.node);
    item.copies.push_back(std::move(copy));
  }
  return item;
}

// Live ranges under an order, in the steps of residency.h: the node at position p runs at 2p + 1, copies for it at 2p. A
// clone is fetched in the step before its first reader; what is copied out is there a step longer than its writer.
void OrderEstimate::lay_out(const Item& item, std::vector<Piece>& pieces) const {
  pieces.assign(1, {std::numeric_limits<int64_t>::max(), 0, item.size});
  for (const size_t node : item.nodes) {
    pieces[0].begin = std::min(pieces[0].begin, step_of(node) - (item.clone ? 1 : 0));
    pieces[0].end = std::max(pieces[0].end, step_of(node) + 1);
  }
  for (const size_t node : item.writers) {
    if (item.copied_out) pieces[0].end = std::max(pieces[0].end, step_of(node) + 2);
  }
  for (const Copy& copy : item.copies) {
    Piece piece{std::numeric_limits<int64_t>::max(), 0, copy.size};
    for (const size_t node : copy.readers) {
      piece.begin = std::min(piece.begin, step_of(node) - 1);
      piece.end = std::max(piece.end, step_of(node) + 1);
    }
    // The copy is made from the buffer, which has to be there in the step in which it begins.
    pieces[0].begin = std::min(pieces[0].begin, piece.begin);
    pieces[0].end = std::max(pieces[0].end, piece.begin + 1);
    pieces.push_back(piece);
  }
}

void OrderEstimate::lay_out(const std::vector<size_t>& order) {
  for (size_t i = 0; i < order.size(); ++i) position_[order[i]] = i;
  for (size_t i = 0; i < items_.size(); ++i) lay_out(items_[i], claims_[i].pieces);
}

OrderLoss OrderEstimate::loss_of(const std::vector<size_t>& order) {
  lay_out(order);
  estimate_.start(capacity_, claims_);
  OrderLoss loss{.overload = estimate_.overload()};
  for (const size_t item : estimate_.make_room(estimate_.all())) loss.off_chip += items_[item].saves;
  return loss;
}

}  // namespace spyre::lx
