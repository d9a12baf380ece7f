#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "spyre/base/result.h"
#include "spyre/graph/graph.h"

/// Builds the nodes of one operator in a graph: a graph of its own for an eager call, or the place of a call in a
/// captured one. Either way they are the nodes that somebody could have written as text.
///
///     aten.add.Tensor(x : [4, 100], y : [4, 1]) -> out : [4, 100]
///
///     NodeBuilder node = builder.node(builder.result(), {4, 100});
///     node.store(node.op("add", {node.load(x), node.load(y)}));
///
/// Tensors are views of buffers that exist; index expressions come from their sizes, strides and offsets, so that views
/// cost nothing.
///
/// A call may come from text that nobody checked. What does not fit together (an operand with more dimensions than the
/// result, a tensor without elements that is read) is remembered, and `status` refuses it; nothing is emitted for it.
namespace spyre::forms {

Error refuse(std::string message);

/// What a form depends on besides its arguments.
struct Options {
  HostType default_float = HostType::kFloat32;  ///< torch.get_default_dtype()
  int float32_parts =
      3;  ///< how many 16-bit parts an fp32 value has in a product: torch.set_float32_matmul_precision
  bool positions_exist =
      false;  ///< somebody has looked at the positions that tensors hold, as eager calls do
};

/// Where the nodes come from, and how what is new is named.
struct Origin {
  std::string aten, source;  ///< of the nodes: operator, file and line
  std::string prefix;        ///< starts the names of new buffers and nodes
};

class NodeBuilder;

class Builder {
 public:
  /// `results` are views of buffers of `graph` that the form fills.
  Builder(Graph& graph, std::vector<TensorView> results, Origin origin, Options options = {});

  const TensorView& result(size_t i = 0) const;
  size_t results() const { return results_.size(); }
  /// Whether anybody sees the result: a gradient may not be asked for, or have no elements.
  bool wants(size_t i) const { return result(i).buffer >= 0; }
  /// A row-major buffer that lives only inside the graph.
  TensorView local(std::vector<int64_t> size, HostType dtype);
  const Options& options() const { return options_; }
  /// How the buffer behind a tensor lies on the card; none where nobody has decided yet.
  std::optional<DeviceLayout> layout(const TensorView& tensor) const;

  /// A loop nest that fills `target`: one loop for each entry of `extents`, then one reduced loop for each of
  /// `reduced`. At most one builder is open at a time; its `store` closes it.
  NodeBuilder node(const TensorView& target, const std::vector<int64_t>& extents,
                   const std::vector<int64_t>& reduced = {});

  /// The form of another operator as a step of this one: it fills these views instead of the results.
  template <typename Form, typename Arguments>
  void apply(Form form, const Arguments& arguments, std::string_view op, std::vector<TensorView> into) {
    std::swap(results_, into);
    const Status done = form(*this, arguments, op);
    std::swap(results_, into);
    if (!done.ok()) {
      fail(done.error().message);
    }
  }

  /// The first thing that did not fit.
  const Status& status() const { return status_; }
  void fail(std::string message);

 private:
  friend class NodeBuilder;

  Graph& graph_;
  std::vector<TensorView> results_;
  Origin origin_;
  Options options_;
  Status status_;
  int locals_ = 0, nodes_ = 0;
};

/// A value of a body: its position.
struct Value {
  int at = -1;
};

using Attributes = std::vector<std::pair<std::string, double>>;

/// The operation of a name that a form uses; a name without a row of graph/body_ops.def is a bug of the form.
BodyOp body_op(std::string_view name);

class NodeBuilder {
 public:
  /// The position of the i-th loop, reduced loops behind the others.
  Expr loop(size_t i) const;
  size_t output_loops() const { return output_loops_; }
  /// The positions of `count` loops, from the i-th on.
  std::vector<Expr> loops(size_t first, size_t count) const;

  /// The element at a position, one coordinate for each dimension of the tensor.
  Value load(const TensorView& tensor, const std::vector<Expr>& position);
  /// The element that broadcasting puts at the current point of the output loops: dimensions align on the right.
  Value load(const TensorView& tensor);
  Value constant(double value, HostType dtype);
  /// A position as a number.
  Value index(const Expr& position, HostType dtype);
  Value op(BodyOp op, const std::vector<Value>& operands, Attributes attributes = {});
  /// By the name that a row of forms/table.def gives.
  Value op(std::string_view name, const std::vector<Value>& operands, Attributes attributes = {});
  Value reduce(std::string_view kind, const std::vector<Value>& operands, Attributes attributes = {});
  /// A sum of products over the reduced loops; 16-bit operands may have a float32 one.
  Value dot(Value x, Value w, HostType dtype, Attributes attributes = {});
  /// The value as another dtype; itself if it is one already.
  Value as(Value value, HostType dtype);
  HostType dtype(Value value) const { return node_.body[static_cast<size_t>(value.at)].dtype; }
  /// A position that an index tensor holds, of `extent` that exist; for a coordinate of `load` and `store`. A run with
  /// another one faults, also where the tensor is a part of a buffer that has more; unless they were looked at before.
  Expr indirect(Value value, int64_t extent);

  /// Ends the node: at the current point of the output loops, or at the position given.
  void store(Value value);
  void store(Value value, const std::vector<Expr>& position);

 private:
  friend class Builder;
  NodeBuilder(Builder& builder, Node node, TensorView target, size_t output_loops)
      : builder_(builder), node_(std::move(node)), target_(std::move(target)), output_loops_(output_loops) {}

  Value append(Instruction instruction);
  Expr offset_of(const TensorView& tensor, const std::vector<Expr>& position) const;
  std::vector<Expr> broadcast(const TensorView& tensor) const;

  Builder& builder_;
  Node node_;
  TensorView target_;
  size_t output_loops_;
};

}  // namespace spyre::forms
