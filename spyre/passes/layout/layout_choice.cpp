#include "spyre/passes/layout/layout_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <span>

#include "spyre/base/text.h"
#include "spyre/graph/normal_op.h"
#include "spyre/passes/layout/part_of_buffer.h"
#include "spyre/passes/select/pad_contractions.h"

namespace spyre {
namespace {

// One way for a node to read an operand.
struct Reading {
  int as = -1;       // candidate the node reads
  int64_t cost = 0;  // of the copy; nothing where the buffer has this layout, or a copy was made before
};

// More than the bytes of any graph: chosen only where nothing else is possible, and inputs are no better.
constexpr int64_t kLastResort = int64_t{1} << 48;

// Whether sticks of 32-bit elements run along another dimension than the innermost one. The card restickifies 16-bit
// elements only: who reads such a result beside another tensor has to permute its lanes first (permute_lanes.h).
bool cannot_be_restickified(const Buffer& buffer, const DeviceLayout& layout) {
  if (elems_per_stick(layout.device_dtype) >= elems_per_stick(DataFormat::SEN169_FP16)) return false;
  for (size_t d = 0; d < buffer.size.size(); ++d) {
    const bool inner =
        buffer.size[d] > 1 && buffer.stride[d] > 0 && buffer.stride[d] < layout.stride_map.back();
    if (inner) return true;
  }
  return false;
}

// What one node costs, for every layout of its output and of each operand.
class NodeTable {
 public:
  NodeTable(const DeviceGraph& graph, const DeviceNode& node,
            const std::vector<std::vector<DeviceLayout>>& candidates, Conversions& conversions,
            const LayoutSearchOptions& options)
      : graph_(graph),
        node_(node),
        of_copies_(reading_copies(graph, node)),
        op_(node.op),
        zeros_behind_left_(sums_part_of_stick(node) != nullptr),
        candidates_(candidates),
        conversions_(conversions),
        copies_(options.copies) {
    for_each_read(op_, [&](const Access& access) {
      operands_.push_back(access.buffer);
      const Buffer& read = graph.buffers[static_cast<size_t>(access.buffer)];
      copyable_.push_back(!graph.is_given(access.buffer) ||
                          keeps_to_dimensions(read, access.index, node.loops));
    });
    const size_t outputs = layouts_of(op_.output.buffer).size();
    alone_.assign(outputs, -1);
    fits_.resize(operands_.size());
    for (size_t i = 0; i < operands_.size(); ++i) {
      fits_[i].assign(outputs, std::vector<int8_t>(layouts_of(operands_[i]).size(), -1));
    }
  }

  const std::vector<BufferId>& operands() const { return operands_; }
  BufferId output() const { return op_.output.buffer; }

  bool possible(int out) {
    int8_t& known = alone_[static_cast<size_t>(out)];
    if (known < 0) known = check(out, std::nullopt, 0) ? 1 : 0;
    return known == 1;
  }

  // The ways for operand i, which lies in candidate `has` and was copied to others before, to be read for
  // this output: as it is, or else every copy that fits.
  std::vector<Reading> readings(int out, size_t i, int has, std::span<const int> copies) {
    const bool constant = graph_.buffers[static_cast<size_t>(operands_[i])].fill.has_value();
    std::vector<Reading> found;
    if (!constant && fits(out, i, has)) return {{has, 0}};
    if (zeros_must_stay(i) || ((!copies_ || !copyable_[i]) && !constant)) return {};
    for (const int as : copies) {
      if (fits(out, i, as)) return {{as, 0}};
    }
    for (int as = 0; as < static_cast<int>(layouts_of(operands_[i]).size()); ++as) {
      if (!fits(out, i, as)) continue;
      if (constant) return {{as, 0}};  // made in any layout, once
      if (const Conversion* conversion = conversions_.find(operands_[i], has, as))
        found.push_back({as, conversion->bytes});
    }
    return found;
  }

