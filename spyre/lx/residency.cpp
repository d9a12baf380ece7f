#include "spyre/lx/residency.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

namespace spyre::lx {
namespace {

int64_t step_of(const BufferTouch& touch) {
  return 2 * static_cast<int64_t>(touch.node) + 1;
}

// Works out one residency in steps; the first that finds a reason against it ends the work.
class ResidencyBuilder {
 public:
  ResidencyBuilder(const Analysis& analysis, BufferId id, std::span<const TouchView> seen,
                   const HoldRequest& request)
      : analysis_(analysis),
        id_(id),
        buffer_(analysis.graph().buffers[static_cast<size_t>(id)]),
        touches_(analysis.touches(id)),
        seen_(seen),
        request_(request),
        end_(std::min(request.last, touches_.size() - 1) + 1),
        fetched_(buffer_.is_input || request.first > 0),
        given_up_(!touches_.empty() && end_ < touches_.size()),
        whole_(buffer_.layout ? buffer_.layout->byte_size().value() : Bytes(0)) {}

  Residency build() {
    residency_.clone = fetched_;
    residency_.per_core = whole_;
    std::string reason = analysis_.ineligible(id_);
    if (reason.empty()) reason = find_origin();
    if (reason.empty()) reason = serve_readers();
    if (reason.empty()) reason = check_copies();
    if (reason.empty()) reason = count_savings();
    if (!reason.empty()) return ineligible(std::move(reason));
    residency_.view = *origin_;
    residency_.per_core = kStickBytes * origin_->sticks();
    return std::move(residency_);
  }

 private:
  Residency ineligible(std::string reason) {
    residency_.ineligible = std::move(reason);
    residency_.direct.clear(), residency_.relayouts.clear(), residency_.off_chip.clear();
    residency_.saves = residency_.pays = Bytes(0);
    return std::move(residency_);
  }

  const DeviceNode& node(const BufferTouch& touch) const { return analysis_.graph().nodes[touch.node]; }

  // Who holds what from the start: the cores that write the buffer, which must all agree, or those that fetch it.
  std::string find_origin() {
    home_ = home_bundle();
    if (fetched_) origin_ = fetching_view();
    for (size_t i = 0; i < touches_.size(); ++i) {
      if (!touches_[i].writes) continue;
      const std::string& name = node(touches_[i]).name;
      last_write_ = touches_[i].node;
      if (fetched_ ? i >= request_.first : i >= end_) return fmt::format("written by '{}' meanwhile", name);
      if (fetched_) continue;
      if (elsewhere(touches_[i])) return fmt::format("written in another bundle by '{}'", name);
      if (seen_[i].view == nullptr) return fmt::format("{} in '{}'", seen_[i].reason, name);
      if (origin_ != nullptr && origin_ != seen_[i].view) {
        return fmt::format("core division mismatch: {}, {} in '{}'", origin_->to_string(),
                           seen_[i].view->to_string(), name);
      }
      origin_ = seen_[i].view;
      written_ += seen_[i].moved.counted;
    }
    return origin_ == nullptr ? "partial or offset access" : "";
  }

  // Where LX keeps nothing across bundles, the only one in which what is requested can be there: the one that
  // makes the buffer, or, where it is fetched, the one that reads most of it.
  std::optional<int64_t> home_bundle() const {
    if (analysis_.moves().allows(Move::kCrossBundles)) return std::nullopt;
    if (!fetched_) return node(touches_.front()).bundle;
    std::map<int64_t, Bytes> moved;
    for (size_t i = request_.first; i < end_; ++i) moved[node(touches_[i]).bundle] += seen_[i].moved.counted;
    return std::max_element(moved.begin(), moved.end(),
                            [](const auto& a, const auto& b) { return a.second < b.second; })
        ->first;
  }

  bool elsewhere(const BufferTouch& touch) const { return home_ && node(touch).bundle != *home_; }

  // Who fetches a buffer: the cores of the reader that moves most of it, which then need no shuffle. Each must fetch a
  // part of its own, or the fetch would move as much as the readers do; where all readers share parts, a division that
  // nobody reads in spreads the fetch over the cores, and the ring brings the parts together.
  const CoreView* fetching_view() const {
    const CoreView* view = nullptr;
    Bytes most;
    bool served = false;
    for (size_t i = request_.first; i < end_; ++i) {
      const TouchView& touch = seen_[i];
      if (touch.view == nullptr || !analysis_.ineligible(id_, i).empty() || elsewhere(touches_[i])) continue;
      served = true;
      if (touch.view->shared() || (view != nullptr && touch.moved.counted <= most)) continue;
      view = touch.view;
      most = touch.moved.counted;
    }
    return view == nullptr && served ? analysis_.spread(id_) : view;
  }

  std::string serve_readers() {
    for (size_t i = request_.first; i < end_; ++i) {
      const BufferTouch& touch = touches_[i];
      if (touch.writes) {
        residency_.direct.push_back(touch);
        continue;
      }
      const bool direct = serve(i);
      // A copy, in or out or on the ring, is made of the whole buffer.
      const bool copied = !direct || given_up_ || fetched_;
      if (!buffer_.is_input && copied && touch.node <= last_write_)
        return fmt::format("read by '{}' before it is all written", node(touch).name);
    }
    return "";
  }

