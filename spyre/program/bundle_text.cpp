#include "spyre/program/bundle_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "spyre/program/affine_map.h"
#include "spyre/program/fields.h"
#include "spyre/program/linear_form.h"

namespace spyre::program {
namespace {

class Parser {
 public:
  Parser(std::string_view text, const std::string& file) : in_(text, file) {}

  Result<BundleText> parse() {
    while (in_.token().text.starts_with('#') && in_.token().kind == TokenKind::kWord) {
      SPYRE_TRY(parse_map_definition());
    }
    const bool in_module = in_.is_word("module");
    if (in_module) {
      in_.advance();
      SPYRE_TRY(in_.expect("{"));
    }
    SPYRE_TRY(parse_function());
    if (in_module) {
      SPYRE_TRY(in_.expect("}"));
    }
    if (in_.token().kind != TokenKind::kEnd) {
      return in_.refuse("the end of the file");
    }
    return std::move(out_);
  }

 private:
  Status parse_map_definition() {
    SPYRE_ASSIGN_OR_RETURN(const std::string map_name, in_.name('#', "a map name"));
    SPYRE_TRY(in_.expect("="));
    SPYRE_ASSIGN_OR_RETURN(AffineMap map, parse_affine_map(in_));
    maps_[map_name] = std::move(map);
    return Status();
  }

  Status parse_function() {
    SPYRE_TRY(in_.expect("func.func"));
    SPYRE_ASSIGN_OR_RETURN(const std::string function, in_.name('@', "a function name"));
    SPYRE_TRY(in_.expect("("));
    while (!in_.accept(")")) {
      SPYRE_TRY(parse_parameter());
      if (!in_.is_sign(")")) {
        SPYRE_TRY(in_.expect(","));
      }
    }
    SPYRE_TRY(in_.expect("{"));
    SPYRE_TRY(parse_block(out_.steps, 0, 1));
    return Status();
  }

  Status parse_parameter() {
    if (out_.parameters.size() >= 4096) {
      return in_.refuse("more parameters", "at most 4096");
    }
    SPYRE_ASSIGN_OR_RETURN(const std::string ssa, in_.name('%', "a parameter name"));
    Parameter parameter;
    parameter.name = ssa.substr(1);
    SPYRE_TRY(in_.expect(":"));
    SPYRE_TRY(parse_input_arg_type(&parameter));
    classify(parameter);
    const auto index = static_cast<int>(out_.parameters.size());
    if (!parameters_.emplace(ssa, index).second) {
      return in_.refuse(fmt::format("'{}' twice", ssa), "each parameter once");
    }
    out_.parameters.push_back(std::move(parameter));
    return Status();
  }

  static void classify(Parameter& parameter) {
    const std::string_view text = parameter.name;
    parameter.kind = ParameterKind::kExtent;
    if (text.starts_with("pool")) {
      parameter.kind = ParameterKind::kAddress;
      parameter.is_pool = true;
    } else if (text.starts_with("arg_")) {
      const std::string_view digits = text.substr(4, text.find_first_not_of("0123456789", 4) - 4);
      const std::optional<int64_t> index = parse_decimal(digits);
      if (index && *index <= 1 << 20) {
        parameter.kind = ParameterKind::kAddress;
        parameter.arg_index = static_cast<int>(*index);
      }
    }
  }

  /// `!sdscbundle.input_arg<index, granularity=G, max_value=M>`
  Status parse_input_arg_type(Parameter* parameter) {
    SPYRE_TRY(in_.expect("!sdscbundle.input_arg"));
    SPYRE_TRY(in_.expect("<"));
    SPYRE_TRY(in_.expect("index"));
    while (in_.accept(",")) {
      const bool granularity = in_.is_word("granularity");
      if (!granularity && !in_.is_word("max_value")) {
        return in_.refuse("'granularity' or 'max_value'");
      }
      in_.advance();
      SPYRE_TRY(in_.expect("="));
      SPYRE_ASSIGN_OR_RETURN(const int64_t value, in_.integer());
      if (parameter != nullptr) {
        (granularity ? parameter->granularity : parameter->max_value) = value;
      }
    }
    return in_.expect(">");
  }

