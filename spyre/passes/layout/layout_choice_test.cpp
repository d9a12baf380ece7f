#include "spyre/passes/layout/layout_choice.h"

#include <gmock/gmock.h>

#include <limits>
#include <random>

#include "spyre/graph/normal_op.h"
#include "spyre/passes/layout/layout_candidates.h"
#include "spyre/passes/select/select_ops.h"

namespace spyre {
namespace {

constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

// Sums and products of square matrices, read as they are or transposed, in any order and often twice.
DeviceGraph random_graph(std::mt19937& random, int nodes) {
  const std::string type = " : float16[128, 128] stride=[128, 1]\n";
  std::string text = "graph g {\n  input x0" + type + "  input x1" + type;
  for (int n = 2; n < nodes + 2; ++n) text += "  buffer x" + std::to_string(n) + type;
  for (int n = 2; n < nodes + 2; ++n) {
    const auto operand = [&] {
      const std::string name = "x" + std::to_string(random() % static_cast<unsigned>(n));
      return name + (random() % 2 == 0 ? "[128*p0 + p1]" : "[p0 + 128*p1]");
    };
    text += "  node x" + std::to_string(n) + " (p0: 128, p1: 128) {\n    v0 = load " + operand() +
            "\n    v1 = load " + operand() + "\n    v2 = " + (random() % 2 == 0 ? "add" : "mul") +
            " v0 v1\n    store x" + std::to_string(n) + "[128*p0 + p1] v2\n  }\n";
  }
  return parse_device_graph(text + "  return x" + std::to_string(nodes + 1) + "\n}\n").value();
}

// Every layout of every buffer, every set of copies: no order of nodes, no states, nothing pruned.
class EveryChoice {
 public:
  EveryChoice(const DeviceGraph& graph, const std::vector<std::vector<DeviceLayout>>& candidates)
      : graph_(graph), candidates_(candidates), conversions_(graph, candidates), layout_(candidates.size()) {}

  int64_t least(size_t buffer = 0) {
    if (buffer == layout_.size()) return cost();
    int64_t best = kNever;
    const bool given = graph_.buffers[buffer].is_input;
    for (size_t l = 0; l < (given ? 1 : candidates_[buffer].size()); ++l) {
      layout_[buffer] = l;
      best = std::min(best, least(buffer + 1));
    }
    return best;
  }

 private:
  int64_t cost() {
    int64_t total = 0;
    for (size_t b = 0; b < layout_.size(); ++b) {
      if (!graph_.buffers[b].is_input) total += bytes_of(candidates_[b][layout_[b]]);
      const int64_t copies = cheapest_copies(b);
      if (copies == kNever) return kNever;
      total += copies;
    }
    return total;
  }

  int64_t cheapest_copies(size_t buffer) {
    int64_t best = kNever;
    for (unsigned set = 0; set < 1U << candidates_[buffer].size(); ++set) {
      int64_t bytes = 0;
      for (size_t l = 0; l < candidates_[buffer].size() && bytes != kNever; ++l) {
        if ((set >> l & 1) == 0) continue;
        const Conversion* made = conversions_.find(static_cast<BufferId>(buffer),
                                                   static_cast<int>(layout_[buffer]), static_cast<int>(l));
        bytes = made == nullptr ? kNever : bytes + made->bytes;
      }
      if (bytes < best && serves_all(buffer, set | 1U << layout_[buffer])) best = bytes;
    }
    return best;
  }

  bool serves_all(size_t buffer, unsigned layouts) const {
    for (const DeviceNode& node : graph_.nodes) {
      const DeviceOp& op = node.op;
      const auto out = static_cast<size_t>(op.output.buffer);
      for (size_t i = 0; i < op.inputs.size(); ++i) {
        if (static_cast<size_t>(op.inputs[i].buffer) != buffer) continue;
        bool served = false;
        for (size_t l = 0; l < candidates_[buffer].size(); ++l) {
          if ((layouts >> l & 1) == 0) continue;
          std::vector<const DeviceLayout*> seen(op.inputs.size() + 1, nullptr);
          seen[i] = &candidates_[buffer][l];
          seen.back() = &candidates_[out][layout_[out]];
          served = served || normalize_op(graph_, node, seen).ok();
        }
        if (!served) return false;
      }
    }
    return true;
  }

  const DeviceGraph& graph_;
  const std::vector<std::vector<DeviceLayout>>& candidates_;
  Conversions conversions_;
  std::vector<size_t> layout_;
};

TEST(LayoutChoice, MovesAsFewBytesAsTheBestOfAllChoices) {
  std::mt19937 random(11);
  int with_copies = 0;
  for (int round = 0; round < 60; ++round) {
    const DeviceGraph graph = random_graph(random, 2 + round % 3);
    const auto candidates = layout_candidates(graph).value();
    Conversions conversions(graph, candidates);
    const LayoutChoice choice = choose_layouts(graph, candidates, conversions).value();
    EXPECT_EQ(choice.bytes, EveryChoice(graph, candidates).least()) << to_text(graph);
    with_copies += choice.bytes > static_cast<int64_t>(graph.nodes.size()) * 128 * 128 * 2;
  }
  EXPECT_GT(with_copies, 20);  // or the graphs would prove nothing
}

TEST(LayoutChoice, OneCopyServesAllItsReaders) {
  const std::string type = " : float16[128, 128] stride=[128, 1]\n";
  std::string text = "graph g {\n  input x" + type + "  input y" + type;
  for (const char* name : {"a", "b"}) text += "  buffer " + std::string(name) + type;
  for (const char* name : {"a", "b"}) {
    text += "  node " + std::string(name) +
            " (p0: 128, p1: 128) {\n    v0 = load x[p0 + 128*p1]\n    v1 = load y[128*p0 + p1]\n"
            "    v2 = add v0 v1\n    store " +
            name + "[128*p0 + p1] v2\n  }\n";
  }
  const DeviceGraph graph = parse_device_graph(text + "  return a, b\n}\n").value();
  const auto candidates = layout_candidates(graph).value();
  Conversions conversions(graph, candidates);
  const LayoutChoice choice = choose_layouts(graph, candidates, conversions).value();
  const int64_t matrix = 128 * 128 * 2;
  EXPECT_EQ(choice.bytes, 2 * matrix /* a and b */ + 2 * matrix /* one copy, read and written */);
}

}  // namespace
}  // namespace spyre