  // Why nothing fits, for the error message.
  std::vector<std::string> reasons() const {
    std::vector<std::string> notes;
    const std::vector<DeviceLayout>& outs = layouts_of(op_.output.buffer);
    for (size_t out = 0; out < outs.size(); ++out) {
      for (size_t i = 0; i < operands_.size(); ++i) {
        const auto layouts = layouts_with(static_cast<int>(out), i, 0);
        const auto normal = normalize_op(graph_, node_, layouts);
        if (normal.ok()) continue;
        notes.push_back(fmt::format("'{}' {} with output {}: {}",
                                    graph_.buffers[static_cast<size_t>(operands_[i])].name,
                                    list_text(layouts_of(operands_[i])[0].device_size),
                                    list_text(outs[out].device_size), normal.error().message));
        if (notes.size() >= 6) return notes;
      }
    }
    return notes;
  }

 private:
  const std::vector<DeviceLayout>& layouts_of(BufferId id) const {
    return candidates_[static_cast<size_t>(id)];
  }

  std::vector<const DeviceLayout*> layouts_with(int out, std::optional<size_t> operand, int as) const {
    std::vector<const DeviceLayout*> layouts(operands_.size() + 1, nullptr);
    layouts.back() = &layouts_of(op_.output.buffer)[static_cast<size_t>(out)];
    if (operand) layouts[*operand] = &layouts_of(operands_[*operand])[static_cast<size_t>(as)];
    return layouts;
  }

  // An input that is a view starts where it starts in the first of its layouts only: copies of it start with it.
  static DeviceNode reading_copies(const DeviceGraph& graph, DeviceNode node) {
    for_each_read(node.op, [&](Access& access) {
      access.index = access.index + Expr::constant(-graph.buffers[static_cast<size_t>(access.buffer)].offset);
    });
    return node;
  }

  bool check(int out, std::optional<size_t> operand, int as) const {
    const DeviceNode& node = operand && as > 0 ? of_copies_ : node_;
    return normalize_op(graph_, node, layouts_with(out, operand, as)).ok();
  }

  // The left operand of a product that sums part of a stick has zeros behind what it sums
  // (pad_contractions.h); a restickify would leave there what was there before.
  bool zeros_must_stay(size_t operand) const { return zeros_behind_left_ && operand == op_.indices.size(); }

  bool fits(int out, size_t i, int as) {
    int8_t& known = fits_[i][static_cast<size_t>(out)][static_cast<size_t>(as)];
    if (known < 0) known = check(out, i, as) ? 1 : 0;
    return known == 1;
  }

  const DeviceGraph& graph_;
  const DeviceNode& node_;
  const DeviceNode of_copies_;
  const DeviceOp& op_;
  const bool zeros_behind_left_;
  const std::vector<std::vector<DeviceLayout>>& candidates_;
  Conversions& conversions_;
  const bool copies_;
  std::vector<BufferId> operands_;
  std::vector<bool> copyable_;                          // by operand: a copy holds all that is read
  std::vector<int8_t> alone_;                           // -1 not asked yet
  std::vector<std::vector<std::vector<int8_t>>> fits_;  // operand, output, candidate
};

// By buffer, which of its candidates can be part of a choice at all: each that a node may write must leave every operand
// some layout to be read from, and each that is read some output to be read for. Seen from one node at a time, so what is
// left need not fit together; but a search among what is left meets few dead ends.
class Domains {
 public:
  Domains(const DeviceGraph& graph, const std::vector<std::vector<DeviceLayout>>& candidates,
          Conversions& conversions, const LayoutSearchOptions& options)
      : graph_(graph) {
    for (size_t id = 0; id < candidates.size(); ++id) {
      const bool given = graph.is_given(static_cast<BufferId>(id));  // in the first of its candidates
      allowed_.emplace_back(given ? 1 : candidates[id].size(), true);
    }
    std::vector<NodeTable> tables;
    tables.reserve(graph.nodes.size());
    for (const DeviceNode& node : graph.nodes)
      tables.emplace_back(graph, node, candidates, conversions, options);
    for (bool changed = true; changed && possible_;) {
      changed = false;
      for (NodeTable& table : tables) changed |= narrow(table);
      for (auto table = tables.rbegin(); table != tables.rend(); ++table) changed |= narrow(*table);
    }
  }

  // False: some buffer has no layout left.
  bool possible() const { return possible_; }
  bool allows(BufferId id, int layout) const {
    const std::vector<bool>& of = allowed_[static_cast<size_t>(id)];
    return static_cast<size_t>(layout) >= of.size() || of[static_cast<size_t>(layout)];
  }

