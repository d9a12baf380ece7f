#include "spyre/lx/estimate.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace spyre::lx {

void Window::include(const Claim& claim) {
  for (const Piece& piece : claim.pieces) {
    begin = std::min(begin, piece.begin);
    end = std::max(end, piece.end);
  }
}

bool Window::meets(const Claim& claim) const {
  return std::any_of(claim.pieces.begin(), claim.pieces.end(),
                     [&](const Piece& piece) { return piece.begin < end && begin < piece.end; });
}

Estimate::Estimate(size_t steps, std::vector<std::vector<size_t>> parents)
    : parents_(std::move(parents)), children_(parents_.size()), stays_(parents_.size()), load_(steps) {
  for (size_t child = 0; child < parents_.size(); ++child) {
    for (const size_t parent : parents_[child]) children_[parent].push_back(child);
  }
}

void Estimate::start(int64_t room) {
  room_ = room;
  stays_.assign(stays_.size(), {});
  std::fill(load_.begin(), load_.end(), 0);
  undone_.clear();
}

// Differences first, then their sum: a piece costs two steps however long it lives.
void Estimate::start(int64_t room, const std::vector<Claim>& claims) {
  start(room);
  pieces_ = 0;
  for (size_t i = 0; i < claims.size(); ++i) stays_[i] = {&claims[i], true, claims[i].pieces.front().begin};
  for (size_t i = 0; i < claims.size(); ++i) {
    stays_[i].begin += takes_over(i) ? 1 : 0;
    for (const Piece& piece : claims[i].pieces) {
      const int64_t begin = &piece == &claims[i].pieces.front() ? stays_[i].begin : piece.begin;
      if (begin >= piece.end) continue;
      load_[static_cast<size_t>(begin)] += piece.size;
      load_[static_cast<size_t>(piece.end)] -= piece.size;
    }
    pieces_ += std::ssize(claims[i].pieces);
  }
  std::partial_sum(load_.begin(), load_.end(), load_.begin());
  work_ += pieces_ + std::ssize(load_);
}

void Estimate::set(size_t item, const Claim* claim, bool in_lx) {
  Stay& stay = stays_[item];
  undone_.emplace_back(item, stay);
  occupy(stay, -1);
  stay = {claim, in_lx, in_lx ? claim->pieces.front().begin : 0};
  occupy(stay, +1);
}

// Whether the slot of a parent is there when the item begins. In the step they share the parent is read and the item
// written, element by element over it.
bool Estimate::takes_over(size_t item) const {
  const Claim& own = *stays_[item].claim;
  return std::any_of(parents_[item].begin(), parents_[item].end(), [&](size_t parent) {
    const Stay& stay = stays_[parent];
    return stay.in_lx && stay.claim->view == own.view &&
           stay.claim->pieces.front().end == own.pieces.front().begin + 1;
  });
}

// Adds a stay to the load, or takes it off; how many steps that took.
int64_t Estimate::occupy(const Stay& stay, int sign) {
  if (!stay.in_lx) return 0;
  int64_t steps = 0;
  for (const Piece& piece : stay.claim->pieces) {
    const int64_t begin = &piece == &stay.claim->pieces.front() ? stay.begin : piece.begin;
    for (int64_t t = begin; t < piece.end; ++t) load_[static_cast<size_t>(t)] += sign * piece.size;
    steps += std::max<int64_t>(0, piece.end - begin);
  }
  return steps;
}

void Estimate::settle(size_t item) {
  settle_alone(item);
  for (const size_t child : children_[item]) settle_alone(child);
}

// Only the first step of the first piece is in question.
void Estimate::settle_alone(size_t item) {
  Stay& stay = stays_[item];
  if (!stay.in_lx) return;
  const Piece& first = stay.claim->pieces.front();
  const int64_t begin = first.begin + (takes_over(item) ? 1 : 0);
  if (begin == stay.begin) return;
  undone_.emplace_back(item, stay);
  stay.begin = begin;
  if (first.begin < first.end)
    load_[static_cast<size_t>(first.begin)] += begin == first.begin ? first.size : -first.size;
}

// Loads never rise where something leaves: a child that loses its parent's slot is no larger than the parent was, and
// needs room of its own in just the step they shared. So one pass over the steps is enough.
std::vector<size_t> Estimate::make_room(Window window) {
  std::vector<size_t> left;
  work_ += std::max<int64_t>(0, window.end - window.begin);
  for (int64_t step = window.begin; step < window.end; ++step) {
    while (load_[static_cast<size_t>(step)] > room_) {
      const size_t item = least_worth(step);
      Stay& stay = stays_[item];
      undone_.emplace_back(item, stay);
      work_ += pieces_ + occupy(stay, -1);
      stay = {stay.claim, false, 0};
      settle(item);
      left.push_back(item);
    }
  }
  return left;
}

// Of what is in LX at this step, the item that gains least for the bytes it holds there.
size_t Estimate::least_worth(int64_t step) const {
  size_t worst = 0;
  double least = std::numeric_limits<double>::max();
  for (size_t item = 0; item < stays_.size(); ++item) {
    if (!stays_[item].in_lx) continue;
    for (const Piece& piece : stays_[item].claim->pieces) {
      if (piece.begin > step || piece.end <= step) continue;
      const double worth = stays_[item].claim->gain / static_cast<double>(piece.size);
      if (worth < least) worst = item, least = worth;
    }
  }
  return worst;
}

int64_t Estimate::overload() const {
  int64_t sum = 0;
  for (const int64_t load : load_) sum += std::max<int64_t>(0, load - room_);
  return sum;
}

void Estimate::undo() {
  for (auto undone = undone_.rbegin(); undone != undone_.rend(); ++undone) {
    Stay& stay = stays_[undone->first];
    occupy(stay, -1);
    stay = undone->second;
    occupy(stay, +1);
  }
  undone_.clear();
}

}  // namespace spyre::lx
