#include "spyre/program/bundle_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "spyre/program/fields.h"
#include "spyre/program/linear_form.h"

namespace spyre::program {
namespace {

// ---- tokens
// -------------------------------------------------------------------------------------------------

enum class TokenKind { kWord, kNumber, kString, kSign, kEnd };

struct Token {
  TokenKind kind = TokenKind::kEnd;
  std::string_view text;
  int line = 1;
};

bool is_word_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ||
         c == '$';
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// Words may start with one of % # @ !; `->` is one sign; numbers carry no sign; `//` starts a comment.
class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  Token next() {
    skip_blanks();
    const size_t start = at_;
    if (at_ >= text_.size()) {
      return {TokenKind::kEnd, "end of file", line_};
    }
    const char c = text_[at_++];
    if (c == '"') {
      while (at_ < text_.size() && text_[at_] != '"' && text_[at_] != '\n') {
        ++at_;
      }
      const std::string_view inside = text_.substr(start + 1, at_ - start - 1);
      at_ = std::min(at_ + 1, text_.size());
      return {TokenKind::kString, inside, line_};
    }
    if (is_digit(c)) {
      while (at_ < text_.size() && is_digit(text_[at_])) {
        ++at_;
      }
      return {TokenKind::kNumber, text_.substr(start, at_ - start), line_};
    }
    if (is_word_char(c) || c == '%' || c == '#' || c == '@' || c == '!') {
      while (at_ < text_.size() && is_word_char(text_[at_])) {
        ++at_;
      }
      return {TokenKind::kWord, text_.substr(start, at_ - start), line_};
    }
    if (c == '-' && at_ < text_.size() && text_[at_] == '>') {
      ++at_;
    }
    return {TokenKind::kSign, text_.substr(start, at_ - start), line_};
  }

 private:
  void skip_blanks() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '\n') {
        ++line_;
        ++at_;
      } else if (c == ' ' || c == '\t' || c == '\r') {
        ++at_;
      } else if (c == '/' && text_.substr(at_, 2) == "//") {
        while (at_ < text_.size() && text_[at_] != '\n') {
          ++at_;
        }
      } else {
        break;
      }
    }
  }

  std::string_view text_;
  size_t at_ = 0;
  int line_ = 1;
};

// ---- affine maps
// --------------------------------------------------------------------------------------------

/// An affine map before it is applied: its expression is a linear form whose atoms are argument positions
/// (dims first, then symbols).
struct AffineMap {
  int dims = 0, symbols = 0;
  LinearForm form;
};

// ---- parser
// -------------------------------------------------------------------------------------------------

class Parser {
 public:
  Parser(std::string_view text, const std::string& file) : lexer_(text), file_(file) {
    token_ = lexer_.next();
  }

  Result<BundleText> parse() {
    while (token_.text.starts_with('#') && token_.kind == TokenKind::kWord) {
      SPYRE_TRY(parse_map_definition());
    }
    const bool in_module = is_word("module");
    if (in_module) {
      advance();
      SPYRE_TRY(expect("{"));
    }
    SPYRE_TRY(parse_function());
    if (in_module) {
      SPYRE_TRY(expect("}"));
    }
    if (token_.kind != TokenKind::kEnd) {
      return refuse("the end of the file");
    }
    return std::move(out_);
  }

 private:
  // -- helpers --

  Error refuse(std::string_view allowed) const {
    return refuse(fmt::format("'{}'", token_.text.substr(0, 60)), allowed);
  }
  Error refuse(std::string_view found, std::string_view allowed, ErrorKind kind = ErrorKind::kParse) const {
    return Error(kind, fmt::format("{}: line {}: found {}, allowed: {}", file_, token_.line, found, allowed));
  }
  Error here(const Error& error) const {
    return Error(error.kind, fmt::format("{}: line {}: {}", file_, token_.line, error.message));
  }

