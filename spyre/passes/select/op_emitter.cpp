#include "spyre/passes/select/op_emitter.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "spyre/base/error.h"
#include "spyre/layout/sen169.h"

namespace spyre {
namespace {

// What a value held this way is called when the program has no name for it. Bits are what the program calls them.
HostType host_type_of(Held held, HostType named) {
  switch (held) {
    case Held::kFp16:
      return HostType::kFloat16;
    case Held::kFp32:
      return HostType::kFloat32;
    case Held::kInt32:
      return HostType::kInt32;
    case Held::kBits:
      return named;
  }
  return named;
}

}  // namespace

Held held_as(HostType type) {
  switch (info_of(type).device_format) {
    case DataFormat::SEN169_FP16:
      return Held::kFp16;
    case DataFormat::IEEE_FP32:
      return Held::kFp32;
    case DataFormat::IEEE_INT32:
      return Held::kInt32;
    default:
      return Held::kBits;
  }
}

OpEmitter::OpEmitter(GraphBuffers& graph, const Node& node, std::vector<DeviceNode>& out)
    : graph_(graph), node_(node), out_(out), loops_(node.loops), first_(out.size()) {}

Error OpEmitter::refuse(std::string_view message) const {
  return Error(ErrorKind::kUnsupported, fmt::format("select-ops: node '{}': {}", node_.name, message))
      .about(origin_of(node_));
}

std::vector<std::string> OpEmitter::reduced_loops() const {
  std::vector<std::string> names;
  for (const Loop& loop : node_.loops) {
    if (loop.reduced && loop.extent != 1) names.push_back(loop.name);
  }
  return names;
}

int64_t OpEmitter::extent(std::string_view name) const {
  const auto loop = std::find_if(loops_.begin(), loops_.end(), [&](const Loop& l) { return l.name == name; });
  SPYRE_CHECK(loop != loops_.end(), "a loop of the node");
  return loop->extent;
}

std::string OpEmitter::add_loop(std::string_view name, int64_t extent) {
  loops_.insert(loops_.begin(), {.name = fmt::format("{}{}", name, loops_.size()), .extent = extent});
  return loops_.front().name;
}

bool OpEmitter::is_exact_float(const Operand& integer) {
  return integer.most <= 1 << 24;
}

bool OpEmitter::uses(const Operand& operand, std::string_view loop) const {
  return operand.access && operand.access->index.symbols().contains(std::string(loop));
}

void OpEmitter::define(Operand value) {
  values_.push_back(std::move(value));
}

const Operand& OpEmitter::value_named(std::string_view name) const {
  return values_[static_cast<size_t>(std::stoi(std::string(name.substr(1))))];
}

Result<Operand> OpEmitter::load(const Instruction& load) {
  // Positions come from memory: a number or a computed value gets a buffer first.
  SPYRE_TRY(hold_indices(load.buffer, load.index));
  const HostType type = graph_.buffers[static_cast<size_t>(load.buffer)].dtype;
  Operand loaded{.access = Access{load.buffer, load.index}, .type = type, .held = held_as(type)};
  if (type == HostType::kBool) loaded.most = 1;
  // The card gathers with a copy of its own; what follows reads the copy.
  if (load.index.index_tensors().empty()) return loaded;
  Operand gathered = op(OpId::identity, {loaded});
  gathered.type = type;
  gathered.most = loaded.most;
  return gathered;
}

Status OpEmitter::hold_indices(BufferId buffer, const Expr& index) {
  for (const std::string& name : index.index_tensors()) {
    Operand& value = values_[static_cast<size_t>(std::stoi(std::string(name.substr(1))))];
    if (value.below && !ends_with_table(value, buffer, index, name)) value = checked(value);
    if (value.held != Held::kInt32) {
      SPYRE_ASSIGN_OR_RETURN(value, convert(value, HostType::kInt32));
    }
    if (value.is_constant()) value.access = materialize(value);
  }
  return Status();
}

// Whether the card itself finds positions that do not exist: those past the rows of a table. It does not know
// of a part of a table.
bool OpEmitter::ends_with_table(const Operand& position, BufferId buffer, const Expr& index,
                                std::string_view name) const {
  const Buffer& table = graph_.buffers[static_cast<size_t>(buffer)];
  if (table.offset != 0 || table.storage != 0) return false;
  return std::any_of(index.terms().begin(), index.terms().end(), [&](const ExprTerm& term) {
    if (term.kind != AtomKind::kIndirect || term.name != name) return false;
    for (size_t d = 0; d < table.size.size(); ++d) {
      if (table.stride[d] == term.coefficient && table.size[d] == *position.below) return true;
    }
    return false;
  });
}

const Operand& OpEmitter::value(int position) {
  Operand& value = values_[static_cast<size_t>(position)];
  if (value.below) value = checked(value);
  return value;
}

// The card faults where a position is past the end of a table. So whether any index is wrong, 0 or 1, is the
// position in a table of one row, and what is read there is added to the indices: it is zero.
Operand OpEmitter::checked(Operand index) {
  const double end = static_cast<double>(*std::exchange(index.below, std::nullopt));
  index = hold(index, Held::kInt32);
  // A float that stands for an integer is on the same side of a bound that floats hold.
  const Operand position = hold(index, Held::kFp32);
  Operand wrong = op(OpId::maximum, {op(OpId::lesserthan, {position, constant(0, HostType::kFloat32)}),
                                     op(OpId::greaterequal, {position, constant(end, HostType::kFloat32)})});
  wrong.type = HostType::kBool;
  for (const Loop& loop : loops_of({wrong})) wrong = reduce(OpId::max, {wrong}, {loop.name});
  wrong = op(OpId::add, {wrong, wrong});
  wrong.type = HostType::kBool;  // a whole number
  const Access row = materialize(hold(wrong, Held::kInt32));
  Operand sum = op(OpId::addi32toi32, {index, first_of_table(row)});
  sum.type = index.type;
  sum.most = end;
  return sum;
}

// The first element of row `row` of a table that has two rows, of zeros.
Operand OpEmitter::first_of_table(const Access& row) {
  constexpr int64_t kLanes = 32;
  const std::string lane = "lane", position = "v0";
  const BufferId table = graph_.add_buffer({.name = "two_rows",
                                            .dtype = HostType::kInt32,
                                            .size = {2, kLanes},
                                            .stride = {kLanes, 1},
                                            .fill = Fill{}});
  Buffer taken{.name = fmt::format("{}_{}", node_.name, out_.size() - first_), .dtype = HostType::kInt32};
  taken.size = {kLanes};
  taken.stride = {1};
  const BufferId target = graph_.add_buffer(std::move(taken));
  DeviceNode node{
      {.name = graph_.buffers[static_cast<size_t>(target)].name, .loops = {{.name = lane, .extent = kLanes}}},
      {.inputs = {{table, kLanes * Expr::indirect(position) + Expr::symbol(lane)}},
       .indices = {{position, row}},
       .output = {target, Expr::symbol(lane)}}};
  make_step_of(node_, node);
  out_.push_back(std::move(node));
  return {.access = Access{target, Expr()}, .type = HostType::kInt32, .held = Held::kInt32};
}

void OpEmitter::take_indices(DeviceOp& op, Expr& index) {
  for (const std::string& name : index.index_tensors()) {
    const std::string renamed = fmt::format("v{}", op.indices.size());
    index = rename_index_tensor(index, name, renamed);
    op.indices.emplace_back(renamed, *value_named(name).access);
  }
}

Operand OpEmitter::constant(double value, HostType type) const {
  return {.access = {}, .value = value, .type = type, .held = held_as(type), .most = std::fabs(value)};
}

Access OpEmitter::materialize(const Operand& operand) {
  if (operand.access) return *operand.access;
  const HostType type = host_type_of(operand.held, operand.type);
  const Fill fill{.start = operand.value, .step = 0};
  for (size_t i = 0; i < graph_.buffers.size(); ++i) {
    const Buffer& known = graph_.buffers[i];
    if (known.fill == fill && known.size.empty() && known.dtype == type)
      return {static_cast<BufferId>(i), Expr()};
  }
  return {graph_.add_buffer({.name = "constant", .dtype = type, .size = {}, .stride = {}, .fill = fill}),
          Expr()};
}

Result<Operand> OpEmitter::ramp(const Expr& index, HostType type) {
  const Held held = held_as(type) == Held::kInt32 ? Held::kInt32 : Held::kFp32;
  std::optional<Operand> sum;
  double constant_part = static_cast<double>(index.constant_term());
  for (const ExprTerm& term : index.terms()) {
    if (term.kind != AtomKind::kSymbol)
      return refuse(
          fmt::format("'{}' as a value; allowed are sums of loops times numbers", index.to_string()));
    const auto loop =
        std::find_if(loops_.begin(), loops_.end(), [&](const Loop& l) { return l.name == term.name; });
    SPYRE_CHECK(loop != loops_.end(), "verified: indices use loops of their node");
    const Fill fill{.start = constant_part, .step = static_cast<double>(term.coefficient)};
    constant_part = 0;
    const BufferId id = graph_.add_buffer({.name = "ramp",
                                           .dtype = host_type_of(held, type),
                                           .size = {loop->extent},
                                           .stride = {1},
                                           .fill = fill});
    const double last = fill.start + fill.step * static_cast<double>(loop->extent - 1);
    const Operand part{.access = Access{id, Expr::symbol(loop->name)},
                       .type = type,
                       .held = held,
                       .most = std::max(std::fabs(fill.start), std::fabs(last))};
    const double most = part.most + (sum ? sum->most : 0);
    sum = sum ? op(held == Held::kInt32 ? OpId::addi32toi32 : OpId::add, {*sum, part}) : part;
    sum->most = most;
  }
  if (!sum) return constant(constant_part, type);
  sum->type = host_type_of(held, type);
  return convert(*sum, type);
}

std::vector<Loop> OpEmitter::loops_of(const std::vector<Operand>& operands) const {
  std::set<std::string> used;
  for (const Operand& operand : operands) {
    if (!operand.access) continue;
    used.merge(operand.access->index.symbols());
    for (const std::string& name : operand.access->index.index_tensors()) {
      used.merge(value_named(name).access->index.symbols());
    }
  }
  std::vector<Loop> loops;
  for (const Loop& loop : loops_) {
    if (used.contains(loop.name)) loops.push_back(loop);
  }
  return loops;
}

Operand OpEmitter::emit(OpId id, bool reduces, std::vector<Loop> loops, const std::vector<Operand>& operands,
                        Held held, std::vector<std::pair<std::string, double>> attributes) {
  DeviceOp op{.op = id, .reduces = reduces, .constants = std::move(attributes)};
  for (const Operand& operand : operands) {
    op.inputs.push_back(materialize(operand));
    take_indices(op, op.inputs.back().index);
  }
  std::vector<Loop> kept;
  for (const Loop& loop : loops) {
    if (!loop.reduced) kept.push_back(loop);
  }
  const HostType type = host_type_of(held, operands[0].type);
  Buffer buffer{.name = fmt::format("{}_{}", node_.name, out_.size() - first_), .dtype = type};
  for (const Loop& loop : kept) buffer.size.push_back(loop.extent);
  buffer.stride = contiguous_strides(buffer.size);
  op.output = {graph_.add_buffer(std::move(buffer)), row_major(kept)};

  DeviceNode node{{.name = graph_.buffers.back().name, .loops = std::move(loops)}, std::move(op)};
  make_step_of(node_, node);
  for (const auto& hint : node_.hints) {
    const bool has = std::any_of(node.loops.begin(), node.loops.end(),
                                 [&](const Loop& l) { return l.name == hint.first; });
    if (has) node.hints.push_back(hint);
  }
  out_.push_back(std::move(node));
  return {.access = out_.back().op.output, .type = type, .held = held};
}

Operand OpEmitter::op(OpId id, const std::vector<Operand>& operands, std::optional<Held> held,
                      std::vector<std::pair<std::string, double>> attributes) {
  std::vector<Loop> loops = loops_of(operands);
  // Loops that a later reduction folds are ordinary ones here.
  for (Loop& loop : loops) loop.reduced = false;
  return emit(id, false, std::move(loops), operands, held.value_or(operands[0].held), std::move(attributes));
}

Operand OpEmitter::reduce(OpId id, const std::vector<Operand>& operands,
                          const std::vector<std::string>& folded,
                          std::vector<std::pair<std::string, double>> attributes, std::optional<Held> held) {
  std::vector<Loop> kept, reduced;
  for (Loop loop : loops_of(operands)) {
    loop.reduced = std::find(folded.begin(), folded.end(), loop.name) != folded.end();
    (loop.reduced ? reduced : kept).push_back(loop);
  }
  kept.insert(kept.end(), reduced.begin(), reduced.end());
  return emit(id, true, std::move(kept), operands, held.value_or(operands[0].held), std::move(attributes));
}

Operand OpEmitter::reduce_part(OpId id, std::vector<Operand> operands, const std::string& loop, int64_t first,
                               int64_t count, Held held) {
  std::vector<Loop> loops, part;
  for (Loop l : loops_of(operands)) {
    l.reduced = l.name == loop;
    if (l.reduced) l.extent = count;
    (l.reduced ? part : loops).push_back(std::move(l));
  }
  loops.insert(loops.end(), part.begin(), part.end());
  for (Operand& operand : operands) {
    if (!operand.access) continue;
    Expr& index = operand.access->index;
    index = index + Expr::constant(first * index.coefficient(loop));
  }
  return emit(id, true, std::move(loops), operands, held, {});
}

Operand OpEmitter::hold(const Operand& value, Held held) {
  if (value.held == held) return value;
  Operand result = value;
  if (value.is_constant()) {
    result.held = held;
    return result;
  }
  SPYRE_CHECK(value.held != Held::kBits && held != Held::kBits, "the program converts bits, and is refused");
  if (const Buffer& buffer = graph_.buffers[static_cast<size_t>(value.access->buffer)]; buffer.fill) {
    Buffer twin = buffer;  // a ramp can be made in any format
    twin.dtype = host_type_of(held, value.type);
    result.access->buffer = graph_.add_buffer(std::move(twin));
    result.held = held;
    return result;
  }
  // By way of fp32, which both others convert to and from.
  if (value.held == Held::kFp16) result = op(OpId::dl16tofp32, {value}, Held::kFp32);
  if (value.held == Held::kInt32) result = op(OpId::int32tofp32, {value}, Held::kFp32);
  if (held == Held::kFp16) {
    result = op(OpId::fp32todl16, {result}, Held::kFp16);
  } else if (held == Held::kInt32) {
    const bool is_whole = value.type == HostType::kBool;
    result = op(OpId::fp32toint32, {is_whole ? result : whole_part(result)}, Held::kInt32);
  }
  result.type = value.type;
  result.most = value.most;
  return result;
}

Operand OpEmitter::whole_part(const Operand& value) {
  const Operand zero = constant(0, HostType::kFloat32);
  const Operand up = op(OpId::neg, {op(OpId::floor, {op(OpId::neg, {value})})});
  return op(OpId::where3, {op(OpId::greaterequal, {value, zero}), op(OpId::floor, {value}), up});
}

Result<Operand> OpEmitter::convert(const Operand& value, HostType type) {
  const Held held = held_as(type);
  Operand result = value;
  const bool of_bits = value.held == Held::kBits || held == Held::kBits;
  if (of_bits && value.type != type) {
    return refuse(
        fmt::format("a conversion from {} to {}; the card converts between float16, bfloat16, float32, "
                    "bool, int32 and int64",
                    to_string(value.type), to_string(type)));
  }
  const bool may_overflow = value.held == Held::kFp32 && held == Held::kFp16 && !value.is_constant() &&
                            value.type != HostType::kBool && value.most > fp32_from_sen169(kSen169MaxFinite);
  if (may_overflow) {
    result = op(
        OpId::clip, {value}, std::nullopt,
        {{"clipMin", -fp32_from_sen169(kSen169MaxFinite)}, {"clipMax", fp32_from_sen169(kSen169MaxFinite)}});
    result.type = value.type;
  }
  if (!of_bits) result = hold(result, held);
  result.type = type;
  return result;
}

bool OpEmitter::reads_elsewhere(const DeviceOp& maker) const {
  return std::any_of(maker.inputs.begin(), maker.inputs.end(), [&](const Access& input) {
    return input.buffer == node_.target && !(input.index == node_.target_index);
  });
}

Status OpEmitter::store(const Operand& value) {
  const HostType type = graph_.buffers[static_cast<size_t>(node_.target)].dtype;
  SPYRE_TRY(hold_indices(node_.target, node_.target_index));
  SPYRE_ASSIGN_OR_RETURN(const Operand held, convert(value, type));
  std::vector<Loop> loops;
  for (const Loop& loop : node_.loops) {
    if (!loop.reduced) loops.push_back(loop);
  }
  // The node that made the value can store it itself, unless it runs over fewer loops.
  const bool made_here = out_.size() > first_ && held.access &&
                         out_.back().op.output.buffer == held.access->buffer &&
                         node_.target_index.index_tensors().empty() && !reads_elsewhere(out_.back().op);
  if (made_here) {
    DeviceNode& maker = out_.back();
    std::set<std::string> have;
    for (const Loop& loop : maker.loops) {
      if (!loop.reduced) have.insert(loop.name);
    }
    const bool complete = std::all_of(loops.begin(), loops.end(),
                                      [&](const Loop& l) { return l.extent == 1 || have.contains(l.name); });
    if (complete) {
      SPYRE_CHECK(static_cast<size_t>(maker.op.output.buffer) + 1 == graph_.buffers.size(),
                  "the newest buffer is the last");
      maker.op.output = {node_.target, node_.target_index};
      maker.name = node_.name;
      for (const Loop& loop : loops) {
        if (!have.contains(loop.name)) maker.loops.insert(maker.loops.begin(), loop);
      }
      graph_.buffers.pop_back();
      return Status();
    }
  }
  Operand source = held;
  if (held.access && held.access->buffer == node_.target && !(held.access->index == node_.target_index))
    source = op(OpId::identity, {held});
  DeviceOp copy{.inputs = {materialize(source)}, .output = {node_.target, node_.target_index}};
  take_indices(copy, copy.inputs[0].index);
  take_indices(copy, copy.output.index);
  DeviceNode node{{.name = node_.name, .loops = std::move(loops)}, std::move(copy)};
  make_step_of(node_, node);
  node.hints = node_.hints;
  out_.push_back(std::move(node));
  return Status();
}

}  // namespace spyre
