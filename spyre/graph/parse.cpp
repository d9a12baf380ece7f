#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <limits>
#include <set>
#include <unordered_map>

#include "spyre/graph/graph.h"
#include "spyre/graph/lexer.h"

namespace spyre {
namespace {

constexpr std::string_view kNumber = "a number, inf or nan";

// Reads one graph. Each method takes what it names, its keyword included unless the caller had to look at it.
class Parser {
 public:
  explicit Parser(Lexer lexer) : lex_(std::move(lexer)) {}

  Result<Graph> graph();

 private:
  Status buffer(bool is_input);
  Status node();
  Status read(Node& node);
  Status call();
  Result<Argument> argument();
  Result<Argument> list();
  Result<Number> number();
  Result<TensorView> view();
  Status origin(Node& node, std::string_view key);
  Status loops(Node& node);
  Status instruction(Node& node, const std::string& value);
  Status pointwise(Node& node, Instruction& instruction);
  Status store(Node& node);
  Status results();

  Status integers(std::vector<int64_t>& out);
  Result<HostType> dtype();
  Result<DeviceLayout> layout();
  Result<BufferId> buffer_name();
  Result<int> operand(const Node& node);
  Result<Expr> bracketed();

  Lexer lex_;
  Graph graph_;
  std::unordered_map<std::string, BufferId> ids_;
};

Status Parser::integers(std::vector<int64_t>& out) {
  SPYRE_TRY(lex_.expect("["));
  if (lex_.take("]")) return Status();
  do {
    const bool negative = lex_.take("-");
    SPYRE_ASSIGN_OR_RETURN(const int64_t value, lex_.integer("a number"));
    out.push_back(negative ? -value : value);
  } while (lex_.take(","));
  return lex_.expect("]");
}

Result<HostType> Parser::dtype() {
  SPYRE_ASSIGN_OR_RETURN(const std::string name, lex_.word("an element type"));
  const std::optional<HostType> type = host_type_from_name(name);
  if (!type) return lex_.error_here(fmt::format("'{}' is not an element type of the card", name));
  return *type;
}

Result<DeviceLayout> Parser::layout() {
  DeviceLayout layout;
  SPYRE_TRY(lex_.expect("("));
  SPYRE_TRY(integers(layout.device_size));
  SPYRE_TRY(lex_.expect(","));
  SPYRE_TRY(integers(layout.stride_map));
  SPYRE_TRY(lex_.expect(","));
  SPYRE_ASSIGN_OR_RETURN(const std::string format, lex_.word("a data format"));
  const std::optional<DataFormat> known = data_format_from_name(format);
  if (!known) return lex_.error_here(fmt::format("'{}' is not a data format", format));
  layout.device_dtype = *known;
  SPYRE_TRY(lex_.expect(","));
  SPYRE_ASSIGN_OR_RETURN(const std::string arrangement, lex_.word("an element arrangement"));
  const std::optional<ElementArrangement> order = element_arrangement_from_name(arrangement);
  if (!order) return lex_.error_here(fmt::format("'{}' is not an element arrangement", arrangement));
  layout.element_arrangement = *order;
  SPYRE_TRY(lex_.expect(")"));
  const Status well_formed = layout.check_well_formed();
  if (!well_formed.ok()) return lex_.error_here(well_formed.error().message);
  return layout;
}

Status Parser::buffer(bool is_input) {
  Buffer buffer{.is_input = is_input};
  SPYRE_ASSIGN_OR_RETURN(buffer.name, lex_.word("the name of a buffer"));
  if (ids_.contains(buffer.name))
    return lex_.error_here(fmt::format("buffer '{}' appears twice", buffer.name));
  SPYRE_TRY(lex_.expect(":"));
  const Result<HostType> type = dtype();
  // Nodes are called like what they fill.
  if (!type.ok()) return is_input ? type.error() : Error(type.error()).about({.name = buffer.name});
  buffer.dtype = type.value();
  SPYRE_TRY(integers(buffer.size));
  for (const int64_t size : buffer.size) {
    if (size < 0) return lex_.error_here(fmt::format("buffer '{}' has a negative size", buffer.name));
  }
  buffer.stride = contiguous_strides(buffer.size);
  while (true) {
    if (lex_.take("stride")) {
      SPYRE_TRY(lex_.expect("="));
      buffer.stride.clear();
      SPYRE_TRY(integers(buffer.stride));
      if (buffer.stride.size() != buffer.size.size()) {
        return lex_.error_here(fmt::format("buffer '{}' has {} sizes and {} strides", buffer.name,
                                           buffer.size.size(), buffer.stride.size()));
      }
    } else if (lex_.take("offset")) {
      SPYRE_TRY(lex_.expect("="));
      SPYRE_ASSIGN_OR_RETURN(buffer.offset, lex_.integer("an offset in elements"));
    } else if (lex_.take("storage")) {
      SPYRE_TRY(lex_.expect("="));
      SPYRE_ASSIGN_OR_RETURN(buffer.storage, lex_.integer("a number of elements"));
    } else if (lex_.take("memory_of")) {
      SPYRE_TRY(lex_.expect("="));
      SPYRE_ASSIGN_OR_RETURN(const std::string owner, lex_.word("the name of a buffer"));
      const auto known = ids_.find(owner);
      if (known == ids_.end())
        return lex_.error_here(
            fmt::format("'{}' names the memory of '{}', which is no buffer before it", buffer.name, owner));
      buffer.memory_of = known->second;
    } else if (lex_.take("layout")) {
      SPYRE_TRY(lex_.expect("="));
      SPYRE_ASSIGN_OR_RETURN(buffer.layout, layout());
    } else if (lex_.take("fill")) {
      SPYRE_TRY(lex_.expect("="));
      SPYRE_TRY(lex_.expect("("));
      Fill fill;
      SPYRE_ASSIGN_OR_RETURN(fill.start, lex_.number(kNumber));
      SPYRE_TRY(lex_.expect(","));
      SPYRE_ASSIGN_OR_RETURN(fill.step, lex_.number(kNumber));
      SPYRE_TRY(lex_.expect(")"));
      buffer.fill = fill;
    } else if (lex_.sees("pool") || lex_.sees("lx")) {
      BufferPlace place{.kind = lex_.take("pool") ? BufferPlace::Kind::kPool : BufferPlace::Kind::kLx};
      if (place.kind == BufferPlace::Kind::kLx) SPYRE_TRY(lex_.expect("lx"));
      SPYRE_TRY(lex_.expect("="));
      SPYRE_ASSIGN_OR_RETURN(place.offset, lex_.integer("an offset in bytes"));
      buffer.place = place;
    } else {
      break;
    }
  }
  ids_[buffer.name] = static_cast<BufferId>(graph_.buffers.size());
  graph_.buffers.push_back(std::move(buffer));
  return Status();
}

Result<BufferId> Parser::buffer_name() {
  SPYRE_ASSIGN_OR_RETURN(const std::string name, lex_.word("the name of a buffer"));
  const auto id = ids_.find(name);
  if (id == ids_.end()) return lex_.error_here(fmt::format("buffer '{}' was not declared", name));
  return id->second;
}

Result<Expr> Parser::bracketed() {
  SPYRE_TRY(lex_.expect("["));
  SPYRE_ASSIGN_OR_RETURN(Expr index, lex_.expression());
  SPYRE_TRY(lex_.expect("]"));
  return index;
}

Result<int> Parser::operand(const Node& node) {
  SPYRE_ASSIGN_OR_RETURN(const std::string name, lex_.word("a value such as v0"));
  int value = -1;
  const char* const end = name.data() + name.size();
  const bool numbered = name[0] == 'v' && std::from_chars(name.data() + 1, end, value).ptr == end;
  if (numbered && value >= 0 && static_cast<size_t>(value) < node.body.size()) return value;
  return lex_.error_here(fmt::format("'{}' is not an earlier value of node '{}'", name, node.name));
}

Status Parser::loops(Node& node) {
  SPYRE_TRY(lex_.expect("("));
  std::set<std::string> names;
  bool reduced = lex_.take(";");
  if (!reduced && lex_.take(")")) return Status();
  while (true) {
    Loop loop{.reduced = reduced};
    SPYRE_ASSIGN_OR_RETURN(loop.name, lex_.word("the name of a loop"));
    if (!names.insert(loop.name).second)
      return lex_.error_here(fmt::format("loop '{}' appears twice", loop.name));
    SPYRE_TRY(lex_.expect(":"));
    SPYRE_ASSIGN_OR_RETURN(loop.extent, lex_.integer("an extent"));
    if (lex_.take("/")) {
      SPYRE_ASSIGN_OR_RETURN(loop.split, lex_.integer("a split"));
    }
    if (lex_.take("@")) {
      SPYRE_ASSIGN_OR_RETURN(loop.step, lex_.integer("a number of cores"));
    }
    if (lex_.take("=")) {
      SPYRE_ASSIGN_OR_RETURN(loop.to_split, lex_.integer("a split"));
      SPYRE_TRY(lex_.expect("@"));
      SPYRE_ASSIGN_OR_RETURN(loop.to_step, lex_.integer("a number of cores"));
    }
    if (loop.extent < 0 || loop.split < 1 || loop.step < 0 || loop.to_split < 1 || loop.to_step < 0)
      return lex_.error_here(fmt::format(
          "loop '{}' has extent {}, splits {} and {}, steps {} and {}; allowed are splits from 1, the "
          "others from 0",
          loop.name, loop.extent, loop.split, loop.to_split, loop.step, loop.to_step));
    node.loops.push_back(std::move(loop));
    if (lex_.take(")")) return Status();
    if (!reduced && lex_.take(";")) {
      reduced = true;
    } else {
      SPYRE_TRY(lex_.expect(","));
    }
  }
}

Status Parser::pointwise(Node& node, Instruction& instruction) {
  std::vector<HostType> types;
  while (!lex_.sees(":") && !lex_.sees("{") && !lex_.sees("store")) {
    // The next value's definition ends this one: `v3 =`.
    if (lex_.sees(fmt::format("v{}", node.body.size() + 1))) break;
    SPYRE_ASSIGN_OR_RETURN(const int value, operand(node));
    instruction.operands.push_back(value);
    types.push_back(node.body[static_cast<size_t>(value)].dtype);
  }
  // A product may have a wider result than its operands.
  const bool typed = is_product(instruction) && lex_.sees(":");
  if (instruction.op == "to_dtype" || typed) {
    SPYRE_TRY(lex_.expect(":"));
    SPYRE_ASSIGN_OR_RETURN(instruction.dtype, dtype());
  } else {
    instruction.dtype = result_type(instruction.op, types);
  }
  if (!lex_.take("{")) return Status();
  if (lex_.take("}")) return Status();
  do {
    SPYRE_ASSIGN_OR_RETURN(std::string key, lex_.word("the name of an attribute"));
    SPYRE_TRY(lex_.expect(":"));
    SPYRE_ASSIGN_OR_RETURN(const double value, lex_.number(kNumber));
    instruction.attributes.emplace_back(std::move(key), value);
  } while (lex_.take(","));
  return lex_.expect("}");
}

Status Parser::instruction(Node& node, const std::string& value) {
  if (value != fmt::format("v{}", node.body.size())) {
    return lex_.error_here(fmt::format("found '{}', the next value is v{}", value, node.body.size()));
  }
  SPYRE_TRY(lex_.expect("="));
  Instruction instruction;
  SPYRE_ASSIGN_OR_RETURN(instruction.op, lex_.word("an operation"));
  if (instruction.is_load()) {
    SPYRE_ASSIGN_OR_RETURN(instruction.buffer, buffer_name());
    SPYRE_ASSIGN_OR_RETURN(instruction.index, bracketed());
    instruction.dtype = graph_.buffers[static_cast<size_t>(instruction.buffer)].dtype;
  } else if (instruction.op == "constant") {
    SPYRE_ASSIGN_OR_RETURN(instruction.value, lex_.number(kNumber));
    SPYRE_TRY(lex_.expect(":"));
    SPYRE_ASSIGN_OR_RETURN(instruction.dtype, dtype());
  } else if (instruction.op == "index") {
    SPYRE_ASSIGN_OR_RETURN(instruction.index, lex_.expression());
    SPYRE_TRY(lex_.expect(":"));
    SPYRE_ASSIGN_OR_RETURN(instruction.dtype, dtype());
  } else {
    SPYRE_TRY(pointwise(node, instruction));
  }
  node.body.push_back(std::move(instruction));
  return Status();
}

Status Parser::store(Node& node) {
  SPYRE_ASSIGN_OR_RETURN(node.target, buffer_name());
  SPYRE_ASSIGN_OR_RETURN(node.target_index, bracketed());
  SPYRE_ASSIGN_OR_RETURN(node.result, operand(node));
  return lex_.expect("}");
}

Status Parser::origin(Node& node, std::string_view key) {
  if (key == "aten") {
    SPYRE_ASSIGN_OR_RETURN(node.aten, lex_.quoted("an operator"));
  } else if (key == "at") {
    SPYRE_ASSIGN_OR_RETURN(node.source, lex_.quoted("a place in the source"));
  } else if (key == "of") {
    SPYRE_ASSIGN_OR_RETURN(node.origin, lex_.word("the node that it is a step of"));
  } else if (key == "hint") {
    SPYRE_TRY(lex_.expect("{"));
    while (!lex_.take("}")) {
      SPYRE_ASSIGN_OR_RETURN(std::string loop, lex_.word("the name of a loop"));
      SPYRE_TRY(lex_.expect(":"));
      SPYRE_ASSIGN_OR_RETURN(const int64_t split, lex_.integer("a split"));
      node.hints.emplace_back(std::move(loop), split);
      if (!lex_.sees("}")) SPYRE_TRY(lex_.expect(","));
    }
  } else {
    return lex_.error_here(
        fmt::format("a node has no attribute '{}', allowed are aten, at, of, hint, bundle", key));
  }
  return Status();
}

Result<TensorView> Parser::view() {
  TensorView view;
  SPYRE_ASSIGN_OR_RETURN(view.buffer, buffer_name());
  const Buffer& buffer = graph_.buffers[static_cast<size_t>(view.buffer)];
  view.dtype = buffer.dtype;
  view.size = buffer.size;
  view.stride = buffer.stride;
  view.offset = buffer.offset;
  if (!lex_.take(":")) return view;
  view.size.clear();
  SPYRE_TRY(integers(view.size));
  if (lex_.take("stride")) {
    SPYRE_TRY(lex_.expect("="));
    view.stride.clear();
    SPYRE_TRY(integers(view.stride));
  }
  if (view.stride.size() != view.size.size()) {
    return lex_.error_here(fmt::format("a view of '{}' has {} sizes and {} strides", buffer.name,
                                       view.size.size(), view.stride.size()));
  }
  if (lex_.take("offset")) {
    SPYRE_TRY(lex_.expect("="));
    SPYRE_ASSIGN_OR_RETURN(view.offset, lex_.integer("an offset in elements"));
  }
  return view;
}

Result<Number> Parser::number() {
  Number number;
  if (lex_.sees("true") || lex_.sees("false")) {
    number = {.value = lex_.sees("true") ? 1.0 : 0.0, .kind = Number::Kind::kBool};
    SPYRE_TRY(lex_.word("a boolean"));
  } else if (lex_.sees_whole_number()) {
    SPYRE_ASSIGN_OR_RETURN(const int64_t value, lex_.integer("a number"));
    if (value < -Number::kMostWhole || value > Number::kMostWhole) {
      return lex_.error_here(fmt::format("{} is beyond {}, up to where whole numbers of a call are exact",
                                         value, Number::kMostWhole));
    }
    number = {.value = static_cast<double>(value), .kind = Number::Kind::kInt};
  } else {
    SPYRE_ASSIGN_OR_RETURN(number.value, lex_.number(kNumber));
  }
  if (lex_.take(":")) {
    SPYRE_ASSIGN_OR_RETURN(number.dtype, dtype());
  }
  return number;
}

// `[1, 2]`, `[0.5, inf]` or `{x, none}`. A list of no numbers is one of integers.
Result<Argument> Parser::list() {
  if (lex_.take("{")) {
    TensorList tensors;
    if (lex_.take("}")) return Argument(tensors);
    do {
      tensors.emplace_back();
      if (lex_.take("none")) continue;
      SPYRE_ASSIGN_OR_RETURN(tensors.back(), view());
    } while (lex_.take(","));
    SPYRE_TRY(lex_.expect("}"));
    return Argument(std::move(tensors));
  }
  SPYRE_TRY(lex_.expect("["));
  std::vector<int64_t> integers;
  std::vector<double> floats;
  if (lex_.take("]")) return Argument(integers);
  do {
    if (floats.empty() && (lex_.sees("true") || lex_.sees("false"))) {
      integers.push_back(lex_.sees("true") ? 1 : 0);
      SPYRE_TRY(lex_.word("a boolean"));
    } else if (floats.empty() && lex_.sees_whole_number()) {
      SPYRE_ASSIGN_OR_RETURN(const int64_t value, lex_.integer("a number"));
      integers.push_back(value);
    } else if (integers.empty() && !lex_.sees_whole_number()) {
      SPYRE_ASSIGN_OR_RETURN(const double value, lex_.number(kNumber));
      floats.push_back(value);
    } else {
      return lex_.error_here("a list has integers or floats, not both");
    }
  } while (lex_.take(","));
  SPYRE_TRY(lex_.expect("]"));
  return integers.empty() ? Argument(std::move(floats)) : Argument(std::move(integers));
}

Result<Argument> Parser::argument() {
  if (lex_.take("none")) return Argument();
  if (lex_.sees("[") || lex_.sees("{")) return list();
  if (lex_.take("dtype")) {
    SPYRE_TRY(lex_.expect("("));
    SPYRE_ASSIGN_OR_RETURN(const HostType type, dtype());
    SPYRE_TRY(lex_.expect(")"));
    return Argument(type);
  }
  if (lex_.sees_quoted()) {
    SPYRE_ASSIGN_OR_RETURN(std::string text, lex_.quoted("a string"));
    return Argument(std::move(text));
  }
  const bool is_word = lex_.sees("true") || lex_.sees("false") || lex_.sees("inf") || lex_.sees("nan");
  if (is_word || lex_.sees_integer()) {
    SPYRE_ASSIGN_OR_RETURN(const Number value, number());
    return Argument(value);
  }
  SPYRE_ASSIGN_OR_RETURN(TensorView tensor, view());
  return Argument(std::move(tensor));
}

Status Parser::call() {
  Node node;
  Call call;
  SPYRE_ASSIGN_OR_RETURN(node.name, lex_.word("the name of a call"));
  SPYRE_ASSIGN_OR_RETURN(call.op, lex_.word("an operator"));
  SPYRE_TRY(lex_.expect("("));
  while (!lex_.take(")")) {
    SPYRE_ASSIGN_OR_RETURN(Argument next, argument());
    call.arguments.push_back(std::move(next));
    if (!lex_.sees(")")) SPYRE_TRY(lex_.expect(","));
  }
  SPYRE_TRY(lex_.expect("-"));
  SPYRE_TRY(lex_.expect(">"));
  SPYRE_TRY(lex_.expect("("));
  do {
    call.results.push_back({.size = {0}, .stride = {1}});
    if (lex_.take("none")) continue;
    SPYRE_ASSIGN_OR_RETURN(call.results.back(), view());
  } while (lex_.take(","));
  SPYRE_TRY(lex_.expect(")"));
  if (lex_.take("default_float")) {
    SPYRE_TRY(lex_.expect("="));
    SPYRE_ASSIGN_OR_RETURN(call.default_float, dtype());
  }
  if (lex_.take("float32_parts")) {
    SPYRE_TRY(lex_.expect("="));
    SPYRE_ASSIGN_OR_RETURN(const int64_t parts, lex_.integer("how many parts"));
    if (parts < 1 || parts > 3)
      return lex_.error_here(fmt::format("found {} parts, allowed are 1 to 3", parts));
    call.float32_parts = static_cast<int>(parts);
  }
  node.call = std::move(call);
  while (lex_.sees("aten") || lex_.sees("at") || lex_.sees("hint")) {
    SPYRE_ASSIGN_OR_RETURN(const std::string key, lex_.word("at or hint"));
    SPYRE_TRY(lex_.expect("="));
    SPYRE_TRY(origin(node, key));
  }
  graph_.nodes.push_back(std::move(node));
  return Status();
}

Status Parser::node() {
  Node node;
  const Status whole = read(node);
  if (!whole.ok()) return Error(whole.error()).about(origin_of(node));
  graph_.nodes.push_back(std::move(node));
  return Status();
}

Status Parser::read(Node& node) {
  SPYRE_ASSIGN_OR_RETURN(node.name, lex_.word("the name of a node"));
  SPYRE_TRY(loops(node));
  while (!lex_.take("{")) {
    SPYRE_ASSIGN_OR_RETURN(const std::string key, lex_.word("aten, at, of, hint, bundle or '{'"));
    SPYRE_TRY(lex_.expect("="));
    if (key == "bundle") {
      SPYRE_ASSIGN_OR_RETURN(node.bundle, lex_.integer("the number of a bundle"));
    } else {
      SPYRE_TRY(origin(node, key));
    }
  }
  while (true) {
    SPYRE_ASSIGN_OR_RETURN(const std::string word, lex_.word("a value or 'store'"));
    if (word == "store") return store(node);
    SPYRE_TRY(instruction(node, word));
  }
}

Status Parser::results() {
  if (lex_.sees("}")) return Status();
  do {
    SPYRE_ASSIGN_OR_RETURN(const BufferId id, buffer_name());
    graph_.results.push_back(id);
  } while (lex_.take(","));
  return Status();
}

Result<Graph> Parser::graph() {
  SPYRE_TRY(lex_.expect("graph"));
  SPYRE_ASSIGN_OR_RETURN(graph_.name, lex_.word("the name of the graph"));
  SPYRE_TRY(lex_.expect("{"));
  while (!lex_.take("}")) {
    if (lex_.take("input")) {
      SPYRE_TRY(buffer(true));
    } else if (lex_.take("buffer")) {
      SPYRE_TRY(buffer(false));
    } else if (lex_.take("node")) {
      SPYRE_TRY(node());
    } else if (lex_.take("call")) {
      SPYRE_TRY(call());
    } else if (lex_.take("return")) {
      SPYRE_TRY(results());
    } else {
      return lex_.unexpected("input, buffer, node, call, return or '}'");
    }
  }
  if (!lex_.at_end()) return lex_.unexpected("the end of the text");
  return std::move(graph_);
}

}  // namespace

Result<Graph> parse_graph(std::string_view text, std::string_view origin) {
  SPYRE_ASSIGN_OR_RETURN(Lexer lexer, Lexer::read(text, origin));
  SPYRE_ASSIGN_OR_RETURN(Graph graph, Parser(std::move(lexer)).graph());
  SPYRE_TRY(check_sizes(graph));
  SPYRE_TRY(verify(graph));
  return graph;
}

}  // namespace spyre
