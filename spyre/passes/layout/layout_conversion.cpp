#include "spyre/passes/layout/layout_conversion.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <set>

#include "spyre/graph/normal_op.h"

namespace spyre {

int64_t bytes_of(const DeviceLayout& layout) {
  const auto bytes = layout.byte_size();
  return bytes.ok() ? bytes.value().count() : 0;
}

namespace {

bool steps_by(const DeviceLayout& layout, int64_t stride) {
  return std::find(layout.stride_map.begin(), layout.stride_map.end(), stride) != layout.stride_map.end();
}

}  // namespace

DeviceNode copy_node(const DeviceGraph& graph, BufferId from, BufferId to, const DeviceLayout& from_layout,
                     const DeviceLayout& to_layout) {
  const Buffer& source = graph.buffers[static_cast<size_t>(from)];
  DeviceNode node{{.name = graph.buffers[static_cast<size_t>(to)].name}};
  Expr index;
  int64_t joined = 1;  // positions of the dimensions before that are walked with the next one
  for (size_t d = 0; d < source.size.size(); ++d) {
    const int64_t stride = source.stride[d];
    if (stride == 0 || (source.size[d] == 1 && joined > 1)) continue;  // one element, seen many times
    size_t inner = d + 1;
    while (inner < source.size.size() && source.size[inner] == 1) ++inner;
    const bool named = steps_by(from_layout, stride) && steps_by(to_layout, stride);
    const bool dense = inner < source.size.size() && stride == source.size[inner] * source.stride[inner];
    if (source.size[d] > 1 && !named && dense) {
      joined *= source.size[d];
      continue;
    }
    node.loops.push_back({.name = fmt::format("p{}", d), .extent = joined * walkable_extent(graph, from, d)});
    index = index + stride * Expr::symbol(node.loops.back().name);
    joined = 1;
  }
  node.op = {.inputs = {{from, index + Expr::constant(source.offset)}}, .output = {to, index}};
  return node;
}

namespace {

bool is_interleaved(const DeviceLayout& layout) {
  return layout.element_arrangement == ElementArrangement::FP32_TO_DL16;
}

}  // namespace

// The states of one buffer; its candidates come first, and keep their numbers.
class Conversions::States {
 public:
  States(const DeviceGraph& graph, BufferId buffer, const std::vector<DeviceLayout>& candidates,
         LaneMoves moves, LanePermutations& permutations)
      : graph_(graph),
        buffer_(buffer),
        moves_(moves),
        permutations_(permutations),
        count_(candidates.size()),
        layouts_(candidates) {
    Buffer memory = graph.buffers[static_cast<size_t>(buffer)];
    memory.is_input = graph.is_given(buffer);
    memory.memory_of = -1;
    Buffer copy = memory;
    copy.is_input = false;
    copy.offset = 0;
    if (!graph.is_local(buffer)) copy.storage = 0;
    ends_.buffers = {std::move(memory), std::move(copy)};
    // Only position 0 of this dimension carries data. It reads like the layout without it.
    for (const DeviceLayout& layout : candidates) layouts_.push_back(with_lane_dimension(layout));
    std::vector<DeviceLayout> plain = candidates;
    for (const DeviceLayout& layout : layouts_on_the_way(graph, buffer, moves)) {
      if (std::find(plain.begin(), plain.end(), layout) == plain.end()) plain.push_back(layout);
    }
    const auto on_the_way = plain.begin() + static_cast<std::ptrdiff_t>(count_);
    layouts_.insert(layouts_.end(), on_the_way, plain.end());
    plain_end_ = layouts_.size();
    std::transform(on_the_way, plain.end(), std::back_inserter(layouts_), with_lane_dimension);
    std::set<int64_t> interleaved;
    for (const DeviceLayout& layout : plain) {
      if (is_interleaved(layout)) interleaved.insert(layout.stride_map.back());
    }
    for (const int64_t stride : interleaved) {
      for (const DeviceLayout& layout : plain) {
        if (std::optional<DeviceLayout> rows = with_interleaved_rows(layout, stride))
          layouts_.push_back(std::move(*rows));
      }
    }
    for (const DeviceLayout& layout : layouts_) bytes_.push_back(bytes_of(layout));
  }