  void advance() { token_ = lexer_.next(); }
  bool is_sign(std::string_view text) const { return token_.kind == TokenKind::kSign && token_.text == text; }
  bool is_word(std::string_view text) const { return token_.kind == TokenKind::kWord && token_.text == text; }

  bool accept(std::string_view text) {
    const bool there = is_sign(text) || is_word(text);
    if (there) {
      advance();
    }
    return there;
  }
  Status expect(std::string_view text) {
    if (!accept(text)) {
      return refuse(fmt::format("'{}'", text));
    }
    return Status();
  }

  Result<std::string> name(char prefix, std::string_view what) {
    if (token_.kind != TokenKind::kWord || token_.text.size() < 2 || token_.text[0] != prefix) {
      return refuse(what);
    }
    std::string text(token_.text);
    advance();
    return text;
  }

  Result<int64_t> integer() {
    const bool negative = accept("-");
    const std::optional<int64_t> value =
        token_.kind == TokenKind::kNumber ? parse_decimal(token_.text) : std::nullopt;
    if (!value) {
      return refuse("a 64-bit integer");
    }
    advance();
    return negative ? -*value : *value;
  }

  Status expect_type(std::string_view type) {
    SPYRE_TRY(expect(":"));
    return expect(type);
  }

  // -- affine maps --

  Status parse_map_definition() {
    SPYRE_ASSIGN_OR_RETURN(const std::string map_name, name('#', "a map name"));
    SPYRE_TRY(expect("="));
    SPYRE_ASSIGN_OR_RETURN(AffineMap map, parse_map());
    maps_[map_name] = std::move(map);
    return Status();
  }

  Result<AffineMap> parse_map() {
    AffineMap map;
    std::map<std::string, int, std::less<>> positions;
    SPYRE_TRY(expect("affine_map"));
    SPYRE_TRY(expect("<"));
    SPYRE_TRY(expect("("));
    SPYRE_TRY(parse_map_names(")", positions));
    map.dims = static_cast<int>(positions.size());
    if (accept("[")) {
      SPYRE_TRY(parse_map_names("]", positions));
    }
    map.symbols = static_cast<int>(positions.size()) - map.dims;
    SPYRE_TRY(expect("->"));
    SPYRE_TRY(expect("("));
    SPYRE_ASSIGN_OR_RETURN(map.form, parse_sum(positions, 0));
    SPYRE_TRY(expect(")"));
    SPYRE_TRY(expect(">"));
    return map;
  }

  Status parse_map_names(std::string_view close, std::map<std::string, int, std::less<>>& positions) {
    while (!accept(close)) {
      if (token_.kind != TokenKind::kWord || positions.size() >= kMaxTerms) {
        return refuse(fmt::format("at most {} names, then '{}'", kMaxTerms, close));
      }
      const auto position = static_cast<int>(positions.size());
      if (!positions.emplace(std::string(token_.text), position).second) {
        return refuse("each name once");
      }
      advance();
      if (!is_sign(close)) {
        SPYRE_TRY(expect(","));
      }
    }
    return Status();
  }

  using Positions = std::map<std::string, int, std::less<>>;

  Result<LinearForm> parse_sum(const Positions& positions, int depth) {
    SPYRE_ASSIGN_OR_RETURN(LinearForm sum, parse_product(positions, depth));
    while (is_sign("+") || is_sign("-")) {
      const bool minus = is_sign("-");
      advance();
      SPYRE_ASSIGN_OR_RETURN(LinearForm term, parse_product(positions, depth));
      SPYRE_ASSIGN_OR_RETURN(term, checked(scale(term, minus ? -1 : 1)));
      SPYRE_ASSIGN_OR_RETURN(sum, checked(add(sum, term)));
    }
    return sum;
  }