 private:
  bool narrow(NodeTable& table) {
    bool changed = keep(table.output(), [&](int out) { return table.possible(out) && readable(table, out); });
    for (size_t i = 0; i < table.operands().size(); ++i) {
      if (graph_.buffers[static_cast<size_t>(table.operands()[i])].fill) continue;  // made as it is needed
      changed |= keep(table.operands()[i], [&](int has) {
        return any(table.output(), [&](int out) { return !table.readings(out, i, has, {}).empty(); });
      });
    }
    return changed;
  }

  bool readable(NodeTable& table, int out) const {
    for (size_t i = 0; i < table.operands().size(); ++i) {
      if (!any(table.operands()[i], [&](int has) { return !table.readings(out, i, has, {}).empty(); }))
        return false;
    }
    return true;
  }

  template <typename Test>
  bool any(BufferId id, const Test& test) const {
    const std::vector<bool>& of = allowed_[static_cast<size_t>(id)];
    for (size_t layout = 0; layout < of.size(); ++layout) {
      if (of[layout] && test(static_cast<int>(layout))) return true;
    }
    return false;
  }

  // Drops what fails the test; true if anything did.
  template <typename Test>
  bool keep(BufferId id, const Test& test) {
    std::vector<bool>& of = allowed_[static_cast<size_t>(id)];
    bool changed = false, left = false;
    for (size_t layout = 0; layout < of.size(); ++layout) {
      if (!of[layout]) continue;
      of[layout] = test(static_cast<int>(layout));
      changed |= !of[layout];
      left |= of[layout];
    }
    possible_ &= left;
    return changed;
  }

  const DeviceGraph& graph_;
  std::vector<std::vector<bool>> allowed_;
  bool possible_ = true;
};

// The steps that led to a state, newest first; shared between states.
struct Step {
  std::shared_ptr<const Step> before;
  int node;
  int out;
  std::vector<int> read_as;
};

// A layout that a buffer has, or that a copy of it was made in.
struct HeldLayout {
  BufferId buffer;
  bool copy;
  int layout;
  friend auto operator<=>(const HeldLayout&, const HeldLayout&) = default;
};

// What later nodes may still ask for, in ascending order. Not the layouts of inputs, which nobody chooses.
using Live = std::vector<HeldLayout>;

struct State {
  int64_t cost = 0;
  Live live;
  std::shared_ptr<const Step> steps;
};

class BeamSearch {
 public:
  BeamSearch(const DeviceGraph& graph, const std::vector<std::vector<DeviceLayout>>& candidates,
             Conversions& conversions, const LayoutSearchOptions& options, const Domains* domains)
      : graph_(graph),
        candidates_(candidates),
        conversions_(conversions),
        options_(options),
        domains_(domains),
        last_use_(graph.buffers.size(), -1) {
    for (size_t n = 0; n < graph.nodes.size(); ++n) {
      const DeviceOp& op = graph.nodes[n].op;
      for (const auto& [name, access] : op.indices) note_use(access.buffer, n);
      for (const Access& access : op.inputs) note_use(access.buffer, n);
      note_use(op.output.buffer, n);
    }
  }

  Result<LayoutChoice> run() {
    std::vector<State> states(1);
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      NodeTable table(graph_, graph_.nodes[n], candidates_, conversions_, options_);
      std::map<Live, State> next;
      for (const State& state : states) extend(state, static_cast<int>(n), table, next);
      if (next.empty()) return impossible(graph_.nodes[n], table);
      states.clear();
      for (auto& [live, state] : next) states.push_back(std::move(state));
      std::stable_sort(states.begin(), states.end(),
                       [](const State& a, const State& b) { return a.cost < b.cost; });
      if (states.size() > options_.beam_width) states.resize(options_.beam_width);
    }
    const State& best = states.front();
    if (best.cost >= kLastResort && !reads_what_cannot_be_restickified()) {
      if (const DeviceNode* copy = copy_that_cannot_be_restickified(best)) return not_restickified(*copy);
    }
    return choice_of(best);
  }

 private:
  void note_use(BufferId id, size_t node) { last_use_[static_cast<size_t>(id)] = static_cast<int>(node); }