  // No path is cheaper than a single copy. Permutations of lanes are asked about last, and only where copies alone lead
  // nowhere: each is a search of its own, and three copies at least.
  std::optional<Conversion> cheapest(size_t from, size_t to) {
    if (const Edge* copy = copy_between(from, to)) return Conversion{{{layouts_[to], nullptr}}, copy->bytes};
    std::optional<Conversion> copies = search(from, to, Edges::kCopies);
    return copies ? copies : search(from, to, Edges::kAll);
  }

 private:
  struct Edge {
    int64_t bytes = 0;
    std::shared_ptr<const LanePermutation> lanes;
  };

  // Of `ends_`: the buffer as it is, and a copy of it.
  static constexpr BufferId kMemory = 0, kCopy = 1;
  static constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

  enum class Edges : uint8_t { kCopies, kAll };

  // Dijkstra's search; of equal paths that through the earlier states.
  std::optional<Conversion> search(size_t from, size_t to, Edges edges) {
    int64_t bound = kNever;  // of the best path known
    std::vector<int64_t> cost(layouts_.size(), kNever);
    std::vector<size_t> before(layouts_.size(), from);
    std::vector<bool> done(layouts_.size(), false);
    const auto relax = [&](size_t next, size_t other) {
      const bool arrives = other == to || other == count_ + to;
      const int64_t onward = arrives ? 0 : bytes_[other] + bytes_[to];
      const int64_t limit = std::min(bound - onward, cost[other]);
      const Edge* edge = nullptr;
      if (cost[next] + bytes_[next] + bytes_[other] < limit) edge = copy_between(next, other);
      const bool permutes = edge == nullptr && edges == Edges::kAll;
      if (permutes && cost[next] + least_of_permutation(next, other) < limit) edge = permutation(next, other);
      if (edge == nullptr || cost[next] + edge->bytes >= limit) return;
      cost[other] = cost[next] + edge->bytes;
      before[other] = next;
      if (arrives) bound = cost[other];
    };
    cost[from] = 0;
    relax(from, to);
    while (true) {
      const size_t next = nearest(cost, done);
      if (next == layouts_.size()) return std::nullopt;
      if (next == to || next == count_ + to) return path(from, next, before, cost[next]);
      done[next] = true;
      for (size_t other = 0; other < layouts_.size(); ++other) {
        if (!done[other]) relax(next, other);
      }
    }
  }

  static size_t nearest(const std::vector<int64_t>& cost, const std::vector<bool>& done) {
    size_t best = cost.size();
    for (size_t i = 0; i < cost.size(); ++i) {
      if (!done[i] && cost[i] != kNever && (best == cost.size() || cost[i] < cost[best])) best = i;
    }
    return best;
  }

  Conversion path(size_t from, size_t to, const std::vector<size_t>& before, int64_t bytes) {
    Conversion conversion{.steps = {}, .bytes = bytes};
    for (size_t at = to; at != from; at = before[at]) {
      const Edge* copy = copy_between(before[at], at);
      conversion.steps.insert(conversion.steps.begin(),
                              {layouts_[at], copy != nullptr ? nullptr : permutation(before[at], at)->lanes});
    }
    return conversion;
  }

  using KnownEdges = std::map<std::pair<size_t, size_t>, std::optional<Edge>>;

  template <typename Make>
  static const Edge* remembered(KnownEdges& known, size_t from, size_t to, const Make& make) {
    const auto key = std::make_pair(from, to);
    auto found = known.find(key);
    if (found == known.end()) found = known.emplace(key, make()).first;
    return found->second ? &*found->second : nullptr;
  }