  /// Statements up to the closing brace. `trips` is how often the block runs, as far as constants tell.
  Status parse_block(std::vector<Step>& steps, int depth, int64_t trips) {
    while (!in_.accept("}")) {
      if (in_.is_word("return") || in_.is_word("func.return") || in_.is_word("scf.yield")) {
        in_.advance();
      } else if (in_.is_word("scf.for")) {
        SPYRE_TRY(parse_for(steps, depth, trips));
      } else if (in_.is_word("sdscbundle.sdsc_execute")) {
        SPYRE_TRY(parse_execute(steps, trips));
      } else if (in_.token().kind == TokenKind::kWord && in_.token().text.starts_with('%')) {
        SPYRE_TRY(parse_assignment(depth));
      } else {
        return in_.refuse("a value, scf.for, sdscbundle.sdsc_execute, return or '}'");
      }
    }
    return Status();
  }

  Status define(const std::string& ssa, LinearForm form) {
    if (!values_.emplace(ssa, std::move(form)).second) {
      return in_.refuse(fmt::format("'{}' defined twice", ssa), "each value once");
    }
    scope_.push_back(ssa);
    return Status();
  }

  Result<LinearForm> operand() {
    SPYRE_ASSIGN_OR_RETURN(const std::string ssa, in_.name('%', "a value"));
    const auto value = values_.find(ssa);
    if (value == values_.end()) {
      return in_.refuse(fmt::format("'{}'", ssa), "a value defined above, in this block or around it");
    }
    return value->second;
  }

  Status parse_assignment(int depth) {
    SPYRE_ASSIGN_OR_RETURN(const std::string ssa, in_.name('%', "a value name"));
    SPYRE_TRY(in_.expect("="));
    if (in_.accept("arith.constant")) {
      SPYRE_ASSIGN_OR_RETURN(const int64_t value, in_.integer());
      SPYRE_TRY(in_.expect_type("index"));
      return define(ssa, constant_form(value));
    }
    if (in_.accept("arith.addi")) {
      SPYRE_ASSIGN_OR_RETURN(const LinearForm a, operand());
      SPYRE_TRY(in_.expect(","));
      SPYRE_ASSIGN_OR_RETURN(const LinearForm b, operand());
      SPYRE_TRY(in_.expect_type("index"));
      SPYRE_ASSIGN_OR_RETURN(LinearForm sum, in_.checked(add(a, b)));
      return define(ssa, std::move(sum));
    }
    if (in_.accept("affine.apply")) {
      SPYRE_ASSIGN_OR_RETURN(LinearForm form, parse_apply());
      return define(ssa, std::move(form));
    }
    if (in_.accept("sdscbundle.device_mem_allocate")) {
      return parse_allocate(ssa, depth);
    }
    if (in_.accept("sdscbundle.input_arg_extract")) {
      return parse_extract(ssa);
    }
    return in_.refuse(
        "arith.constant, arith.addi, affine.apply, sdscbundle.device_mem_allocate or "
        "sdscbundle.input_arg_extract");
  }

  Result<LinearForm> parse_apply() {
    AffineMap map;
    if (in_.is_word("affine_map")) {
      SPYRE_ASSIGN_OR_RETURN(map, parse_affine_map(in_));
    } else {
      SPYRE_ASSIGN_OR_RETURN(const std::string map_name, in_.name('#', "a map name or affine_map<...>"));
      const auto known = maps_.find(map_name);
      if (known == maps_.end()) {
        return in_.refuse(fmt::format("'{}'", map_name), "a map defined above");
      }
      map = known->second;
    }
    std::vector<LinearForm> arguments;
    SPYRE_TRY(in_.expect("("));
    SPYRE_TRY(parse_operands(")", arguments));
    const size_t dims = arguments.size();
    if (in_.accept("[")) {
      SPYRE_TRY(parse_operands("]", arguments));
    }
    if (static_cast<int>(dims) != map.dims || static_cast<int>(arguments.size() - dims) != map.symbols) {
      return in_.refuse(fmt::format("{} dims and {} symbols", dims, arguments.size() - dims),
                        fmt::format("{} and {}, as the map has", map.dims, map.symbols));
    }
    return in_.checked(apply_map(map, arguments));
  }

  Status parse_operands(std::string_view close, std::vector<LinearForm>& out) {
    while (!in_.accept(close)) {
      SPYRE_ASSIGN_OR_RETURN(LinearForm form, operand());
      out.push_back(std::move(form));
      if (out.size() > 4096) {
        return in_.refuse("more operands", "at most 4096");
      }
      if (!in_.is_sign(close)) {
        SPYRE_TRY(in_.expect(","));
      }
    }
    return Status();
  }

