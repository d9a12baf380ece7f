#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "spyre/graph/graph.h"

namespace spyre {
namespace {

std::string number_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return fmt::format("{}", value);
}

std::string layout_text(const DeviceLayout& layout) {
  return fmt::format(" layout=([{}], [{}], {}, {})", fmt::join(layout.device_size, ", "),
                     fmt::join(layout.stride_map, ", "), to_string(layout.device_dtype),
                     to_string(layout.element_arrangement));
}

std::string buffer_text(const Graph& graph, const Buffer& buffer) {
  std::string text =
      fmt::format("  {} {} : {}[{}] stride=[{}]", buffer.is_input ? "input" : "buffer", buffer.name,
                  to_string(buffer.dtype), fmt::join(buffer.size, ", "), fmt::join(buffer.stride, ", "));
  if (buffer.offset != 0) text += fmt::format(" offset={}", buffer.offset);
  if (buffer.storage != 0) text += fmt::format(" storage={}", buffer.storage);
  if (buffer.memory_of >= 0)
    text += fmt::format(" memory_of={}", graph.buffers[static_cast<size_t>(buffer.memory_of)].name);
  if (buffer.fill) {
    text += fmt::format(" fill=({}, {})", number_text(buffer.fill->start), number_text(buffer.fill->step));
  }
  if (buffer.layout) text += layout_text(*buffer.layout);
  if (buffer.place) {
    text += fmt::format(" {}={}", buffer.place->kind == BufferPlace::Kind::kPool ? "pool" : "lx",
                        buffer.place->offset);
  }
  return text + "\n";
}

std::string loops_text(const std::vector<Loop>& loops) {
  std::string text;
  bool reduced = false;
  for (size_t i = 0; i < loops.size(); ++i) {
    const bool first_reduced = loops[i].reduced && !reduced;
    if (first_reduced) text += i == 0 ? "; " : "; ";
    if (i > 0 && !first_reduced) text += ", ";
    reduced = reduced || loops[i].reduced;
    text += fmt::format("{}: {}", loops[i].name, loops[i].extent);
    if (loops[i].split != 1) text += fmt::format("/{}", loops[i].split);
    if (loops[i].step != 0) text += fmt::format("@{}", loops[i].step);
    if (loops[i].to_split != 1) text += fmt::format("={}@{}", loops[i].to_split, loops[i].to_step);
  }
  return text;
}

// A product says so when its result is wider than its operands.
bool is_widening_product(const Node& node, const Instruction& instruction) {
  if (!is_product(instruction)) return false;
  std::vector<HostType> types;
  for (const int operand : instruction.operands)
    types.push_back(node.body[static_cast<size_t>(operand)].dtype);
  return instruction.dtype != result_type(instruction.op, types);
}

std::string instruction_text(const Graph& graph, const Node& node, const Instruction& instruction) {
  if (instruction.is_load()) {
    return fmt::format("load {}[{}]", graph.buffers[static_cast<size_t>(instruction.buffer)].name,
                       instruction.index.to_string());
  }
  if (instruction.op == "constant") {
    return fmt::format("constant {} : {}", number_text(instruction.value), to_string(instruction.dtype));
  }
  if (instruction.op == "index") {
    return fmt::format("index {} : {}", instruction.index.to_string(), to_string(instruction.dtype));
  }
  std::string text = instruction.op;
  for (const int operand : instruction.operands) text += fmt::format(" v{}", operand);
  if (instruction.op == "to_dtype" || is_widening_product(node, instruction))
    text += fmt::format(" : {}", to_string(instruction.dtype));
  if (!instruction.attributes.empty()) {
    std::vector<std::string> entries;
    for (const auto& [key, value] : instruction.attributes) {
      entries.push_back(fmt::format("{}: {}", key, number_text(value)));
    }
    text += fmt::format(" {{{}}}", fmt::join(entries, ", "));
  }
  return text;
}

std::string quoted_text(std::string_view text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return out + "'";
}

std::string node_text(const Graph& graph, const Node& node) {
  std::string text = fmt::format("  node {} ({})", node.name, loops_text(node.loops));
  if (!node.aten.empty()) text += " aten=" + quoted_text(node.aten);
  if (!node.source.empty()) text += " at=" + quoted_text(node.source);
  if (!node.hints.empty()) {
    std::vector<std::string> entries;
    for (const auto& [loop, split] : node.hints) entries.push_back(fmt::format("{}: {}", loop, split));
    text += fmt::format(" hint={{{}}}", fmt::join(entries, ", "));
  }
  if (node.bundle != 0) text += fmt::format(" bundle={}", node.bundle);
  text += " {\n";
  for (size_t i = 0; i < node.body.size(); ++i) {
    text += fmt::format("    v{} = {}\n", i, instruction_text(graph, node, node.body[i]));
  }
  return text + fmt::format("    store {}[{}] v{}\n  }}\n",
                            graph.buffers[static_cast<size_t>(node.target)].name,
                            node.target_index.to_string(), node.result);
}

}  // namespace

std::string to_text(const Graph& graph) {
  std::string text = fmt::format("graph {} {{\n", graph.name);
  for (const Buffer& buffer : graph.buffers) text += buffer_text(graph, buffer);
  for (const Node& node : graph.nodes) text += node_text(graph, node);
  std::vector<std::string_view> results;
  for (const BufferId id : graph.results) results.push_back(graph.buffers[static_cast<size_t>(id)].name);
  return text + fmt::format("  return {}\n}}\n", fmt::join(results, ", "));
}

}  // namespace spyre