  // Null: the card has no such copy.
  const Edge* copy_between(size_t from, size_t to) {
    return remembered(copies_, from, to, [&]() -> std::optional<Edge> {
      const DeviceLayout &has = layouts_[from], &wanted = layouts_[to];
      if (!may_be_direct(has, wanted) || (interleaves(from, to) && !moves_.interleave)) return std::nullopt;
      const BufferId source = is_memory(from) ? kMemory : kCopy;
      const DeviceNode node = copy_node(ends_, source, kCopy, has, wanted);
      const std::array<const DeviceLayout*, 2> layouts = {&has, &wanted};
      if (!normalize_op(ends_, node, layouts).ok()) return std::nullopt;
      return Edge{bytes_[from] + bytes_[to], nullptr};
    });
  }

  const Edge* permutation(size_t from, size_t to) {
    return remembered(permuted_, from, to, [&]() -> std::optional<Edge> {
      const bool words = layouts_[from].device_dtype != DataFormat::SEN169_FP16;
      const bool allowed = words ? moves_.words : moves_.interleave || !interleaves(from, to);
      if (!allowed || !is_plain(from) || !is_plain(to)) return std::nullopt;
      const PartOf part = is_memory(from) ? PartOf::kMemory : PartOf::kItself;
      std::shared_ptr<const LanePermutation> lanes = permutations_.find(
          graph_.buffers[static_cast<size_t>(buffer_)], layouts_[from], layouts_[to], part);
      if (!lanes) return std::nullopt;
      const int64_t bytes = lanes->bytes;
      return Edge{bytes, std::move(lanes)};
    });
  }

  // An input has its real layout first, of all its storage; whatever follows are layouts of copies.
  bool is_memory(size_t state) const { return state == 0 && ends_.buffers[kMemory].is_input; }

  // Without a dimension for lanes, and with no rows in the order of lanes.
  bool is_plain(size_t state) const { return state < count_ || (state >= 2 * count_ && state < plain_end_); }

  bool interleaves(size_t from, size_t to) const {
    return is_interleaved(layouts_[to]) && !is_interleaved(layouts_[from]);
  }

  // Three copies, of which the two between write and read every element at least.
  int64_t least_of_permutation(size_t from, size_t to) const {
    const int64_t element = kStickBytes.count() / elems_per_stick(layouts_[from].device_dtype);
    return bytes_[from] + bytes_[to] + 4 * element * graph_.buffers[static_cast<size_t>(buffer_)].elements();
  }

  // The card restickifies 16-bit values only: others stay along their dimension. Asked first, because it is quick to tell.
  static bool may_be_direct(const DeviceLayout& from, const DeviceLayout& to) {
    return from.device_dtype == DataFormat::SEN169_FP16 || from.stride_map.back() == to.stride_map.back();
  }

  const DeviceGraph& graph_;
  const BufferId buffer_;
  const LaneMoves moves_;
  LanePermutations& permutations_;
  DeviceGraph ends_;      // without nodes
  const size_t count_;    // of candidates
  size_t plain_end_ = 0;  // of those on the way, which follow the candidates with lanes
  std::vector<DeviceLayout> layouts_;
  std::vector<int64_t> bytes_;
  KnownEdges copies_, permuted_;
};

Conversions::Conversions(const DeviceGraph& graph, const std::vector<std::vector<DeviceLayout>>& candidates,
                         LaneMoves moves)
    : graph_(graph),
      candidates_(candidates),
      moves_(moves),
      permutations_(
          std::max(kMostPermutations, kPermutationsPerBuffer * static_cast<int>(graph.buffers.size()))) {}

Conversions::~Conversions() = default;

const Conversion* Conversions::find(BufferId buffer, int from, int to) {
  const auto key = std::make_pair(buffer, std::make_pair(from, to));
  auto known = known_.find(key);
  if (known == known_.end()) {
    std::unique_ptr<States>& states = states_[buffer];
    if (!states)
      states = std::make_unique<States>(graph_, buffer, candidates_[static_cast<size_t>(buffer)], moves_,
                                        permutations_);
    known = known_.emplace(key, states->cheapest(static_cast<size_t>(from), static_cast<size_t>(to))).first;
  }
  return known->second ? &*known->second : nullptr;
}

}  // namespace spyre
