#include <fmt/format.h>

#include "spyre/graph/graph.h"
#include "spyre/graph/graph_parser.h"

namespace spyre {
namespace {

class CapturedParser : public GraphParser {
 public:
  CapturedParser(Lexer lexer, Graph& graph) : GraphParser(std::move(lexer), graph), graph_(graph) {}

 private:
  Status node() override;
  Status call() override;
  Status read(Node& node);
  Result<Argument> argument();
  Result<Argument> list();
  Result<Number> number();
  Result<TensorView> view();
  Status instruction(Node& node, const std::string& value);
  Result<BodyOp> operation();
  Status pointwise(Node& node, Instruction& instruction);
  Status store(Node& node);
  Result<int> operand(const Node& node);

  Graph& graph_;
};

Result<int> CapturedParser::operand(const Node& node) {
  return value(static_cast<int>(node.body.size()), node.name);
}

Result<BodyOp> CapturedParser::operation() {
  SPYRE_ASSIGN_OR_RETURN(const std::string name, lex_.word("an operation"));
  if (const std::optional<BodyOp> op = body_op_from_name(name)) return *op;
  return Error(ErrorKind::kUnsupported,
               lex_.error_here(fmt::format("'{}' has no form on the card", name)).message);
}

Status CapturedParser::pointwise(Node& node, Instruction& instruction) {
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
  if (instruction.op == BodyOp::to_dtype || typed) {
    SPYRE_TRY(lex_.expect(":"));
    SPYRE_ASSIGN_OR_RETURN(instruction.dtype, dtype());
  } else {
    instruction.dtype = result_type(instruction.op, types);
  }
  return attributes(instruction.attributes);
}

Status CapturedParser::instruction(Node& node, const std::string& value) {
  SPYRE_TRY(next_value(value, static_cast<int>(node.body.size())));
  Instruction instruction;
  SPYRE_ASSIGN_OR_RETURN(instruction.op, operation());
  if (instruction.is_load()) {
    SPYRE_ASSIGN_OR_RETURN(instruction.buffer, buffer_name());
    SPYRE_ASSIGN_OR_RETURN(instruction.index, bracketed());
    instruction.dtype = buffer(instruction.buffer).dtype;
  } else if (instruction.op == BodyOp::constant) {
    SPYRE_ASSIGN_OR_RETURN(instruction.value, lex_.number(kNumber));
    SPYRE_TRY(lex_.expect(":"));
    SPYRE_ASSIGN_OR_RETURN(instruction.dtype, dtype());
  } else if (instruction.op == BodyOp::index) {
    SPYRE_ASSIGN_OR_RETURN(instruction.index, lex_.expression());
    SPYRE_TRY(lex_.expect(":"));
    SPYRE_ASSIGN_OR_RETURN(instruction.dtype, dtype());
  } else {
    SPYRE_TRY(pointwise(node, instruction));
  }
  node.body.push_back(std::move(instruction));
  return Status();
}

Status CapturedParser::store(Node& node) {
  SPYRE_ASSIGN_OR_RETURN(node.target, buffer_name());
  SPYRE_ASSIGN_OR_RETURN(node.target_index, bracketed());
  SPYRE_ASSIGN_OR_RETURN(node.result, operand(node));
  return lex_.expect("}");
}

Result<TensorView> CapturedParser::view() {
  TensorView view;
  SPYRE_ASSIGN_OR_RETURN(view.buffer, buffer_name());
  const Buffer& seen = buffer(view.buffer);
  view.dtype = seen.dtype;
  view.size = seen.size;
  view.stride = seen.stride;
  view.offset = seen.offset;
  if (!lex_.take(":")) return view;
  view.size.clear();
  SPYRE_TRY(integers(view.size));
  if (lex_.take("stride")) {
    SPYRE_TRY(lex_.expect("="));
    view.stride.clear();
    SPYRE_TRY(integers(view.stride));
  }
  if (view.stride.size() != view.size.size()) {
    return lex_.error_here(fmt::format("a view of '{}' has {} sizes and {} strides", seen.name,
                                       view.size.size(), view.stride.size()));
  }
  if (lex_.take("offset")) {
    SPYRE_TRY(lex_.expect("="));
    SPYRE_ASSIGN_OR_RETURN(view.offset, lex_.integer("an offset in elements"));
  }
  return view;
}

Result<Number> CapturedParser::number() {
  Number number;
  if (lex_.sees("true") || lex_.sees("false")) {
    number = {.value = lex_.sees("true") ? 1.0 : 0.0, .kind = Number::Kind::kBool};
    SPYRE_TRY(lex_.word("a boolean"));
  } else if (lex_.sees_whole_number()) {
    SPYRE_ASSIGN_OR_RETURN(const int64_t value, lex_.integer("a number"));
    if (!Number::is_exact(value)) {
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
Result<Argument> CapturedParser::list() {
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

Result<Argument> CapturedParser::argument() {
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

Status CapturedParser::call() {
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

Status CapturedParser::node() {
  Node node;
  const Status whole = read(node);
  if (!whole.ok()) return Error(whole.error()).about(origin_of(node));
  graph_.nodes.push_back(std::move(node));
  return Status();
}

Status CapturedParser::read(Node& node) {
  SPYRE_TRY(head(node));
  while (true) {
    SPYRE_ASSIGN_OR_RETURN(const std::string word, lex_.word("a value or 'store'"));
    if (word == "store") return store(node);
    SPYRE_TRY(instruction(node, word));
  }
}

}  // namespace

Result<Graph> parse_graph(std::string_view text, std::string_view origin) {
  SPYRE_ASSIGN_OR_RETURN(Lexer lexer, Lexer::read(text, origin));
  Graph graph;
  SPYRE_TRY(CapturedParser(std::move(lexer), graph).graph());
  SPYRE_TRY(check_sizes(graph));
  SPYRE_TRY(verify(graph));
  return graph;
}

}  // namespace spyre
