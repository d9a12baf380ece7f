#include "spyre/passes/layout/assign_layouts.h"

#include <algorithm>

#include "spyre/graph/normal_op.h"
#include "spyre/passes/layout/insert_copies.h"
#include "spyre/passes/layout/layout_candidates.h"
#include "spyre/passes/layout/move_elements.h"
#include "spyre/passes/layout/move_half_words.h"
#include "spyre/passes/layout/pad_steps.h"
#include "spyre/passes/layout/stage_operands.h"
#include "spyre/passes/layout/stage_results.h"
#include "spyre/passes/layout/whole_memory.h"

namespace spyre {
namespace {

// What a reader pays who wants a result as a fresh tensor lies: three copies, as a permutation of lanes takes (an estimate:
// whether anybody does is not known here).
int64_t price_of_unusual(const Buffer& result) {
  const auto usual = DeviceLayout::standard(result.size, result.layout->device_dtype);
  if (result.is_input || !usual.ok() || *result.layout == usual.value()) return 0;
  return 3 * (bytes_of(*result.layout) + bytes_of(usual.value()));
}

// Device bytes that all nodes read and write, and those that results cost later.
int64_t price_of(const DeviceGraph& graph) {
  int64_t bytes = 0;
  for (const DeviceNode& node : graph.nodes) {
    for (const DeviceLayout* layout : operand_layouts(graph, node)) bytes += bytes_of(*layout);
  }
  for (const BufferId id : graph.results) bytes += price_of_unusual(graph.buffers[static_cast<size_t>(id)]);
  return bytes;
}

Result<DeviceGraph> laid_out(DeviceGraph graph, const LayoutSearchOptions& options, LaneMoves moves) {
  SPYRE_ASSIGN_OR_RETURN(const auto candidates, layout_candidates(graph, moves));
  const DeviceGraph before = graph;
  Conversions conversions(before, candidates, moves);
  SPYRE_ASSIGN_OR_RETURN(const LayoutChoice choice, choose_layouts(before, candidates, conversions, options));
  insert_copies(graph, candidates, conversions, choice);
  return graph;
}

// The cheapest way found so far to write a graph with layouts.
class CheapestWay {
 public:
  explicit CheapestWay(const LayoutSearchOptions& options) : options_(options) {}

  void consider(const std::optional<DeviceGraph>& graph, LaneMoves moves) {
    if (!graph) return;
    Result<DeviceGraph> found = laid_out(*graph, options_, moves);
    if (!found.ok()) return;
    const int64_t price = price_of(found.value());
    if (best_ && price >= price_) return;
    best_ = std::move(found).value();
    price_ = price;
  }

  std::optional<DeviceGraph>& best() { return best_; }

 private:
  const LayoutSearchOptions& options_;
  std::optional<DeviceGraph> best_;
  int64_t price_ = 0;
};

}  // namespace

Status assign_layouts(DeviceGraph& graph, const LayoutSearchOptions& options) {
  // Nearly every graph has a choice whose copies are single operations of the card, and where there is one, none that
  // moves lanes was ever cheaper (ADR 0049); to look at both takes twenty times as long. Interleaving 16-bit values comes
  // next: it costs half of what moving 32-bit ones does.
  const LaneMoves useful = useful_moves(graph);
  std::optional<Error> refused;
  for (const LaneMoves moves : {LaneMoves{}, LaneMoves{.interleave = useful.interleave}}) {
    if (refused && moves == LaneMoves{}) break;
    Result<DeviceGraph> found = laid_out(graph, options, moves);
    if (found.ok()) {
      graph = std::move(found).value();
      return Status();
    }
    if (!refused) refused = found.error();
  }
  CheapestWay ways(options);
  if (useful.words) ways.consider(graph, useful);
  // Copies may be written otherwise: along whole steps, and as copies of half-words.
  const std::optional<DeviceGraph> half_words = in_half_words(graph);
  ways.consider(half_words, {});
  const std::optional<DeviceGraph> stepped = pad_steps(graph);
  ways.consider(stepped, {});
  if (!ways.best() && stepped && useful != LaneMoves{}) ways.consider(stepped, useful);
  if (half_words) ways.consider(pad_steps(*half_words), {});
  for (const std::optional<DeviceGraph>& copies : {std::optional(graph), half_words}) {
    const std::optional<DeviceGraph> elements = copies ? by_elements(*copies) : std::nullopt;
    if (!elements) continue;
    for (const std::optional<DeviceGraph>& way : {elements, in_half_words(*elements)}) {
      ways.consider(way, {});
      if (way) ways.consider(pad_steps(*way), {});
    }
  }
  if (ways.best()) {
    graph = std::move(*ways.best());
    return Status();
  }
  if (std::optional<DeviceGraph> whole = with_whole_memory(graph);
      whole && assign_layouts(*whole, options).ok()) {
    see_in_part(*whole, graph);
    graph = std::move(*whole);
    return Status();
  }
  for (const auto& stage : {stage_results, stage_operands}) {
    std::optional<StagedGraph> staged = stage(graph);
    if (!staged || !assign_layouts(staged->copied, options).ok() ||
        !assign_layouts(staged->computed, options).ok())
      continue;
    graph = joined(graph, std::move(*staged));
    return Status();
  }
  return *refused;
}

}  // namespace spyre
