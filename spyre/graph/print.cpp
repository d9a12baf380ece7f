#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "spyre/graph/device_graph.h"
#include "spyre/graph/graph.h"

namespace spyre {
namespace {

std::string number_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return fmt::format("{}", value);
}

std::string quoted_text(std::string_view text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return out + "'";
}

std::string layout_text(const DeviceLayout& layout) {
  return fmt::format(" layout=([{}], [{}], {}, {})", fmt::join(layout.device_size, ", "),
                     fmt::join(layout.stride_map, ", "), to_string(layout.device_dtype),
                     to_string(layout.element_arrangement));
}

std::string extent_text(const Extent& extent) {
  const std::string source = extent.source.empty() ? "" : " of=" + quoted_text(extent.source);
  const std::string room = extent.capacity == extent.most ? "" : fmt::format(" room={}", extent.capacity);
  return fmt::format("  extent {} <= {}{}{}\n", extent.name, extent.most, room, source);
}

// The number, or the name of the extent that stands for it.
std::string length_text(const GraphBuffers& graph, int64_t length, ExtentId bound) {
  return bound == kFixed ? fmt::format("{}", length) : graph.extents[static_cast<size_t>(bound)].name;
}

std::string sizes_text(const GraphBuffers& graph, const Buffer& buffer) {
  std::vector<std::string> sizes;
  for (size_t d = 0; d < buffer.size.size(); ++d)
    sizes.push_back(length_text(graph, buffer.size[d], buffer.bound(d)));
  return fmt::format("{}", fmt::join(sizes, ", "));
}

std::string buffer_text(const GraphBuffers& graph, const Buffer& buffer) {
  std::string text =
      fmt::format("  {} {} : {}[{}] stride=[{}]", buffer.is_input ? "input" : "buffer", buffer.name,
                  to_string(buffer.dtype), sizes_text(graph, buffer), fmt::join(buffer.stride, ", "));
  if (buffer.value_of != kFixed)
    text += fmt::format(" value_of={}", graph.extents[static_cast<size_t>(buffer.value_of)].name);
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

std::string loops_text(const GraphBuffers& graph, const std::vector<Loop>& loops) {
  std::string text;
  bool reduced = false;
  for (size_t i = 0; i < loops.size(); ++i) {
    const bool first_reduced = loops[i].reduced && !reduced;
    if (first_reduced) text += i == 0 ? "; " : "; ";
    if (i > 0 && !first_reduced) text += ", ";
    reduced = reduced || loops[i].reduced;
    text += fmt::format("{}: {}", loops[i].name, length_text(graph, loops[i].extent, loops[i].bound));
    if (loops[i].split != 1) text += fmt::format("/{}", loops[i].split);
    if (loops[i].step != 0) text += fmt::format("@{}", loops[i].step);
    if (loops[i].to_split != 1) text += fmt::format("={}@{}", loops[i].to_split, loops[i].to_step);
  }
  return text;
}

std::string attributes_text(const std::vector<std::pair<std::string, double>>& attributes) {
  if (attributes.empty()) return "";
  std::vector<std::string> entries;
  for (const auto& [key, value] : attributes)
    entries.push_back(fmt::format("{}: {}", key, number_text(value)));
  return fmt::format(" {{{}}}", fmt::join(entries, ", "));
}

// `buffer[index]`.
std::string element_text(const GraphBuffers& graph, BufferId buffer, const Expr& index) {
  return fmt::format("{}[{}]", graph.buffers[static_cast<size_t>(buffer)].name, index.to_string());
}

// A product says so when its result is wider than its operands.
bool is_widening_product(const Node& node, const Instruction& instruction) {
  if (!is_product(instruction)) return false;
  std::vector<HostType> types;
  for (const int operand : instruction.operands)
    types.push_back(node.body[static_cast<size_t>(operand)].dtype);
  return instruction.dtype != result_type(instruction.op, types);
}

std::string instruction_text(const GraphBuffers& graph, const Node& node, const Instruction& instruction) {
  if (instruction.is_load()) {
    return fmt::format("load {}", element_text(graph, instruction.buffer, instruction.index));
  }
  if (instruction.op == BodyOp::constant) {
    return fmt::format("constant {} : {}", number_text(instruction.value), to_string(instruction.dtype));
  }
  if (instruction.op == BodyOp::index) {
    return fmt::format("index {} : {}", instruction.index.to_string(), to_string(instruction.dtype));
  }
  std::string text(to_string(instruction.op));
  for (const int operand : instruction.operands) text += fmt::format(" v{}", operand);
  if (instruction.op == BodyOp::to_dtype || is_widening_product(node, instruction))
    text += fmt::format(" : {}", to_string(instruction.dtype));
  return text + attributes_text(instruction.attributes);
}

// What differs from the buffer's own.
std::string view_text(const GraphBuffers& graph, const TensorView& view) {
  if (view.buffer < 0) return "none";
  const Buffer& buffer = graph.buffers[static_cast<size_t>(view.buffer)];
  std::string text = buffer.name;
  const bool same_stride = view.stride == buffer.stride, same_offset = view.offset == buffer.offset;
  if (view.size != buffer.size || !same_stride || !same_offset) {
    text += fmt::format(" : [{}]", fmt::join(view.size, ", "));
  }
  if (!same_stride) text += fmt::format(" stride=[{}]", fmt::join(view.stride, ", "));
  if (!same_offset) text += fmt::format(" offset={}", view.offset);
  return text;
}

// A float is told from an integer by its point or exponent.
std::string float_text(double value) {
  std::string text = number_text(value);
  return text.find_first_not_of("-0123456789") == std::string::npos ? text + ".0" : text;
}

// One argument of a call.
class ArgumentText {
 public:
  explicit ArgumentText(const GraphBuffers& graph) : graph_(graph) {}

  std::string operator()(std::monostate) const { return "none"; }
  std::string operator()(const TensorView& view) const { return view_text(graph_, view); }
  std::string operator()(const Number& number) const {
    std::string text = float_text(number.value);
    if (number.kind == Number::Kind::kBool) text = number.value != 0 ? "true" : "false";
    if (number.kind == Number::Kind::kInt) text = fmt::format("{}", number.whole());
    return number.dtype ? fmt::format("{} : {}", text, to_string(*number.dtype)) : text;
  }
  std::string operator()(const std::string& text) const { return quoted_text(text); }
  std::string operator()(HostType type) const { return fmt::format("dtype({})", to_string(type)); }
  std::string operator()(const std::vector<int64_t>& list) const {
    return fmt::format("[{}]", fmt::join(list, ", "));
  }
  std::string operator()(const std::vector<double>& list) const {
    std::vector<std::string> entries;
    for (const double value : list) entries.push_back(float_text(value));
    return fmt::format("[{}]", fmt::join(entries, ", "));
  }
  std::string operator()(const TensorList& list) const {
    std::vector<std::string> entries;
    for (const auto& view : list) entries.push_back(view ? view_text(graph_, *view) : "none");
    return fmt::format("{{{}}}", fmt::join(entries, ", "));
  }

 private:
  const GraphBuffers& graph_;
};

std::string origin_text(const NodeHead& node) {
  std::string text;
  if (!node.aten.empty()) text += " aten=" + quoted_text(node.aten);
  if (!node.source.empty()) text += " at=" + quoted_text(node.source);
  if (!node.origin.empty()) text += " of=" + node.origin;
  if (!node.hints.empty()) {
    std::vector<std::string> entries;
    for (const auto& [loop, split] : node.hints) entries.push_back(fmt::format("{}: {}", loop, split));
    text += fmt::format(" hint={{{}}}", fmt::join(entries, ", "));
  }
  return text;
}

std::string call_text(const GraphBuffers& graph, const Node& node) {
  std::vector<std::string> arguments, results;
  for (const Argument& argument : node.call->arguments) {
    arguments.push_back(std::visit(ArgumentText(graph), argument));
  }
  for (const TensorView& result : node.call->results) results.push_back(view_text(graph, result));
  std::string settings;
  if (node.call->default_float != HostType::kFloat32)
    settings += fmt::format(" default_float={}", to_string(node.call->default_float));
  if (node.call->float32_parts != 3) settings += fmt::format(" float32_parts={}", node.call->float32_parts);
  return fmt::format("  call {} {}({}) -> ({}){}{}\n", node.name, node.call->op, fmt::join(arguments, ", "),
                     fmt::join(results, ", "), settings, origin_text(node));
}

std::string head_text(const GraphBuffers& graph, const NodeHead& node) {
  std::string text =
      fmt::format("  node {} ({}){}", node.name, loops_text(graph, node.loops), origin_text(node));
  if (node.bundle != 0) text += fmt::format(" bundle={}", node.bundle);
  return text + " {\n";
}

std::string store_text(const GraphBuffers& graph, BufferId target, const Expr& index, size_t value) {
  return fmt::format("    store {} v{}\n  }}\n", element_text(graph, target, index), value);
}

std::string node_text(const GraphBuffers& graph, const Node& node) {
  if (node.call) return call_text(graph, node);
  std::string text = head_text(graph, node);
  for (size_t i = 0; i < node.body.size(); ++i) {
    text += fmt::format("    v{} = {}\n", i, instruction_text(graph, node, node.body[i]));
  }
  return text + store_text(graph, node.target, node.target_index, static_cast<size_t>(node.result));
}

// A matmul of 16-bit operands whose result is not.
bool widens(const GraphBuffers& graph, const DeviceOp& op) {
  const auto format = [&](const Access& access) {
    return info_of(graph.buffers[static_cast<size_t>(access.buffer)].dtype).device_format;
  };
  return op.is_matmul() && format(op.inputs[0]) != format(op.output);
}

std::string node_text(const GraphBuffers& graph, const DeviceNode& node) {
  const DeviceOp& op = node.op;
  std::string text = head_text(graph, node);
  size_t values = 0;
  for_each_read(op, [&](const Access& access) {
    text += fmt::format("    v{} = load {}\n", values++, element_text(graph, access.buffer, access.index));
  });
  const bool copies = op.op == OpId::identity && op.inputs.size() == 1 && op.constants.empty();
  if (!copies) {
    text += fmt::format("    v{} = {}{}", values, op.reduces ? "reduce." : "", to_string(op.op));
    for (size_t i = 0; i < op.inputs.size(); ++i) text += fmt::format(" v{}", op.indices.size() + i);
    if (widens(graph, op)) {
      const Buffer& target = graph.buffers[static_cast<size_t>(op.output.buffer)];
      text += fmt::format(" : {}", to_string(target.dtype));
    }
    text += attributes_text(op.constants) + "\n";
    ++values;
  }
  return text + store_text(graph, op.output.buffer, op.output.index, values - 1);
}

template <class Nodes>
std::string graph_text(const GraphBuffers& graph, const Nodes& nodes) {
  std::string text = fmt::format("graph {} {{\n", graph.name);
  for (const Extent& extent : graph.extents) text += extent_text(extent);
  for (const Buffer& buffer : graph.buffers) text += buffer_text(graph, buffer);
  for (const auto& node : nodes) text += node_text(graph, node);
  std::vector<std::string_view> results;
  for (const BufferId id : graph.results) results.push_back(graph.buffers[static_cast<size_t>(id)].name);
  return text + fmt::format("  return {}\n}}\n", fmt::join(results, ", "));
}

}  // namespace

std::string to_text(const Graph& graph) {
  return graph_text(graph, graph.nodes);
}

std::string to_text(const DeviceGraph& graph) {
  return graph_text(graph, graph.nodes);
}

}  // namespace spyre