  Status parse_allocate(const std::string& ssa, int depth) {
    if (depth != 0 || out_.pool_bytes != 0) {
      return in_.refuse("an allocation", "one, outside loops", ErrorKind::kUnsupported);
    }
    SPYRE_ASSIGN_OR_RETURN(out_.pool_bytes, in_.integer());
    if (out_.pool_bytes < 1 || out_.pool_bytes > int64_t{16} << 30) {
      return in_.refuse(std::to_string(out_.pool_bytes), "1 byte to 16 GiB");
    }
    SPYRE_TRY(in_.expect("bytes"));
    SPYRE_TRY(in_.expect_type("index"));
    return define(ssa, atom_form({.kind = AtomSource::kPool, .index = 0}));
  }

  Status parse_extract(const std::string& ssa) {
    const std::string what(in_.token().text);
    if (what != "value" && what != "granularity" && what != "max_value") {
      return in_.refuse("value, granularity or max_value");
    }
    in_.advance();
    SPYRE_TRY(in_.expect("from"));
    SPYRE_ASSIGN_OR_RETURN(const std::string source, in_.name('%', "a parameter"));
    const auto parameter = parameters_.find(source);
    if (parameter == parameters_.end()) {
      return in_.refuse(fmt::format("'{}'", source), "a parameter of the function");
    }
    SPYRE_TRY(in_.expect(":"));
    SPYRE_TRY(parse_input_arg_type(nullptr));
    SPYRE_TRY(in_.expect("->"));
    SPYRE_TRY(in_.expect("index"));
    const Parameter& row = out_.parameters[parameter->second];
    if (what == "value") {
      return define(ssa, atom_form({.kind = AtomSource::kParameter, .index = parameter->second}));
    }
    const std::optional<int64_t> bound = what == "granularity" ? row.granularity : row.max_value;
    if (!bound) {
      return in_.refuse(fmt::format("the {} of '{}'", what, source), "parameters whose type states it");
    }
    return define(ssa, constant_form(*bound));
  }

  Status parse_for(std::vector<Step>& steps, int depth, int64_t trips) {
    if (depth >= kMaxLoopDepth) {
      return in_.refuse("a deeper loop", fmt::format("at most {} nested", kMaxLoopDepth));
    }
    in_.advance();
    ProgramLoop loop;
    loop.counter = out_.loop_count++;
    SPYRE_ASSIGN_OR_RETURN(const std::string counter, in_.name('%', "a loop variable"));
    SPYRE_TRY(in_.expect("="));
    SPYRE_ASSIGN_OR_RETURN(loop.lower, operand());
    SPYRE_TRY(in_.expect("to"));
    SPYRE_ASSIGN_OR_RETURN(loop.upper, operand());
    SPYRE_TRY(in_.expect("step"));
    SPYRE_ASSIGN_OR_RETURN(loop.step, operand());
    SPYRE_TRY(in_.expect("{"));
    SPYRE_ASSIGN_OR_RETURN(const int64_t inner, trips_inside(loop, trips));
    const size_t outside = scope_.size();
    SPYRE_TRY(define(counter, atom_form({.kind = AtomSource::kLoop, .index = loop.counter})));
    SPYRE_TRY(parse_block(loop.body, depth + 1, inner));
    for (; scope_.size() > outside; scope_.pop_back()) {
      values_.erase(scope_.back());  // what the body defines is gone after it
    }
    steps.push_back({std::move(loop)});
    return Status();
  }

  Result<int64_t> trips_inside(const ProgramLoop& loop, int64_t outer) const {
    if (!loop.step.terms.empty()) {
      return outer;  // known only at launch, checked there
    }
    if (loop.step.constant < 1) {
      return in_.refuse(fmt::format("a step of {}", loop.step.constant), "at least 1");
    }
    if (!loop.lower.terms.empty() || !loop.upper.terms.empty()) {
      return outer;
    }
    int64_t span = 0;
    if (__builtin_sub_overflow(loop.upper.constant, loop.lower.constant, &span) || span < 0 ||
        span / loop.step.constant > kMaxTripCount) {
      return in_.refuse(fmt::format("a loop from {} to {}", loop.lower.constant, loop.upper.constant),
                        fmt::format("0 to {} rounds", kMaxTripCount));
    }
    const int64_t rounds = span / loop.step.constant + (span % loop.step.constant != 0 ? 1 : 0);
    const int64_t inner = rounds * outer;
    if (inner > kMaxExecutes) {
      return in_.refuse(fmt::format("loops of {} rounds in all", inner),
                        fmt::format("at most {}", kMaxExecutes));
    }
    return inner;
  }