  // The layout that a buffer has: an input's, or what was chosen when an earlier node began to fill it.
  std::optional<int> layout_of(const State& state, BufferId id) const {
    if (graph_.is_given(id)) return 0;
    const auto found = std::lower_bound(state.live.begin(), state.live.end(), HeldLayout{id, false, 0});
    if (found == state.live.end() || found->buffer != id || found->copy) return std::nullopt;
    return found->layout;
  }

  static std::vector<int> copies_of(const State& state, BufferId id) {
    std::vector<int> copies;
    auto held = std::lower_bound(state.live.begin(), state.live.end(), HeldLayout{id, true, 0});
    for (; held != state.live.end() && held->buffer == id; ++held) copies.push_back(held->layout);
    return copies;
  }

  void extend(const State& state, int node, NodeTable& table, std::map<Live, State>& next) {
    const BufferId output = table.output();
    if (const std::optional<int> fixed = layout_of(state, output)) {
      if (table.possible(*fixed)) extend_with(state, node, table, *fixed, true, next);
      return;
    }
    const int outputs = static_cast<int>(candidates_[static_cast<size_t>(output)].size());
    for (int out = 0; out < outputs; ++out) {
      const bool allowed = domains_ == nullptr || domains_->allows(output, out);
      if (allowed && table.possible(out)) extend_with(state, node, table, out, false, next);
    }
  }

  void extend_with(const State& state, int node, NodeTable& table, int out, bool out_exists,
                   std::map<Live, State>& next) {
    const BufferId output = table.output();
    State extended{.cost = state.cost, .live = {}, .steps = {}};
    if (!out_exists)
      extended.cost += bytes_of(candidates_[static_cast<size_t>(output)][static_cast<size_t>(out)]);
    // Whoever reads a result next wants the standard order; conversions to it do not exist.
    const DeviceLayout& chosen = candidates_[static_cast<size_t>(output)][static_cast<size_t>(out)];
    if (!out_exists && graph_.is_result(output) &&
        chosen.element_arrangement != ElementArrangement::STANDARD) {
      extended.cost += bytes_of(chosen);
    }
    const Buffer& made = graph_.buffers[static_cast<size_t>(output)];
    if (!out_exists && graph_.is_result(output) && cannot_be_restickified(made, chosen))
      extended.cost += kLastResort;
    read_operands(state, extended, node, table, out, {}, next);
  }

  // Every way to read the operands from here on; `read_as` says how those before are read.
  void read_operands(const State& before, const State& so_far, int node, NodeTable& table, int out,
                     std::vector<int> read_as, std::map<Live, State>& next) {
    const size_t i = read_as.size();
    if (i == table.operands().size())
      return finish(before, so_far, node, table, out, std::move(read_as), next);
    const BufferId id = table.operands()[i];
    std::vector<int> copies = copies_of(before, id);
    for (size_t j = 0; j < i; ++j) {
      if (table.operands()[j] == id) copies.push_back(read_as[j]);
    }
    read_as.push_back(-1);
    for (const Reading& reading : table.readings(out, i, layout_of(before, id).value_or(0), copies)) {
      read_as.back() = reading.as;
      State extended = so_far;
      extended.cost += reading.cost;
      read_operands(before, extended, node, table, out, read_as, next);
    }
  }

  void finish(const State& before, State extended, int node, NodeTable& table, int out,
              std::vector<int> read_as, std::map<Live, State>& next) {
    extended.live = still_live(before, node, table, out, read_as);
    extended.steps = std::make_shared<Step>(Step{before.steps, node, out, std::move(read_as)});
    auto [known, inserted] = next.try_emplace(extended.live, extended);
    if (!inserted && extended.cost < known->second.cost) known->second = std::move(extended);
  }

  // What was live, with the output and the copies made for this node, and without what no later node touches.
  // Copies of what is written now are out of date.
  Live still_live(const State& before, int node, const NodeTable& table, int out,
                  const std::vector<int>& read_as) const {
    const BufferId output = table.output();
    Live live = before.live;
    for (size_t i = 0; i < read_as.size(); ++i) {
      const BufferId id = table.operands()[i];
      const bool constant = graph_.buffers[static_cast<size_t>(id)].fill.has_value();
      if (!constant && read_as[i] != layout_of(before, id).value_or(0))
        live.push_back({id, true, read_as[i]});
    }
    std::erase_if(live, [&](const HeldLayout& held) {
      return last_use_[static_cast<size_t>(held.buffer)] <= node || held.buffer == output;
    });
    const bool chosen = !graph_.is_given(output);
    if (chosen && last_use_[static_cast<size_t>(output)] > node) live.push_back({output, false, out});
    std::sort(live.begin(), live.end());
    live.erase(std::unique(live.begin(), live.end()), live.end());
    return live;
  }

