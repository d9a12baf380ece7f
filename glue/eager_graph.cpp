#include "glue/eager_graph.h"

#include <algorithm>
#include <functional>

#include "glue/dense_tensor.h"
#include "glue/storage.h"
#include "glue/tensor_access.h"
#include "spyre/base/error.h"
#include "spyre/layout/device_layout.h"

namespace spyre::glue {
namespace {

/// Names of a graph: arg0, arg1. (Here `fmt` would be the one that PyTorch brings, another version than ours.)
std::string numbered(const char* prefix, size_t number) {
  return prefix + std::to_string(number);
}

Graph named(const std::string& aten) {
  Graph graph;
  graph.name = aten;
  std::replace_if(
      graph.name.begin(), graph.name.end(), [](char c) { return std::isalnum(c) == 0; }, '_');
  return graph;
}

}  // namespace

GraphBuilder::GraphBuilder(std::string aten, Views views)
    : aten_(std::move(aten)), views_(views), graph_(named(aten_)) {}

BufferId GraphBuilder::add(Buffer buffer) {
  parts_.push_back({buffer.size, buffer.stride, buffer.offset});
  return graph_.add_buffer(std::move(buffer));
}

void GraphBuilder::add_result(const ResultSpec& spec) {
  results_.push_back(
      add({.name = "out", .dtype = host_type_of(spec.dtype), .size = spec.size, .stride = spec.stride}));
  graph_.results.push_back(results_.back());
}

void GraphBuilder::add_result(const at::Tensor& written) {
  results_.push_back(input(written));
  graph_.results.push_back(results_.back());
}

namespace {

/// Logical elements of the whole storage, of which the tensor may be a part.
int64_t elements_of_storage(const at::Tensor& tensor) {
  const StorageContext* context = context_of(*tensor.storage().unsafeGetStorageImpl());
  return context != nullptr && context->image ? context->image->numel : 0;
}

}  // namespace

bool is_part(const at::Tensor& tensor) {
  return tensor.numel() > 0 && tensor.numel() < elements_of_storage(tensor);
}

BufferId GraphBuilder::input(const at::Tensor& tensor) {
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (is_same_view(inputs_[i], tensor)) {
      return *graph_.find(numbered("arg", i));
    }
  }
  Buffer buffer{.name = numbered("arg", inputs_.size()),
                .dtype = host_type_of(tensor.scalar_type()),
                .size = tensor.sizes().vec(),
                .stride = tensor.strides().vec(),
                .offset = tensor.storage_offset(),
                .storage = elements_of_storage(tensor),
                .is_input = true,
                .layout = layout_of(tensor)};
  // An expanded dimension is the same elements over and over: one is enough.
  for (size_t d = 0; d < buffer.size.size(); ++d) {
    if (buffer.stride[d] == 0 && buffer.size[d] > 1) {
      buffer.size[d] = 1;
    }
  }
  inputs_.push_back(tensor);
  const BufferId id = add(std::move(buffer));
  Buffer& whole = graph_.buffers[static_cast<size_t>(id)];
  if (views_ == Views::kWhole && is_part(tensor)) {
    if (std::optional<DenseTensor> dense = dense_tensor(*whole.layout, whole.storage)) {
      whole.size = std::move(dense->size);
      whole.stride = std::move(dense->stride);
      whole.offset = 0;
    }
  }
  return id;
}

int GraphBuilder::argument_number(BufferId id) const {
  int number = 0;
  for (BufferId before = 0; before < id; ++before) {
    number += buffer(before).is_input ? 1 : 0;
  }
  return number;
}

BufferId GraphBuilder::local(std::vector<int64_t> size, HostType dtype) {
  std::vector<int64_t> stride = contiguous_strides(size);
  return add({.name = numbered("tmp", graph_.buffers.size()),
              .dtype = dtype,
              .size = std::move(size),
              .stride = std::move(stride)});
}

