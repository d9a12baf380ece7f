#include "spyre/forms/builder.h"

#include <fmt/format.h>

#include "spyre/layout/device_layout.h"

namespace spyre::forms {

Error refuse(std::string message) {
  return {ErrorKind::kUnsupported, std::move(message)};
}

Builder::Builder(Graph& graph, std::vector<TensorView> results, Origin origin, Options options)
    : graph_(graph), results_(std::move(results)), origin_(std::move(origin)), options_(options) {}

const TensorView& Builder::result(size_t i) const {
  SPYRE_CHECK(i < results_.size(), "expand_call has counted the results");
  return results_[i];
}

TensorView Builder::local(std::vector<int64_t> size, HostType dtype) {
  const std::vector<int64_t> stride = contiguous_strides(size);
  const BufferId id = graph_.add_buffer({.name = fmt::format("{}tmp{}", origin_.prefix, locals_++),
                                         .dtype = dtype,
                                         .size = size,
                                         .stride = stride});
  return {.buffer = id, .dtype = dtype, .size = std::move(size), .stride = stride};
}

std::optional<DeviceLayout> Builder::layout(const TensorView& tensor) const {
  if (tensor.buffer < 0) {
    return std::nullopt;
  }
  return graph_.buffers[static_cast<size_t>(tensor.buffer)].layout;
}

NodeBuilder Builder::node(const TensorView& target, const std::vector<int64_t>& extents,
                          const std::vector<int64_t>& reduced) {
  Node node{{.name = fmt::format("{}n{}", origin_.prefix, nodes_++),
             .aten = origin_.aten,
             .source = origin_.source}};
  node.target = target.buffer;
  for (size_t i = 0; i < extents.size(); ++i) {
    node.loops.push_back({.name = fmt::format("p{}", i), .extent = extents[i]});
  }
  for (size_t i = 0; i < reduced.size(); ++i) {
    node.loops.push_back({.name = fmt::format("r{}", i), .extent = reduced[i], .reduced = true});
  }
  return {*this, std::move(node), target, extents.size()};
}

void Builder::fail(std::string message) {
  if (status_.ok()) {
    status_ = refuse(std::move(message));
  }
}

Expr NodeBuilder::loop(size_t i) const {
  if (i >= node_.loops.size()) {
    builder_.fail("its operands have other dimensions than its results");
    return {};
  }
  return Expr::symbol(node_.loops[i].name);
}

std::vector<Expr> NodeBuilder::loops(size_t first, size_t count) const {
  std::vector<Expr> positions;
  for (size_t i = first; i < first + count; ++i) {
    positions.push_back(loop(i));
  }
  return positions;
}

Value NodeBuilder::append(Instruction instruction) {
  node_.body.push_back(std::move(instruction));
  return {static_cast<int>(node_.body.size()) - 1};
}

Expr NodeBuilder::offset_of(const TensorView& tensor, const std::vector<Expr>& position) const {
  if (position.size() != tensor.size.size()) {
    builder_.fail("its operands have other dimensions than its results");
    return {};
  }
  Expr index = Expr::constant(tensor.offset);
  for (size_t d = 0; d < position.size(); ++d) {
    if (tensor.size[d] == 1) {
      continue;
    }
    // Sizes of results are the word of whoever wrote the call.
    const IndexRange range = range_of(position[d], node_.loops);
    if (range.low < 0 || range.high >= tensor.size[d]) {
      builder_.fail("its operands have other sizes than its results");
    }
    index = index + tensor.stride[d] * position[d];
  }
  return index;
}

std::vector<Expr> NodeBuilder::broadcast(const TensorView& tensor) const {
  const size_t rank = tensor.size.size();
  if (rank > output_loops_) {
    builder_.fail("an operand has more dimensions than the result");
    return {};
  }
  return loops(output_loops_ - rank, rank);
}

Value NodeBuilder::load(const TensorView& tensor, const std::vector<Expr>& position) {
  if (tensor.buffer < 0) {
    builder_.fail("it reads a tensor without elements");
  }
  Instruction load;
  load.op = BodyOp::load;
  load.buffer = tensor.buffer;
  load.index = offset_of(tensor, position);
  load.dtype = tensor.dtype;
  return append(std::move(load));
}

Value NodeBuilder::load(const TensorView& tensor) {
  return load(tensor, broadcast(tensor));
}

Value NodeBuilder::constant(double value, HostType dtype) {
  Instruction constant;
  constant.op = BodyOp::constant;
  constant.value = value;
  constant.dtype = dtype;
  return append(std::move(constant));
}

Value NodeBuilder::index(const Expr& position, HostType dtype) {
  Instruction index;
  index.op = BodyOp::index;
  index.index = position;
  index.dtype = dtype;
  return append(std::move(index));
}

BodyOp body_op(std::string_view name) {
  const std::optional<BodyOp> op = body_op_from_name(name);
  SPYRE_CHECK(op.has_value(), fmt::format("'{}' is an operation of bodies", name));
  return *op;
}

Value NodeBuilder::op(std::string_view name, const std::vector<Value>& operands, Attributes attributes) {
  return op(body_op(name), operands, std::move(attributes));
}

Value NodeBuilder::op(BodyOp op, const std::vector<Value>& operands, Attributes attributes) {
  Instruction instruction;
  instruction.op = op;
  instruction.attributes = std::move(attributes);
  std::vector<HostType> types;
  for (const Value operand : operands) {
    instruction.operands.push_back(operand.at);
    types.push_back(dtype(operand));
  }
  instruction.dtype = result_type(op, types);
  return append(std::move(instruction));
}

Value NodeBuilder::reduce(std::string_view kind, const std::vector<Value>& operands, Attributes attributes) {
  return op("reduce." + std::string(kind), operands, std::move(attributes));
}

Value NodeBuilder::dot(Value x, Value w, HostType dtype, Attributes attributes) {
  const Value sum = reduce("dot", {x, w}, std::move(attributes));
  node_.body[static_cast<size_t>(sum.at)].dtype = dtype;
  return sum;
}

Value NodeBuilder::as(Value value, HostType wanted) {
  if (dtype(value) == wanted) {
    return value;
  }
  Instruction cast;
  cast.op = BodyOp::to_dtype;
  cast.operands = {value.at};
  cast.dtype = wanted;
  return append(std::move(cast));
}

Expr NodeBuilder::indirect(Value value, int64_t extent) {
  if (!builder_.options().positions_exist) {
    value = op(BodyOp::checked_index, {value}, {{"size", static_cast<double>(extent)}});
  }
  return Expr::indirect(fmt::format("v{}", value.at));
}

void NodeBuilder::store(Value value) {
  store(value, broadcast(target_));
}

void NodeBuilder::store(Value value, const std::vector<Expr>& position) {
  node_.result = as(value, target_.dtype).at;
  node_.target_index = offset_of(target_, position);
  if (builder_.status().ok()) {
    builder_.graph_.nodes.push_back(std::move(node_));
  }
}

}  // namespace spyre::forms
