#include <fmt/format.h>

#include <set>

#include "spyre/graph/lexer.h"
#include "spyre/opspec/text.h"

namespace spyre {
namespace {

constexpr int kDeepestLoop = 16;

// Reads one kernel or op. Each method takes what it names, opening mark included.
class Parser {
 public:
  explicit Parser(Lexer lexer) : lex_(std::move(lexer)) {}

  Result<Kernel> kernel();
  Result<OpId> op_name();
  Result<OpSpec> op();
  Status end() { return lex_.at_end() ? Status() : Status(lex_.unexpected("the end of the text")); }

 private:
  // `open item, item close`, an empty list included.
  template <typename Item>
  Status list(std::string_view open, std::string_view close, Item&& item) {
    SPYRE_TRY(lex_.expect(open));
    if (lex_.take(close)) return Status();
    do {
      SPYRE_TRY(item());
    } while (lex_.take(","));
    return lex_.expect(close);
  }

  // `{key: value, ...}`; `value` is called with the cursor behind the colon. Keys must differ.
  template <typename Value>
  Status map(Value&& value) {
    std::set<std::string> seen;
    return list("{", "}", [&]() -> Status {
      SPYRE_ASSIGN_OR_RETURN(const std::string key, lex_.word("a name"));
      if (!seen.insert(key).second) return lex_.error_here(fmt::format("'{}' appears twice", key));
      SPYRE_TRY(lex_.expect(":"));
      return value(key);
    });
  }

  // `{ key=value key=value ... }`, in any order, each at most once.
  template <typename Value>
  Status attributes(Value&& value) {
    SPYRE_TRY(lex_.expect("{"));
    std::set<std::string> seen;
    while (!lex_.take("}")) {
      SPYRE_ASSIGN_OR_RETURN(const std::string key, lex_.word("an attribute or '}'"));
      SPYRE_TRY(once(seen, key));
      SPYRE_TRY(lex_.expect("="));
      SPYRE_TRY(value(key));
    }
    return Status();
  }

  Status once(std::set<std::string>& seen, const std::string& key) {
    if (seen.insert(key).second) return Status();
    return lex_.error_here(fmt::format("attribute '{}' appears twice", key));
  }
  Error unknown(std::string_view what, std::string_view key) {
    return lex_.error_here(fmt::format("{} has no attribute '{}'", what, key));
  }

  Status integers(std::vector<int64_t>& out);
  Status quoted_list(std::vector<std::string>& out);
  Status boolean(bool& out);
  Status format(DataFormat& out);
  Status arrangement(ElementArrangement& out);
  Status bound(SymbolBound& out);

  Status iteration_space(std::vector<IterationDim>& out);
  Status op_attribute(const std::string& key, OpSpec& op);
  Status window(WindowParams& out);
  Status debug_handle(DebugHandle& out);
  Status resolve_dynamic_extents(OpSpec& op);
  Result<TensorArg> tensor(bool is_input);
  Status tensor_attribute(const std::string& key, TensorArg& arg);
  Status place(const std::string& key, TensorArg& arg);
  Status work_division(TensorArg& arg);
  Result<LaunchArgument> argument();
  Status argument_attribute(const std::string& key, LaunchArgument& arg);
  Status shape(std::vector<SizeOrSymbol>& out);
  Status fill(Fill& out);
  Result<LoopSpec> loop(int depth);
  Status items(std::vector<KernelItem>& out, int depth);