  LayoutChoice choice_of(const State& best) const {
    LayoutChoice choice{.layout = std::vector<int>(graph_.buffers.size(), -1),
                        .bytes = best.cost % kLastResort};
    choice.read_as.resize(graph_.nodes.size());
    for (const Step* step = best.steps.get(); step != nullptr; step = step->before.get()) {
      const DeviceNode& node = graph_.nodes[static_cast<size_t>(step->node)];
      choice.layout[static_cast<size_t>(node.op.output.buffer)] = step->out;
      choice.read_as[static_cast<size_t>(step->node)] = step->read_as;
    }
    for (size_t id = 0; id < graph_.buffers.size(); ++id) {
      if (graph_.is_given(static_cast<BufferId>(id))) choice.layout[id] = 0;
    }
    return choice;
  }

  // What is read in such a layout may be made in one, too.
  bool reads_what_cannot_be_restickified() const {
    return std::any_of(graph_.buffers.begin(), graph_.buffers.end(), [](const Buffer& buffer) {
      return buffer.is_input && buffer.layout && cannot_be_restickified(buffer, *buffer.layout);
    });
  }

  // The first copy that makes such a result, if any. What is computed in such a layout can only be had in it.
  const DeviceNode* copy_that_cannot_be_restickified(const State& best) const {
    const DeviceNode* found = nullptr;
    for (const Step* step = best.steps.get(); step != nullptr; step = step->before.get()) {
      const DeviceNode& node = graph_.nodes[static_cast<size_t>(step->node)];
      const auto id = static_cast<size_t>(node.op.output.buffer);
      const DeviceLayout& layout = candidates_[id][static_cast<size_t>(step->out)];
      if (!graph_.is_result(node.op.output.buffer) || !cannot_be_restickified(graph_.buffers[id], layout))
        continue;
      if (node.op.op == OpId::identity) found = &node;
    }
    return found;
  }

  // A kernel of its own can move what this graph cannot.
  static Error not_restickified(const DeviceNode& copy) {
    Error error = refused(copy);
    error.notes.emplace_back(
        "its 32-bit result would have sticks that do not run along rows, which nobody can restickify");
    return error;
  }

  static Error refused(const DeviceNode& node) {
    return Error(ErrorKind::kUnsupported,
                 fmt::format("assign-layouts: node '{}' ({}) cannot be laid out on the card", node.name,
                             to_string(node.op.op)))
        .about(origin_of(node));
  }

  Error impossible(const DeviceNode& node, const NodeTable& table) const {
    Error error = refused(node);
    for (const std::string& reason : table.reasons()) error.notes.push_back(reason);
    return std::move(error).try_instead(
        "sizes that are multiples of 64 along the last dimension, or a .contiguous() before the operation");
  }

  const DeviceGraph& graph_;
  const std::vector<std::vector<DeviceLayout>>& candidates_;
  Conversions& conversions_;
  const LayoutSearchOptions& options_;
  const Domains* domains_;  // null: every candidate is tried
  std::vector<int> last_use_;
};

}  // namespace

Result<LayoutChoice> choose_layouts(const DeviceGraph& graph,
                                    const std::vector<std::vector<DeviceLayout>>& candidates,
                                    Conversions& conversions, const LayoutSearchOptions& options) {
  Result<LayoutChoice> choice = BeamSearch(graph, candidates, conversions, options, nullptr).run();
  if (choice.ok()) return choice;
  // The beam keeps what is cheap so far, and that may end in nothing. Without what cannot lead anywhere it sees more.
  const Domains domains(graph, candidates, conversions, options);
  if (!domains.possible()) return choice;
  Result<LayoutChoice> again = BeamSearch(graph, candidates, conversions, options, &domains).run();
  return again.ok() ? again : choice;
}

}  // namespace spyre
