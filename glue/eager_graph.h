#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <utility>
#include <vector>

#include "glue/dtype.h"
#include "spyre/graph/graph.h"

/// Builds the graph of one eager operator: the same values that `torch.compile` sends as text.
///
///     torch.add(x, y)      x [4, 100], y a column [4, 1]
///
///     GraphBuilder graph("aten.add.Tensor");
///     graph.add_result({.size = {4, 100}, ...});
///     NodeBuilder node = graph.node(graph.result(), {4, 100});
///     node.store(node.op("add", {node.load(x), node.load(y)}));
///
/// Index expressions come from the tensors' own sizes, strides and storage offset, so that views cost
/// nothing.
namespace spyre::glue {

/// The same elements of the same storage, in the same order.
inline bool is_same_view(const at::Tensor& a, const at::Tensor& b) {
  return a.is_alias_of(b) && a.storage_offset() == b.storage_offset() && a.sizes() == b.sizes() &&
         a.strides() == b.strides();
}

/// What the caller will see of a result.
struct ResultSpec {
  std::vector<int64_t> size, stride;
  c10::ScalarType dtype = c10::kHalf;

  friend bool operator==(const ResultSpec&, const ResultSpec&) = default;
};

class NodeBuilder;

/// How a view on the card becomes a buffer: by itself, or as the whole tensor it is a part of, read in part. By itself it
/// is copied in part, when a copy is needed; but what starts inside a stick can only be copied as a whole.
///
///     x[:, 3:] of x [4, 100]     kAlone: [4, 97] from element 3      kWhole: [4, 100], columns from 3 on
enum class Views : uint8_t { kAlone, kWhole };
/// Whether the storage of a tensor on the card has other elements than the tensor's.
bool is_part(const at::Tensor& tensor);

class GraphBuilder {
 public:
  explicit GraphBuilder(std::string aten, Views views = Views::kAlone);

  /// The buffer of an argument on the card; one given twice is one buffer. In the order first asked for,
  /// these are what the kernel's `run` takes.
  BufferId input(const at::Tensor& tensor);
  /// The next result of the operator: fresh memory, or an argument that is written.
  void add_result(const ResultSpec& spec);
  void add_result(const at::Tensor& written);

  BufferId result(size_t i = 0) const { return results_[i]; }
  /// A row-major buffer that lives only inside the graph.
  BufferId local(std::vector<int64_t> size, HostType dtype);

  const std::vector<int64_t>& result_size(size_t i = 0) const { return seen(result(i)).size; }
  const Buffer& buffer(BufferId id) const { return graph_.buffers[static_cast<size_t>(id)]; }

  /// A loop nest that fills `target`: one loop for each entry of `extents`, then one reduced loop for each of
  /// `reduced`. At most one builder is open at a time; its `store` closes it.
  NodeBuilder node(BufferId target, const std::vector<int64_t>& extents,
                   const std::vector<int64_t>& reduced = {});

  const std::vector<at::Tensor>& inputs() const { return inputs_; }
  /// The position in `inputs` of a buffer that `input` returned.
  int argument_number(BufferId id) const;
  const Graph& graph() const { return graph_; }

 private:
  friend class NodeBuilder;

  /// The part of a buffer that the operator sees.
  struct Part {
    std::vector<int64_t> size, stride;
    int64_t offset = 0;
  };
  const Part& seen(BufferId id) const { return parts_[static_cast<size_t>(id)]; }
  BufferId add(Buffer buffer);

  std::string aten_;
  Views views_;
  Graph graph_;
  std::vector<Part> parts_;  // by buffer
  std::vector<BufferId> results_;
  std::vector<at::Tensor> inputs_;
};

/// A value of a body: its position.
struct Value {
  int at = -1;
};

class NodeBuilder {
 public:
  /// The position of the i-th loop, reduced loops behind the others.
  Expr loop(size_t i) const { return Expr::symbol(node_.loops[i].name); }
  size_t output_loops() const { return output_loops_; }

  /// The element at a position, one coordinate for each dimension of the buffer.
  Value load(BufferId buffer, const std::vector<Expr>& position);
  /// The element that broadcasting puts at the current point of the output loops: dimensions align on the
  /// right.
  Value load(BufferId buffer);
  Value constant(double value, HostType dtype);
  /// A position as a number.
  Value index(const Expr& position, HostType dtype);
  Value op(std::string_view name, const std::vector<Value>& operands,
           std::vector<std::pair<std::string, double>> attributes = {});
  Value reduce(std::string_view kind, const std::vector<Value>& operands,
               std::vector<std::pair<std::string, double>> attributes = {});
  /// A sum of products over the reduced loops; 16-bit operands may have a float32 one.
  Value dot(Value x, Value w, HostType dtype, std::vector<std::pair<std::string, double>> attributes = {});
  /// The value as another dtype; itself if it is one already.
  Value as(Value value, HostType dtype);
  HostType dtype(Value value) const { return node_.body[static_cast<size_t>(value.at)].dtype; }
  /// A position that an index tensor holds; for a coordinate of `load`.
  static Expr indirect(Value value);

  /// Ends the node: at the current point of the output loops, or at the position given.
  void store(Value value);
  void store(Value value, const std::vector<Expr>& position);

 private:
  friend class GraphBuilder;
  NodeBuilder(GraphBuilder& graph, Node node, size_t output_loops)
      : graph_(graph), node_(std::move(node)), output_loops_(output_loops) {}

  Value append(Instruction instruction);
  Expr offset_of(BufferId buffer, const std::vector<Expr>& position) const;
  std::vector<Expr> broadcast(BufferId buffer) const;

  GraphBuilder& graph_;
  Node node_;
  size_t output_loops_;
};

}  // namespace spyre::glue
