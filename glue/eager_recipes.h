#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>

#include <optional>
#include <span>
#include <string_view>

#include "glue/eager_graph.h"
#include "spyre/base/result.h"

/// How operators become graphs. A recipe reads the arguments as the schema of the operator lists them and
/// fills the results of the builder; which operator uses which recipe is eager_table.def.
///
/// The in-place and `out=` forms of an operator have the same leading arguments and share its recipe: where a
/// result goes is the builder's business.
///
/// A recipe refuses (kUnsupported) what the card has no form for; the operator then runs on the CPU.
namespace spyre::glue {

using Arguments = std::span<const c10::IValue>;
/// `op` is the second column of the table: usually the name of the device operation.
using Recipe = Status (*)(GraphBuilder& graph, Arguments args, std::string_view op);

Error refuse(std::string message);

/// Whether the positions that a call reads or writes at are inside its tensor. Looks at their values, so it
/// waits for them; of recipes without positions it is true. A call that fails goes to the CPU, which says so
/// in PyTorch's words: on the card it would be a fault, and the end of the stream.
bool positions_fit(Recipe recipe, Arguments args);

/// x[mask] for a mask of all of x or of its rows, whose result is as long as the values say: elements selected, or rows at
/// the positions selected. None for other calls.
std::optional<at::Tensor> index_by_mask(Recipe recipe, Arguments args);

/// x[i] and x[i] = v along the only dimension of x, where there are no rows to move: as `gather` and `scatter`, which
/// choose elements. None for other calls.
std::optional<at::Tensor> by_element(Recipe recipe, Arguments args);

/// How shape and dtype of the results are known before anything runs.
using ResultRule = std::vector<ResultSpec> (*)(const c10::OperatorHandle& op, Arguments args);
/// PyTorch's own rule: the operator runs on tensors without data. Raises what PyTorch raises for bad
/// arguments.
std::vector<ResultSpec> by_meta(const c10::OperatorHandle& op, Arguments args);
/// Of operators that write into their first argument and have no rule in PyTorch.
std::vector<ResultSpec> of_self(const c10::OperatorHandle& op, Arguments args);
/// Of native_layer_norm: the statistics have the dtype of the input, as on the CPU.
std::vector<ResultSpec> of_layer_norm(const c10::OperatorHandle& op, Arguments args);
std::vector<ResultSpec> of_rms_norm(const c10::OperatorHandle& op, Arguments args);

// eager_operands.cpp: what most recipes start with.

/// The dtype PyTorch computes in for these arguments (tensors and numbers), as the card knows it. Refused:
/// dtypes without arithmetic on the card.
Result<HostType> common_type(std::initializer_list<const c10::IValue*> operands);
/// The same where integers become the default float, as for `exp` or a true division.
Result<HostType> common_float(std::initializer_list<const c10::IValue*> operands);
/// The host type of one tensor, with the same refusals.
Result<HostType> arithmetic_type(c10::ScalarType dtype);
inline bool is_integer(HostType type) {
  return type == HostType::kInt32 || type == HostType::kInt64;
}
/// A tensor, a zero-dimensional CPU tensor or a number, broadcast to the result and cast.
Value operand(GraphBuilder& graph, NodeBuilder& node, const c10::IValue& value, HostType dtype);
/// A number: a Scalar, or a CPU tensor without dimensions.
bool is_number(const c10::IValue& value);
double number(const c10::IValue& value);
/// Dimensions counted from the front. An empty or missing list means all.
std::vector<bool> dims_of(const c10::IValue& list, size_t rank);

// eager_pointwise.cpp
Status unary(GraphBuilder& graph, Arguments args, std::string_view op);  ///< in the dtype of its argument
Status unary_float(GraphBuilder& graph, Arguments args,
                   std::string_view op);  ///< integers become floats first
Status unary_rounding(GraphBuilder& graph, Arguments args,
                      std::string_view op);  ///< integers stay as they are
Status binary(GraphBuilder& graph, Arguments args, std::string_view op);
Status binary_float(GraphBuilder& graph, Arguments args, std::string_view op);
Status binary_quotient(GraphBuilder& graph, Arguments args,
                       std::string_view op);  ///< remainders, rounded quotients
Status binary_product(GraphBuilder& graph, Arguments args, std::string_view op);
Status sum_of(GraphBuilder& graph, Arguments args, std::string_view op);  ///< add, sub: with alpha
Status reverse_difference(GraphBuilder& graph, Arguments args, std::string_view op);
Status divide(GraphBuilder& graph, Arguments args, std::string_view op);  ///< with a rounding mode
Status power(GraphBuilder& graph, Arguments args, std::string_view op);
Status choose(GraphBuilder& graph, Arguments args, std::string_view op);  ///< where
Status fill_masked(GraphBuilder& graph, Arguments args, std::string_view op);
Status clamp_numbers(GraphBuilder& graph, Arguments args, std::string_view op);
Status clamp_tensors(GraphBuilder& graph, Arguments args, std::string_view op);
Status add_product(GraphBuilder& graph, Arguments args, std::string_view op);  ///< addcmul, addcdiv
Status interpolate(GraphBuilder& graph, Arguments args, std::string_view op);  ///< lerp
Status gelu(GraphBuilder& graph, Arguments args, std::string_view op);
Status softplus(GraphBuilder& graph, Arguments args, std::string_view op);
Status leaky_relu(GraphBuilder& graph, Arguments args, std::string_view op);
Status hardtanh(GraphBuilder& graph, Arguments args, std::string_view op);
Status threshold_backward(GraphBuilder& graph, Arguments args, std::string_view op);
Status sigmoid_backward(GraphBuilder& graph, Arguments args, std::string_view op);
Status tanh_backward(GraphBuilder& graph, Arguments args, std::string_view op);
Status silu_backward(GraphBuilder& graph, Arguments args, std::string_view op);

// eager_reductions.cpp. `op` is the kind of the fold.
Status reduce_dims(GraphBuilder& graph, Arguments args,
                   std::string_view op);  ///< (self, dim or dims, keepdim, ...)
Status reduce_all(GraphBuilder& graph, Arguments args, std::string_view op);  ///< (self, ...)
Status arg_reduce(GraphBuilder& graph, Arguments args, std::string_view op);  ///< (self, dim?, keepdim)
Status extreme_and_position(GraphBuilder& graph, Arguments args, std::string_view op);  ///< max.dim, min.dim

// eager_matmul.cpp
/// How many 16-bit parts an fp32 value has in a product: what torch.set_float32_matmul_precision says.
int float32_parts();
Status matmul(GraphBuilder& graph, Arguments args,
              std::string_view op);  ///< mm, bmm, and their sums as another dtype
Status add_matmul(GraphBuilder& graph, Arguments args, std::string_view op);     ///< addmm, baddbmm
Status matrix_vector(GraphBuilder& graph, Arguments args, std::string_view op);  ///< mv, dot

// eager_norms.cpp
Status softmax(GraphBuilder& graph, Arguments args, std::string_view op);  ///< op: softmax, log_softmax
Status softmax_backward(GraphBuilder& graph, Arguments args, std::string_view op);
Status layer_norm(GraphBuilder& graph, Arguments args, std::string_view op);
Status rms_norm(GraphBuilder& graph, Arguments args, std::string_view op);

// eager_pools.cpp
Status average_pool(GraphBuilder& graph, Arguments args, std::string_view op);

// eager_moves.cpp
Status copy(GraphBuilder& graph, Arguments args, std::string_view op);  ///< (self, destination)
Status concatenate(GraphBuilder& graph, Arguments args, std::string_view op);
Status stack(GraphBuilder& graph, Arguments args, std::string_view op);
Status pad(GraphBuilder& graph, Arguments args, std::string_view op);
Status triangle(GraphBuilder& graph, Arguments args, std::string_view op);  ///< op: le (tril), ge (triu)
Status index_select(GraphBuilder& graph, Arguments args, std::string_view op);
Status index(GraphBuilder& graph, Arguments args, std::string_view op);  ///< x[:, i]: one tensor of positions
Status index_copy(GraphBuilder& graph, Arguments args, std::string_view op);
Status index_put(GraphBuilder& graph, Arguments args, std::string_view op);  ///< x[:, i] = values
Status embedding(GraphBuilder& graph, Arguments args, std::string_view op);
Status arange(GraphBuilder& graph, Arguments args, std::string_view op);

}  // namespace spyre::glue