  Lexer lex_;
};

template <typename T>
Status store(Result<T> result, T& out) {
  if (!result.ok()) return result.error();
  out = std::move(result).value();
  return Status();
}

Status Parser::integers(std::vector<int64_t>& out) {
  return list("[", "]", [&]() -> Status {
    SPYRE_ASSIGN_OR_RETURN(const int64_t value, lex_.integer("an integer"));
    out.push_back(value);
    return Status();
  });
}

Status Parser::quoted_list(std::vector<std::string>& out) {
  return list("[", "]", [&]() -> Status {
    SPYRE_ASSIGN_OR_RETURN(std::string text, lex_.quoted("quoted text"));
    out.push_back(std::move(text));
    return Status();
  });
}

Status Parser::boolean(bool& out) {
  out = lex_.take("True");
  return out || lex_.take("False") ? Status() : Status(lex_.unexpected("True or False"));
}

Status Parser::format(DataFormat& out) {
  SPYRE_ASSIGN_OR_RETURN(const std::string name, lex_.word("a data format"));
  const auto found = data_format_from_name(name);
  if (!found) return lex_.error_here(fmt::format("unknown data format '{}'", name));
  out = *found;
  return Status();
}

Status Parser::arrangement(ElementArrangement& out) {
  SPYRE_ASSIGN_OR_RETURN(const std::string name, lex_.word("an element arrangement"));
  const auto found = element_arrangement_from_name(name);
  if (!found) return lex_.error_here(fmt::format("unknown element arrangement '{}'", name));
  out = *found;
  return Status();
}

Status Parser::bound(SymbolBound& out) {
  SPYRE_TRY(lex_.expect("("));
  SPYRE_TRY(store(lex_.integer("the largest value"), out.max));
  SPYRE_TRY(lex_.expect(","));
  SPYRE_TRY(store(lex_.integer("the granularity"), out.granularity));
  return lex_.expect(")");
}

Status Parser::iteration_space(std::vector<IterationDim>& out) {
  return map([&](const std::string& symbol) -> Status {
    IterationDim dim{.symbol = symbol};
    SPYRE_TRY(lex_.expect("("));
    if (lex_.sees_integer()) {
      SPYRE_TRY(store(lex_.integer("an extent"), dim.extent));
    } else {
      SPYRE_TRY(store(lex_.word("an extent or the name of one"), dim.dynamic));
    }
    SPYRE_TRY(lex_.expect(","));
    SPYRE_TRY(store(lex_.integer("a split"), dim.split));
    out.push_back(std::move(dim));
    return lex_.expect(")");
  });
}

Status Parser::window(WindowParams& out) {
  return map([&](const std::string& key) -> Status {
    const std::pair<std::string_view, int64_t*> fields[] = {
        {"stride_i", &out.stride_i},     {"stride_j", &out.stride_j},    {"kernel_h", &out.kernel_h},
        {"kernel_w", &out.kernel_w},     {"pad_i", &out.pad_i},          {"pad_j", &out.pad_j},
        {"dilation_i", &out.dilation_i}, {"dilation_j", &out.dilation_j}};
    for (const auto& [name, field] : fields) {
      if (name == key) return store(lex_.integer("an integer"), *field);
    }
    return unknown("conv_params", key);
  });
}

Status Parser::debug_handle(DebugHandle& out) {
  return map([&](const std::string& key) -> Status {
    if (key == "id") return store(lex_.integer("an identifier"), out.id);
    if (key == "aten_op") return store(lex_.quoted("quoted text"), out.aten_op);
    if (key == "ir_chain") return quoted_list(out.ir_chain);
    if (key == "fused_from") return quoted_list(out.fused_from);
    if (key == "transform_history") return quoted_list(out.transform_history);
    if (key != "source") return unknown("debug_handle", key);
    SPYRE_TRY(lex_.expect("("));
    SPYRE_TRY(store(lex_.quoted("a quoted file name"), out.file));
    for (int64_t* field : {&out.start_line, &out.start_col, &out.end_line, &out.end_col}) {
      SPYRE_TRY(lex_.expect(","));
      SPYRE_TRY(store(lex_.integer("a line or column"), *field));
    }
    return lex_.expect(")");
  });
}

Status Parser::op_attribute(const std::string& key, OpSpec& op) {
  if (key == "is_reduction") return boolean(op.is_reduction);
  if (key == "iteration_space") return iteration_space(op.iteration_space);
  if (key == "core_id_to_work_slice") {
    return map([&](const std::string& symbol) -> Status {
      SPYRE_ASSIGN_OR_RETURN(Expr slice, lex_.expression());
      op.core_id_to_work_slice.emplace_back(symbol, std::move(slice));
      return Status();
    });
  }
  if (key == "constants") {
    return map([&](const std::string& name) -> Status {
      SPYRE_ASSIGN_OR_RETURN(const double value, lex_.number("a number, inf or nan"));
      op.constants.emplace_back(name, value);
      return Status();
    });
  }
  if (key == "conv_params") return window(op.window.emplace());
  if (key == "tiled_symbols") {
    return list("[", "]", [&]() -> Status {
      std::vector<std::string>& level = op.tiled_symbols.emplace_back();
      return list("[", "]", [&]() -> Status { return store(lex_.word("a symbol"), level.emplace_back()); });
    });
  }
  if (key == "tiled_symbol_trip_counts") {
    return map([&](const std::string& symbol) -> Status {
      return store(lex_.integer("a trip count"), op.tiled_symbol_trip_counts.emplace_back(symbol, 0).second);
    });
  }
  if (key == "symbolic_dim_bounds") {
    return map([&](const std::string& symbol) -> Status {
      return bound(op.symbolic_dim_bounds.emplace_back(symbol, SymbolBound{}).second);
    });
  }
  if (key == "node_output_ranges") return integers(op.node_output_ranges);
  if (key == "completed_producer_cores") return integers(op.completed_producer_cores);
  if (key == "receiving_cores") return store(lex_.integer("a number of cores"), op.receiving_cores);
  if (key == "debug_handle") return debug_handle(op.debug_handle.emplace());
  return unknown("an op", key);
}

// A dynamic extent is written by name; its largest value stands in symbolic_dim_bounds.
Status Parser::resolve_dynamic_extents(OpSpec& op) {
  for (IterationDim& dim : op.iteration_space) {
    if (dim.dynamic.empty()) continue;
    bool bounded = false;
    for (const auto& [name, b] : op.symbolic_dim_bounds) {
      if (name != dim.dynamic) continue;
      dim.extent = b.max;
      bounded = true;
    }
    if (!bounded) {
      return lex_.error_here(fmt::format("op '{}': extent '{}' has no entry in symbolic_dim_bounds",
                                         to_string(op.op), dim.dynamic));
    }
  }
  return Status();
}

Result<OpId> Parser::op_name() {
  SPYRE_ASSIGN_OR_RETURN(const std::string name, lex_.word("the name of an op"));
  if (const std::optional<OpId> op = op_from_name(name)) return *op;
  const std::string message = fmt::format("op '{}' is not an op function of this card", name);
  Error error(ErrorKind::kUnsupported, lex_.error_here(message).message);
  if (const OpInfo* variant = find_op(name))
    return std::move(error).try_instead(
        fmt::format("the base name '{}'; the variant follows from the layouts", variant->name));
  return std::move(error).note("ops/table.def lists the op functions");
}

Result<OpSpec> Parser::op() {
  SPYRE_TRY(lex_.expect("op"));
  OpSpec op;
  SPYRE_TRY(store(op_name(), op.op));
  SPYRE_TRY(lex_.expect("{"));
  std::set<std::string> seen;
  while (!lex_.take("}")) {
    SPYRE_ASSIGN_OR_RETURN(const std::string key, lex_.word("an attribute, 'in', 'out' or '}'"));
    if (key == "in" || key == "out") {
      SPYRE_ASSIGN_OR_RETURN(TensorArg arg, tensor(key == "in"));
      op.args.push_back(std::move(arg));
      continue;
    }
    SPYRE_TRY(once(seen, key));
    SPYRE_TRY(lex_.expect("="));
    SPYRE_TRY(op_attribute(key, op));
  }
  SPYRE_TRY(resolve_dynamic_extents(op));
  return op;
}

Result<TensorArg> Parser::tensor(bool is_input) {
  TensorArg arg{.is_input = is_input};
  SPYRE_TRY(store(lex_.word("the name of a tensor"), arg.name));
  bool placed = false;
  SPYRE_TRY(attributes([&](const std::string& key) -> Status {
    if (key == "hbm" || key == "lx" || key == "hbm_pool") {
      if (placed) return lex_.error_here(fmt::format("tensor '{}' has two places", arg.name));
      placed = true;
      return place(key, arg);
    }
    return tensor_attribute(key, arg);
  }));
  if (!placed)
    return lex_.error_here(fmt::format("tensor '{}' needs a place: hbm, lx or hbm_pool", arg.name));
  return arg;
}

Status Parser::place(const std::string& key, TensorArg& arg) {
  arg.allocation.place = key == "hbm" ? Place::kHbm : key == "lx" ? Place::kLx : Place::kHbmPool;
  return store(lex_.integer("an argument index, address or offset"), arg.allocation.value);
}

Status Parser::tensor_attribute(const std::string& key, TensorArg& arg) {
  if (key == "format") return format(arg.format);
  if (key == "arrangement") return arrangement(arg.arrangement);
  if (key == "device_size") return integers(arg.device_size);
  if (key == "coords") {
    return list("[", "]",
                [&]() -> Status { return store(lex_.expression(), arg.device_coordinates.emplace_back()); });
  }
  if (key == "tile_advance") return store(lex_.expression(), arg.tile_advance.emplace());
  if (key == "work_division") return work_division(arg);
  if (key == "kernel_local") return boolean(arg.kernel_local);
  return unknown("a tensor", key);
}

Status Parser::work_division(TensorArg& arg) {
  return map([&](const std::string& symbol) -> Status {
    WorkDivision& division = arg.work_division.emplace_back();
    division.symbol = symbol;
    SPYRE_TRY(lex_.expect("("));
    SPYRE_TRY(store(lex_.integer("a split"), division.split));
    SPYRE_TRY(lex_.expect(","));
    SPYRE_TRY(store(lex_.expression(), division.owner));
    return lex_.expect(")");
  });
}

Status Parser::shape(std::vector<SizeOrSymbol>& out) {
  return list("[", "]", [&]() -> Status {
    if (lex_.sees_integer()) {
      SPYRE_ASSIGN_OR_RETURN(const int64_t size, lex_.integer("a size"));
      out.emplace_back(size);
    } else {
      SPYRE_ASSIGN_OR_RETURN(std::string name, lex_.word("a size or the name of one"));
      out.emplace_back(std::move(name));
    }
    return Status();
  });
}

Status Parser::fill(Fill& out) {
  SPYRE_TRY(lex_.expect("("));
  SPYRE_TRY(store(lex_.number("the first value"), out.start));
  SPYRE_TRY(lex_.expect(","));
  SPYRE_TRY(store(lex_.number("the step"), out.step));
  return lex_.expect(")");
}

Status Parser::argument_attribute(const std::string& key, LaunchArgument& arg) {
  if (key == "role") {
    SPYRE_ASSIGN_OR_RETURN(const std::string name, lex_.word("a role"));
    for (const auto role :
         {ArgumentRole::kInput, ArgumentRole::kOutput, ArgumentRole::kInputOutput, ArgumentRole::kConstant}) {
      if (name != to_string(role)) continue;
      arg.role = role;
      return Status();
    }
    return lex_.error_here(
        fmt::format("unknown role '{}', allowed are input, output, input_output, constant", name));
  }
  if (key == "dtype") return store(lex_.word("a host type"), arg.dtype);
  if (key == "shape") return shape(arg.shape);
  if (key == "stride") return integers(arg.stride);
  if (key == "offset") return store(lex_.integer("an offset in elements"), arg.offset);
  if (key == "storage") return store(lex_.integer("a number of elements"), arg.storage);
  if (key == "fill") return fill(arg.fill.emplace());
  if (key == "device_size") return integers(arg.device_size);
  if (key == "stride_map") return integers(arg.stride_map);
  if (key == "format") return format(arg.format);
  if (key == "arrangement") return arrangement(arg.arrangement);
  return unknown("an argument", key);
}

Result<LaunchArgument> Parser::argument() {
  LaunchArgument arg;
  SPYRE_TRY(store(lex_.integer("the index of an argument"), arg.index));
  SPYRE_TRY(attributes([&](const std::string& key) { return argument_attribute(key, arg); }));
  return arg;
}

Result<LoopSpec> Parser::loop(int depth) {
  LoopSpec loop;
  SPYRE_TRY(lex_.expect("loop"));
  if (lex_.sees_integer()) {
    SPYRE_TRY(store(lex_.integer("a trip count"), loop.count));
  } else {
    SPYRE_TRY(store(lex_.word("a trip count or the name of a runtime extent"), loop.count_symbol));
    SPYRE_TRY(lex_.expect("max"));
    SPYRE_TRY(lex_.expect("="));
    SPYRE_TRY(store(lex_.integer("the largest extent"), loop.bound.max));
    SPYRE_TRY(lex_.expect("granularity"));
    SPYRE_TRY(lex_.expect("="));
    SPYRE_TRY(store(lex_.integer("the granularity"), loop.bound.granularity));
    if (loop.bound.granularity <= 0) return lex_.error_here("granularity must be positive");
    loop.count = loop.bound.max / loop.bound.granularity;
  }
  SPYRE_TRY(lex_.expect("{"));
  SPYRE_TRY(items(loop.body, depth + 1));
  return loop;
}

Status Parser::items(std::vector<KernelItem>& out, int depth) {
  if (depth > kDeepestLoop) return lex_.error_here(fmt::format("loops nest at most {} deep", kDeepestLoop));
  while (!lex_.take("}")) {
    if (lex_.sees("op")) {
      SPYRE_ASSIGN_OR_RETURN(OpSpec next, op());
      out.emplace_back(std::move(next));
    } else if (lex_.sees("loop")) {
      SPYRE_ASSIGN_OR_RETURN(LoopSpec next, loop(depth));
      out.emplace_back(std::move(next));
    } else {
      return lex_.unexpected("'op', 'loop' or '}'");
    }
  }
  return Status();
}

Result<Kernel> Parser::kernel() {
  SPYRE_TRY(lex_.expect("kernel"));
  Kernel kernel;
  SPYRE_TRY(store(lex_.word("the name of the kernel"), kernel.name));
  SPYRE_TRY(lex_.expect("{"));
  if (lex_.take("pool_bytes")) {
    SPYRE_TRY(lex_.expect("="));
    SPYRE_TRY(store(lex_.integer("a byte count"), kernel.pool_bytes));
  }
  while (lex_.take("argument")) {
    SPYRE_ASSIGN_OR_RETURN(LaunchArgument arg, argument());
    kernel.arguments.push_back(std::move(arg));
  }
  SPYRE_TRY(items(kernel.body, 0));
  return kernel;
}

}  // namespace

Result<Kernel> parse_kernel(std::string_view text, std::string_view origin) {
  SPYRE_ASSIGN_OR_RETURN(Lexer lexer, Lexer::read(text, origin));
  Parser parser(std::move(lexer));
  SPYRE_ASSIGN_OR_RETURN(Kernel kernel, parser.kernel());
  SPYRE_TRY(parser.end());
  return kernel;
}

Result<OpSpec> parse_op(std::string_view text, std::string_view origin) {
  SPYRE_ASSIGN_OR_RETURN(Lexer lexer, Lexer::read(text, origin));
  Parser parser(std::move(lexer));
  SPYRE_ASSIGN_OR_RETURN(OpSpec op, parser.op());
  SPYRE_TRY(parser.end());
  return op;
}

}  // namespace spyre
