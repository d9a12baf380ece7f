#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "glue/dtype.h"
#include "spyre/forms/expand.h"
#include "spyre/graph/graph.h"

/// One eager call as a graph of its own, in the words of `spyre/forms`: tensors on the card become buffers with the
/// layouts they have, CPU tensors without dimensions become numbers. What the call means, its form says.
///
///     torch.add(x, y)      x [4, 100], y a column [4, 1]
///
///     CallGraph call("aten.add.Tensor");
///     call.add_result({.size = {4, 100}, ...});
///     call.expand(*forms::find_form("aten.add.Tensor"), {x, y, 1});
namespace spyre::glue {

using Arguments = std::span<const c10::IValue>;

/// What the caller will see of a result.
struct ResultSpec {
  std::vector<int64_t> size, stride;
  c10::ScalarType dtype = c10::kHalf;
  bool absent = false;  ///< a gradient that nobody asked for: the operator returns no tensor

  bool has_elements() const { return !absent && c10::multiply_integers(size) > 0; }
  friend bool operator==(const ResultSpec&, const ResultSpec&) = default;
};

/// The same elements of the same storage, in the same order.
inline bool is_same_view(const at::Tensor& a, const at::Tensor& b) {
  return a.is_alias_of(b) && a.storage_offset() == b.storage_offset() && a.sizes() == b.sizes() &&
         a.strides() == b.strides();
}

/// What forms depend on besides their arguments: PyTorch's global settings.
forms::Options form_options();

class CallGraph {
 public:
  explicit CallGraph(std::string aten);

  /// The next result of the operator: fresh memory, or an argument that is written. Without elements it has no buffer.
  void add_result(const ResultSpec& spec);
  void add_result(const at::Tensor& written);
  /// Emits the nodes of the form. Once, when all results are added.
  Status expand(const forms::FormRow& form, Arguments arguments);

  const Graph& graph() const { return graph_; }
  /// The tensor behind an input of the graph.
  const at::Tensor& input(std::string_view name) const;
  const std::string& result_name(size_t i) const;

 private:
  /// A tensor on the card as its form sees it; one given twice is one buffer.
  TensorView view(const at::Tensor& tensor);
  Result<Argument> argument(const c10::IValue& value, Arguments call);
  void drop_unused_inputs();

  std::string aten_;
  Graph graph_;
  std::vector<TensorView> results_;
  std::vector<std::pair<at::Tensor, TensorView>> inputs_;  // by the number in their name
};

}  // namespace spyre::glue
