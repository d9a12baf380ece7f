#include "spyre/lx/place_writer.h"

#include <algorithm>
#include <limits>

#include "spyre/lx/copies.h"

namespace spyre::lx {
namespace {

class PlaceWriter {
 public:
  PlaceWriter(DeviceGraph& graph, const GraphAccess& access) : graph_(graph), access_(access) {}

  void add(BufferId id, const Residency& residency, Bytes address, const std::vector<Bytes>& copies) {
    const BufferPlace place{BufferPlace::Kind::kLx, address.count()};
    basis_ = whole_touch(graph_, access_, id);
    // What device memory has too is two buffers from here on: the one everybody knows, and its twin in LX.
    BufferId source = id;
    if (residency.clone || residency.copied_out) {
      source = twin(id, place);
      for (const BufferTouch& touch : residency.direct) redirect(touch, source);
    } else {
      graph_.buffers[static_cast<size_t>(id)].place = place;
    }
    size_t first = std::numeric_limits<size_t>::max(), last_write = 0;
    for (const BufferTouch& touch : residency.direct) {
      first = std::min(first, touch.node);
      if (touch.writes) last_write = touch.node;
    }
    for (const Relayout& relayout : residency.relayouts)
      first = std::min(first, relayout.readers.front().node);
    if (residency.clone) insert(first, 1, id, source, residency.view, residency.view);
    if (residency.copied_out) insert(last_write + 1, 0, source, id, residency.view, residency.view);
    for (size_t i = 0; i < residency.relayouts.size(); ++i) {
      const Relayout& relayout = residency.relayouts[i];
      const BufferId copy = twin(id, {BufferPlace::Kind::kLx, copies[i].count()});
      for (const BufferTouch& touch : relayout.readers) redirect(touch, copy);
      insert(relayout.readers.front().node, 2, source, copy, residency.view, relayout.view);
    }
  }

  // Nodes are inserted from the last to the first, so that positions before them stay what they were; readers are
  // redirected before, while touches still name the nodes they are about.
  void finish() {
    std::stable_sort(inserts_.begin(), inserts_.end(), [](const Insert& a, const Insert& b) {
      return std::pair(a.before, a.rank) < std::pair(b.before, b.rank);
    });
    for (const auto& [touch, buffer] : redirects_) rewrite(touch, buffer);
    for (auto insert = inserts_.rbegin(); insert != inserts_.rend(); ++insert) {
      graph_.nodes.insert(graph_.nodes.begin() + static_cast<std::ptrdiff_t>(insert->before),
                          std::move(insert->node));
    }
  }

 private:
  struct Insert {
    size_t before;  // in the order of nodes before any was inserted
    int rank;       // among those before the same node: copies out, copies in, shuffles
    DeviceNode node;
  };

  BufferId twin(BufferId id, BufferPlace place) {
    Buffer buffer = graph_.buffers[static_cast<size_t>(id)];
    buffer.name += "_lx";
    buffer.value_of = kFixed;  // a copy is not what the caller passes
    buffer.is_input = false;
    buffer.offset = 0;
    if (!graph_.is_local(id)) buffer.storage = read_past_end(id);
    buffer.place = place;
    return graph_.add_buffer(std::move(buffer));
  }

  // An input may be a view into a larger storage, and be read there: then the elements up to the last one, else 0.
  int64_t read_past_end(BufferId id) const {
    int64_t end = 0;
    for (const DeviceNode& node : graph_.nodes) {
      for_each_read(node.op, [&](const Access& access) {
        if (access.buffer == id) end = std::max(end, range_of(access.index, node.loops).high + 1);
      });
    }
    return end > graph_.buffers[static_cast<size_t>(id)].reach() ? end : 0;
  }

  void redirect(const BufferTouch& touch, BufferId buffer) { redirects_.emplace_back(touch, buffer); }

  void insert(size_t before, int rank, BufferId from, BufferId to, const CoreView& from_view,
              const CoreView& to_view) {
    auto node = divided_copy(graph_, access_, *basis_, from, to, from_view, to_view);
    SPYRE_CHECK(node.has_value(), "a planned copy can be divided");
    node->bundle = graph_.nodes[rank == 0 ? before - 1 : before].bundle;  // with whom it is made for
    inserts_.push_back({before, rank, *std::move(node)});
  }

  void rewrite(const BufferTouch& touch, BufferId buffer) {
    DeviceOp& op = graph_.nodes[touch.node].op;
    if (touch.writes) {
      op.output.buffer = buffer;
    } else {
      op.inputs[touch.operand - op.indices.size()].buffer = buffer;
    }
  }

  DeviceGraph& graph_;
  const GraphAccess& access_;
  const BufferTouch* basis_ = nullptr;  // of the buffer being added
  std::vector<Insert> inserts_;
  std::vector<std::pair<BufferTouch, BufferId>> redirects_;
};

}  // namespace

void write_places(DeviceGraph& graph, const GraphAccess& access, const AllocationProblem& allocation,
                  const solve::Placement& placement) {
  PlaceWriter writer(graph, access);
  for (size_t i = 0; i < allocation.candidates.size(); ++i) {
    const auto& [holding, relayout] = allocation.candidates[i];
    if (relayout >= 0 || !placement.offset[i]) continue;
    const auto& [id, request, residency] = allocation.holdings[holding];
    std::vector<Bytes> copies;
    for (size_t r = 0; r < residency.relayouts.size(); ++r) copies.push_back(*placement.offset[i + 1 + r]);
    writer.add(id, residency, *placement.offset[i], copies);
  }
  writer.finish();
}

}  // namespace spyre::lx