NodeBuilder GraphBuilder::node(BufferId target, const std::vector<int64_t>& extents,
                               const std::vector<int64_t>& reduced) {
  Node node{.name = numbered("n", graph_.nodes.size()), .target = target, .aten = aten_};
  for (size_t i = 0; i < extents.size(); ++i) {
    node.loops.push_back({.name = numbered("p", i), .extent = extents[i]});
  }
  for (size_t i = 0; i < reduced.size(); ++i) {
    node.loops.push_back({.name = numbered("r", i), .extent = reduced[i], .reduced = true});
  }
  return {*this, std::move(node), extents.size()};
}

Value NodeBuilder::append(Instruction instruction) {
  node_.body.push_back(std::move(instruction));
  return {static_cast<int>(node_.body.size()) - 1};
}

Expr NodeBuilder::offset_of(BufferId id, const std::vector<Expr>& position) const {
  const GraphBuilder::Part& part = graph_.seen(id);
  SPYRE_CHECK(position.size() == part.size.size(), "one coordinate for each dimension");
  Expr index = Expr::constant(part.offset);
  for (size_t d = 0; d < position.size(); ++d) {
    if (part.size[d] != 1) {
      index = index + part.stride[d] * position[d];
    }
  }
  return index;
}

std::vector<Expr> NodeBuilder::broadcast(BufferId id) const {
  const size_t rank = graph_.seen(id).size.size();
  SPYRE_CHECK(rank <= output_loops_, "operands have no more dimensions than the result");
  std::vector<Expr> position;
  for (size_t d = 0; d < rank; ++d) {
    position.push_back(loop(output_loops_ - rank + d));
  }
  return position;
}

Value NodeBuilder::load(BufferId buffer, const std::vector<Expr>& position) {
  Instruction load;
  load.op = "load";
  load.buffer = buffer;
  load.index = offset_of(buffer, position);
  load.dtype = graph_.buffer(buffer).dtype;
  return append(std::move(load));
}

Value NodeBuilder::load(BufferId buffer) {
  return load(buffer, broadcast(buffer));
}

Value NodeBuilder::constant(double value, HostType dtype) {
  Instruction constant;
  constant.op = "constant";
  constant.value = value;
  constant.dtype = dtype;
  return append(std::move(constant));
}

Value NodeBuilder::index(const Expr& position, HostType dtype) {
  Instruction index;
  index.op = "index";
  index.index = position;
  index.dtype = dtype;
  return append(std::move(index));
}

Value NodeBuilder::op(std::string_view name, const std::vector<Value>& operands,
                      std::vector<std::pair<std::string, double>> attributes) {
  Instruction instruction;
  instruction.op = name;
  instruction.attributes = std::move(attributes);
  std::vector<HostType> types;
  for (const Value operand : operands) {
    instruction.operands.push_back(operand.at);
    types.push_back(dtype(operand));
  }
  instruction.dtype = result_type(name, types);
  return append(std::move(instruction));
}

Value NodeBuilder::reduce(std::string_view kind, const std::vector<Value>& operands,
                          std::vector<std::pair<std::string, double>> attributes) {
  return op("reduce." + std::string(kind), operands, std::move(attributes));
}

Value NodeBuilder::dot(Value x, Value w, HostType dtype,
                       std::vector<std::pair<std::string, double>> attributes) {
  const Value sum = reduce("dot", {x, w}, std::move(attributes));
  node_.body[static_cast<size_t>(sum.at)].dtype = dtype;
  return sum;
}

Value NodeBuilder::as(Value value, HostType wanted) {
  if (dtype(value) == wanted) {
    return value;
  }
  Instruction cast;
  cast.op = "to_dtype";
  cast.operands = {value.at};
  cast.dtype = wanted;
  return append(std::move(cast));
}

Expr NodeBuilder::indirect(Value value) {
  return Expr::indirect(numbered("v", value.at));
}

void NodeBuilder::store(Value value) {
  store(value, broadcast(node_.target));
}

void NodeBuilder::store(Value value, const std::vector<Expr>& position) {
  node_.result = as(value, graph_.buffer(node_.target).dtype).at;
  node_.target_index = offset_of(node_.target, position);
  graph_.graph_.nodes.push_back(std::move(node_));
}

}  // namespace spyre::glue