  Status parse_execute(std::vector<Step>& steps, int64_t trips) {
    in_.advance();
    std::vector<LinearForm> operands;
    SPYRE_TRY(in_.expect("("));
    SPYRE_TRY(parse_operands(")", operands));
    std::optional<std::string> sdsc;
    std::vector<int64_t> ids;
    SPYRE_TRY(in_.expect("{"));
    while (!in_.accept("}")) {
      const std::string key(in_.token().text);
      if (in_.token().kind != TokenKind::kWord && in_.token().kind != TokenKind::kString) {
        return in_.refuse("sdsc_filename or symbol_ids");
      }
      in_.advance();
      SPYRE_TRY(in_.expect("="));
      if (key == "sdsc_filename") {
        if (in_.token().kind != TokenKind::kString) {
          return in_.refuse("a file name in quotes");
        }
        sdsc = std::string(in_.token().text);
        in_.advance();
      } else if (key == "symbol_ids") {
        SPYRE_TRY(parse_ids(ids));
      } else {
        return in_.refuse(fmt::format("the attribute '{}'", key), "sdsc_filename and symbol_ids");
      }
      if (!in_.is_sign("}")) {
        SPYRE_TRY(in_.expect(","));
      }
    }
    return add_execute(steps, trips, sdsc, ids, operands);
  }

  Status parse_ids(std::vector<int64_t>& ids) {
    SPYRE_TRY(in_.expect("["));
    while (!in_.accept("]")) {
      SPYRE_ASSIGN_OR_RETURN(const int64_t id, in_.integer());
      ids.push_back(id);
      if (ids.size() > 4096) {
        return in_.refuse("more ids", "at most 4096");
      }
      if (!in_.is_sign("]")) {
        SPYRE_TRY(in_.expect(","));
      }
    }
    return Status();
  }

  Status add_execute(std::vector<Step>& steps, int64_t trips, const std::optional<std::string>& sdsc,
                     const std::vector<int64_t>& ids, const std::vector<LinearForm>& operands) {
    if (!sdsc) {
      return in_.refuse("an execute without sdsc_filename", "one");
    }
    if (ids.size() != operands.size()) {
      return in_.refuse(fmt::format("{} symbol_ids for {} operands", ids.size(), operands.size()),
                        "one id per operand");
    }
    executes_ += trips;
    if (executes_ > kMaxExecutes) {
      return in_.refuse(fmt::format("{} executes", executes_), fmt::format("at most {}", kMaxExecutes));
    }
    Execute execute;
    const auto [known, fresh] = files_.emplace(*sdsc, static_cast<int>(out_.files.size()));
    execute.op = known->second;
    if (fresh) {
      out_.files.push_back(*sdsc);
    }
    std::set<int64_t> seen;
    for (size_t i = 0; i < ids.size(); ++i) {
      if (ids[i] >= 0 || !seen.insert(ids[i]).second) {
        return in_.refuse(fmt::format("the symbol id {}", ids[i]), "negative ids, each once");
      }
      execute.bindings.push_back({.symbol = ids[i], .value = operands[i]});
    }
    steps.push_back({std::move(execute)});
    return Status();
  }

  TokenCursor in_;
  BundleText out_;
  std::map<std::string, AffineMap> maps_;
  std::map<std::string, int> parameters_;
  std::map<std::string, int> files_;
  std::map<std::string, LinearForm> values_;
  std::vector<std::string> scope_;  // names in values_, in order of definition
  int64_t executes_ = 0;
};

}  // namespace

Result<BundleText> parse_bundle(std::string_view text, const std::string& file) {
  if (text.size() > kMaxBundleBytes) {
    return Error(ErrorKind::kParse,
                 fmt::format("{}: found {} bytes, allowed: at most {}", file, text.size(), kMaxBundleBytes));
  }
  return Parser(text, file).parse();
}

}  // namespace spyre::program