  // Finds the way for one reader: straight from LX, over the ring, or from device memory. Whether it is the first.
  bool serve(size_t i) {
    const BufferTouch& touch = touches_[i];
    const CoreView* view = seen_[i].view;
    const std::string& name = node(touch).name;
    if (const std::string& reason = analysis_.ineligible(id_, i); !reason.empty()) {
      leave(touch, reason);
    } else if (elsewhere(touch)) {
      leave(touch, fmt::format("read in another bundle by '{}'", name));
    } else if (view == nullptr) {
      leave(touch, fmt::format("{} in '{}'", seen_[i].reason, name));
    } else if (view == origin_) {
      residency_.direct.push_back(touch);
      saved_ += seen_[i].moved.counted;
      return true;
    } else if (!can_shuffle_to(view)) {
      leave(touch, fmt::format("core division mismatch: {} where it is made, {} in '{}'",
                               origin_->to_string(), view->to_string(), name));
    } else {
      Relayout& relayout = relayout_to(*view);
      relayout.readers.push_back(touch);
      relayout.saves += seen_[i].moved.counted;
      saved_ += seen_[i].moved.counted;
    }
    return false;
  }

  void leave(const BufferTouch& touch, std::string reason) {
    if (residency_.off_chip.empty()) residency_.why_off_chip = std::move(reason);
    residency_.off_chip.push_back(touch);
  }

  bool can_shuffle_to(const CoreView* view) const {
    const std::vector<const CoreView*>& off = request_.off_ring;
    return analysis_.moves().allows(Move::kShuffle) && std::find(off.begin(), off.end(), view) == off.end() &&
           analysis_.can_copy(id_, *origin_, *view);
  }

  // One copy serves all readers that are divided alike.
  Relayout& relayout_to(const CoreView& view) {
    std::vector<Relayout>& all = residency_.relayouts;
    const auto known =
        std::find_if(all.begin(), all.end(), [&](const Relayout& r) { return r.view == view; });
    if (known != all.end()) return *known;
    return all.emplace_back(
        Relayout{.view = view, .readers = {}, .per_core = kStickBytes * view.sticks(), .saves = Bytes(0)});
  }

  // Whether the copies between LX and device memory that this needs can be made.
  std::string check_copies() {
    const bool result = analysis_.graph().is_result(id_);
    const bool copyable = analysis_.can_copy(id_, *origin_, *origin_);
    residency_.copied_out = !fetched_ && (given_up_ || result || !residency_.off_chip.empty());
    if (residency_.copied_out && !(analysis_.moves().allows(Move::kCopyOut) && copyable))
      return residency_.off_chip.empty() ? "graph output" : residency_.why_off_chip;
    if (fetched_ && !(analysis_.moves().allows(Move::kCopyIn) && copyable)) return "partial or offset access";
    return "";
  }

  // A buffer that device memory never sees saves its write and every read from LX. One that is copied out is written
  // there once after all, by the copy, and one that is fetched is read there once.
  std::string count_savings() {
    const bool copied = fetched_ || residency_.copied_out;
    residency_.saves = copied ? saved_ : saved_ + written_;
    residency_.pays = copied ? whole_ : Bytes(0);
    if (fetched_) {
      const bool served = !residency_.direct.empty() || !residency_.relayouts.empty();
      if (saved_ <= whole_)
        return served || residency_.off_chip.empty() ? "graph input, read once" : residency_.why_off_chip;
      residency_.saves = saved_ - whole_;
    } else if (residency_.saves == Bytes(0)) {
      return residency_.off_chip.empty() ? "no consumer" : residency_.why_off_chip;
    }
    return "";
  }

  const Analysis& analysis_;
  const BufferId id_;
  const Buffer& buffer_;
  const std::vector<BufferTouch>& touches_;
  const std::span<const TouchView> seen_;
  const HoldRequest& request_;
  const size_t end_;     // of the touches to hold
  const bool fetched_;   // from device memory, not made in LX
  const bool given_up_;  // before its last touch
  const Bytes whole_;

  std::optional<int64_t> home_;  // the only bundle in which LX can hold it; none: all of them
  const CoreView* origin_ = nullptr;
  size_t last_write_ = 0;
  Bytes written_, saved_;
  Residency residency_;
};

}  // namespace

solve::Lifetime life_of(const Residency& residency) {
  int64_t begin = std::numeric_limits<int64_t>::max(), end = 0, last_write = -1;
  for (const BufferTouch& touch : residency.direct) {
    begin = std::min(begin, step_of(touch) - (residency.clone ? 1 : 0));
    end = std::max(end, step_of(touch));
    if (touch.writes) last_write = step_of(touch);
  }
  for (const Relayout& relayout : residency.relayouts) {
    begin = std::min(begin, step_of(relayout.readers.front()) - 1);
    end = std::max(end, step_of(relayout.readers.front()) - 1);
  }
  if (residency.copied_out) end = std::max(end, last_write + 1);
  return {solve::Step(begin), solve::Step(end + 1)};
}

solve::Lifetime life_of(const Relayout& relayout) {
  return {solve::Step(step_of(relayout.readers.front()) - 1),
          solve::Step(step_of(relayout.readers.back()) + 1)};
}

size_t steps_of(const DeviceGraph& graph) {
  return 2 * graph.nodes.size() + 3;
}

Residency residency_of(const Analysis& analysis, BufferId buffer, std::span<const TouchView> seen,
                       const HoldRequest& request) {
  return ResidencyBuilder(analysis, buffer, seen, request).build();
}

}  // namespace spyre::lx