  Result<LinearForm> parse_product(const Positions& positions, int depth) {
    SPYRE_ASSIGN_OR_RETURN(LinearForm product, parse_factor(positions, depth));
    while (accept("*")) {
      SPYRE_ASSIGN_OR_RETURN(const LinearForm factor, parse_factor(positions, depth));
      if (product.terms.empty()) {
        SPYRE_ASSIGN_OR_RETURN(product, checked(scale(factor, product.constant)));
      } else if (factor.terms.empty()) {
        SPYRE_ASSIGN_OR_RETURN(product, checked(scale(product, factor.constant)));
      } else {
        return refuse("a product of two unknowns", "a product with a constant", ErrorKind::kUnsupported);
      }
    }
    if (is_word("floordiv") || is_word("ceildiv") || is_word("mod")) {
      return refuse(fmt::format("'{}'", token_.text), "sums and multiples", ErrorKind::kUnsupported);
    }
    return product;
  }

  Result<LinearForm> parse_factor(const Positions& positions, int depth) {
    if (depth > kMaxLoopDepth) {
      return refuse("deeper parentheses", fmt::format("at most {}", kMaxLoopDepth));
    }
    if (accept("-")) {
      SPYRE_ASSIGN_OR_RETURN(const LinearForm inner, parse_factor(positions, depth + 1));
      return checked(scale(inner, -1));
    }
    if (accept("(")) {
      SPYRE_ASSIGN_OR_RETURN(LinearForm inner, parse_sum(positions, depth + 1));
      SPYRE_TRY(expect(")"));
      return inner;
    }
    if (token_.kind == TokenKind::kNumber) {
      SPYRE_ASSIGN_OR_RETURN(const int64_t value, integer());
      return constant_form(value);
    }
    const auto position = positions.find(token_.text);
    if (token_.kind != TokenKind::kWord || position == positions.end()) {
      return refuse("a number or one of the map's dims and symbols");
    }
    advance();
    return atom_form({.kind = AtomKind::kParameter, .index = position->second});
  }

  Result<LinearForm> checked(Result<LinearForm> form) const {
    return form.ok() ? std::move(form) : Result<LinearForm>(here(form.error()));
  }

  // -- the function --

  Status parse_function() {
    SPYRE_TRY(expect("func.func"));
    SPYRE_ASSIGN_OR_RETURN(const std::string function, name('@', "a function name"));
    SPYRE_TRY(expect("("));
    while (!accept(")")) {
      SPYRE_TRY(parse_parameter());
      if (!is_sign(")")) {
        SPYRE_TRY(expect(","));
      }
    }
    SPYRE_TRY(expect("{"));
    SPYRE_TRY(parse_block(out_.steps, 0, 1));
    return Status();
  }

  Status parse_parameter() {
    if (out_.parameters.size() >= 4096) {
      return refuse("more parameters", "at most 4096");
    }
    SPYRE_ASSIGN_OR_RETURN(const std::string ssa, name('%', "a parameter name"));
    Parameter parameter;
    parameter.name = ssa.substr(1);
    SPYRE_TRY(expect(":"));
    SPYRE_TRY(parse_input_arg_type(&parameter));
    classify(parameter);
    const auto index = static_cast<int>(out_.parameters.size());
    if (!parameters_.emplace(ssa, index).second) {
      return refuse(fmt::format("'{}' twice", ssa), "each parameter once");
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
    SPYRE_TRY(expect("!sdscbundle.input_arg"));
    SPYRE_TRY(expect("<"));
    SPYRE_TRY(expect("index"));
    while (accept(",")) {
      const bool granularity = is_word("granularity");
      if (!granularity && !is_word("max_value")) {
        return refuse("'granularity' or 'max_value'");
      }
      advance();
      SPYRE_TRY(expect("="));
      SPYRE_ASSIGN_OR_RETURN(const int64_t value, integer());
      if (parameter != nullptr) {
        (granularity ? parameter->granularity : parameter->max_value) = value;
      }
    }
    return expect(">");
  }

  /// Statements up to the closing brace. `trips` is how often the block runs, as far as constants tell.
  Status parse_block(std::vector<Step>& steps, int depth, int64_t trips) {
    while (!accept("}")) {
      if (is_word("return") || is_word("func.return") || is_word("scf.yield")) {
        advance();
      } else if (is_word("scf.for")) {
        SPYRE_TRY(parse_for(steps, depth, trips));
      } else if (is_word("sdscbundle.sdsc_execute")) {
        SPYRE_TRY(parse_execute(steps, trips));
      } else if (token_.kind == TokenKind::kWord && token_.text.starts_with('%')) {
        SPYRE_TRY(parse_assignment(depth));
      } else {
        return refuse("a value, scf.for, sdscbundle.sdsc_execute, return or '}'");
      }
    }
    return Status();
  }

  Status define(const std::string& ssa, LinearForm form) {
    if (!values_.emplace(ssa, std::move(form)).second) {
      return refuse(fmt::format("'{}' defined twice", ssa), "each value once");
    }
    scope_.push_back(ssa);
    return Status();
  }

  Result<LinearForm> operand() {
    SPYRE_ASSIGN_OR_RETURN(const std::string ssa, name('%', "a value"));
    const auto value = values_.find(ssa);
    if (value == values_.end()) {
      return refuse(fmt::format("'{}'", ssa), "a value defined above, in this block or around it");
    }
    return value->second;
  }

  Status parse_assignment(int depth) {
    SPYRE_ASSIGN_OR_RETURN(const std::string ssa, name('%', "a value name"));
    SPYRE_TRY(expect("="));
    if (accept("arith.constant")) {
      SPYRE_ASSIGN_OR_RETURN(const int64_t value, integer());
      SPYRE_TRY(expect_type("index"));
      return define(ssa, constant_form(value));
    }
    if (accept("arith.addi")) {
      SPYRE_ASSIGN_OR_RETURN(const LinearForm a, operand());
      SPYRE_TRY(expect(","));
      SPYRE_ASSIGN_OR_RETURN(const LinearForm b, operand());
      SPYRE_TRY(expect_type("index"));
      SPYRE_ASSIGN_OR_RETURN(LinearForm sum, checked(add(a, b)));
      return define(ssa, std::move(sum));
    }
    if (accept("affine.apply")) {
      SPYRE_ASSIGN_OR_RETURN(LinearForm form, parse_apply());
      return define(ssa, std::move(form));
    }
    if (accept("sdscbundle.device_mem_allocate")) {
      return parse_allocate(ssa, depth);
    }
    if (accept("sdscbundle.input_arg_extract")) {
      return parse_extract(ssa);
    }
    return refuse(
        "arith.constant, arith.addi, affine.apply, sdscbundle.device_mem_allocate or "
        "sdscbundle.input_arg_extract");
  }

  Result<LinearForm> parse_apply() {
    AffineMap map;
    if (is_word("affine_map")) {
      SPYRE_ASSIGN_OR_RETURN(map, parse_map());
    } else {
      SPYRE_ASSIGN_OR_RETURN(const std::string map_name, name('#', "a map name or affine_map<...>"));
      const auto known = maps_.find(map_name);
      if (known == maps_.end()) {
        return refuse(fmt::format("'{}'", map_name), "a map defined above");
      }
      map = known->second;
    }
    std::vector<LinearForm> arguments;
    SPYRE_TRY(expect("("));
    SPYRE_TRY(parse_operands(")", arguments));
    const size_t dims = arguments.size();
    if (accept("[")) {
      SPYRE_TRY(parse_operands("]", arguments));
    }
    if (static_cast<int>(dims) != map.dims || static_cast<int>(arguments.size() - dims) != map.symbols) {
      return refuse(fmt::format("{} dims and {} symbols", dims, arguments.size() - dims),
                    fmt::format("{} and {}, as the map has", map.dims, map.symbols));
    }
    LinearForm sum = constant_form(map.form.constant);
    for (const LinearForm::Term& term : map.form.terms) {
      SPYRE_ASSIGN_OR_RETURN(const LinearForm part,
                             checked(scale(arguments[term.atom.index], term.coefficient)));
      SPYRE_ASSIGN_OR_RETURN(sum, checked(add(sum, part)));
    }
    return sum;
  }

  Status parse_operands(std::string_view close, std::vector<LinearForm>& out) {
    while (!accept(close)) {
      SPYRE_ASSIGN_OR_RETURN(LinearForm form, operand());
      out.push_back(std::move(form));
      if (out.size() > 4096) {
        return refuse("more operands", "at most 4096");
      }
      if (!is_sign(close)) {
        SPYRE_TRY(expect(","));
      }
    }
    return Status();
  }

  Status parse_allocate(const std::string& ssa, int depth) {
    if (depth != 0 || out_.pool_bytes != 0) {
      return refuse("an allocation", "one, outside loops", ErrorKind::kUnsupported);
    }
    SPYRE_ASSIGN_OR_RETURN(out_.pool_bytes, integer());
    if (out_.pool_bytes < 1 || out_.pool_bytes > int64_t{16} << 30) {
      return refuse(std::to_string(out_.pool_bytes), "1 byte to 16 GiB");
    }
    SPYRE_TRY(expect("bytes"));
    SPYRE_TRY(expect_type("index"));
    return define(ssa, atom_form({.kind = AtomKind::kPool, .index = 0}));
  }

  Status parse_extract(const std::string& ssa) {
    const std::string what(token_.text);
    if (what != "value" && what != "granularity" && what != "max_value") {
      return refuse("value, granularity or max_value");
    }
    advance();
    SPYRE_TRY(expect("from"));
    SPYRE_ASSIGN_OR_RETURN(const std::string source, name('%', "a parameter"));
    const auto parameter = parameters_.find(source);
    if (parameter == parameters_.end()) {
      return refuse(fmt::format("'{}'", source), "a parameter of the function");
    }
    SPYRE_TRY(expect(":"));
    SPYRE_TRY(parse_input_arg_type(nullptr));
    SPYRE_TRY(expect("->"));
    SPYRE_TRY(expect("index"));
    const Parameter& row = out_.parameters[parameter->second];
    if (what == "value") {
      return define(ssa, atom_form({.kind = AtomKind::kParameter, .index = parameter->second}));
    }
    const std::optional<int64_t> bound = what == "granularity" ? row.granularity : row.max_value;
    if (!bound) {
      return refuse(fmt::format("the {} of '{}'", what, source), "parameters whose type states it");
    }
    return define(ssa, constant_form(*bound));
  }

  Status parse_for(std::vector<Step>& steps, int depth, int64_t trips) {
    if (depth >= kMaxLoopDepth) {
      return refuse("a deeper loop", fmt::format("at most {} nested", kMaxLoopDepth));
    }
    advance();
    Loop loop;
    loop.counter = out_.loop_count++;
    SPYRE_ASSIGN_OR_RETURN(const std::string counter, name('%', "a loop variable"));
    SPYRE_TRY(expect("="));
    SPYRE_ASSIGN_OR_RETURN(loop.lower, operand());
    SPYRE_TRY(expect("to"));
    SPYRE_ASSIGN_OR_RETURN(loop.upper, operand());
    SPYRE_TRY(expect("step"));
    SPYRE_ASSIGN_OR_RETURN(loop.step, operand());
    SPYRE_TRY(expect("{"));
    SPYRE_ASSIGN_OR_RETURN(const int64_t inner, trips_inside(loop, trips));
    const size_t outside = scope_.size();
    SPYRE_TRY(define(counter, atom_form({.kind = AtomKind::kLoop, .index = loop.counter})));
    SPYRE_TRY(parse_block(loop.body, depth + 1, inner));
    for (; scope_.size() > outside; scope_.pop_back()) {
      values_.erase(scope_.back());  // what the body defines is gone after it
    }
    steps.push_back({std::move(loop)});
    return Status();
  }

  Result<int64_t> trips_inside(const Loop& loop, int64_t outer) const {
    if (!loop.step.terms.empty()) {
      return outer;  // known only at launch, checked there
    }
    if (loop.step.constant < 1) {
      return refuse(fmt::format("a step of {}", loop.step.constant), "at least 1");
    }
    if (!loop.lower.terms.empty() || !loop.upper.terms.empty()) {
      return outer;
    }
    int64_t span = 0;
    if (__builtin_sub_overflow(loop.upper.constant, loop.lower.constant, &span) || span < 0 ||
        span / loop.step.constant > kMaxTripCount) {
      return refuse(fmt::format("a loop from {} to {}", loop.lower.constant, loop.upper.constant),
                    fmt::format("0 to {} rounds", kMaxTripCount));
    }
    const int64_t rounds = span / loop.step.constant + (span % loop.step.constant != 0 ? 1 : 0);
    const int64_t inner = rounds * outer;
    if (inner > kMaxExecutes) {
      return refuse(fmt::format("loops of {} rounds in all", inner), fmt::format("at most {}", kMaxExecutes));
    }
    return inner;
  }

  Status parse_execute(std::vector<Step>& steps, int64_t trips) {
    advance();
    std::vector<LinearForm> operands;
    SPYRE_TRY(expect("("));
    SPYRE_TRY(parse_operands(")", operands));
    std::optional<std::string> sdsc;
    std::vector<int64_t> ids;
    SPYRE_TRY(expect("{"));
    while (!accept("}")) {
      const std::string key(token_.text);
      if (token_.kind != TokenKind::kWord && token_.kind != TokenKind::kString) {
        return refuse("sdsc_filename or symbol_ids");
      }
      advance();
      SPYRE_TRY(expect("="));
      if (key == "sdsc_filename") {
        if (token_.kind != TokenKind::kString) {
          return refuse("a file name in quotes");
        }
        sdsc = std::string(token_.text);
        advance();
      } else if (key == "symbol_ids") {
        SPYRE_TRY(parse_ids(ids));
      } else {
        return refuse(fmt::format("the attribute '{}'", key), "sdsc_filename and symbol_ids");
      }
      if (!is_sign("}")) {
        SPYRE_TRY(expect(","));
      }
    }
    return add_execute(steps, trips, sdsc, ids, operands);
  }

  Status parse_ids(std::vector<int64_t>& ids) {
    SPYRE_TRY(expect("["));
    while (!accept("]")) {
      SPYRE_ASSIGN_OR_RETURN(const int64_t id, integer());
      ids.push_back(id);
      if (ids.size() > 4096) {
        return refuse("more ids", "at most 4096");
      }
      if (!is_sign("]")) {
        SPYRE_TRY(expect(","));
      }
    }
    return Status();
  }

  Status add_execute(std::vector<Step>& steps, int64_t trips, const std::optional<std::string>& sdsc,
                     const std::vector<int64_t>& ids, const std::vector<LinearForm>& operands) {
    if (!sdsc) {
      return refuse("an execute without sdsc_filename", "one");
    }
    if (ids.size() != operands.size()) {
      return refuse(fmt::format("{} symbol_ids for {} operands", ids.size(), operands.size()),
                    "one id per operand");
    }
    executes_ += trips;
    if (executes_ > kMaxExecutes) {
      return refuse(fmt::format("{} executes", executes_), fmt::format("at most {}", kMaxExecutes));
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
        return refuse(fmt::format("the symbol id {}", ids[i]), "negative ids, each once");
      }
      execute.bindings.push_back({.symbol = ids[i], .value = operands[i]});
    }
    steps.push_back({std::move(execute)});
    return Status();
  }

  Lexer lexer_;
  const std::string& file_;
  Token token_;
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
