#pragma once

#include "spyre/forms/form.h"

/// The forms, by the file they are in. Which operator has which is table.def.
namespace spyre::forms {

// pointwise.cpp
Status unary(Builder& builder, Arguments args, std::string_view op);        ///< in the dtype of its argument
Status unary_float(Builder& builder, Arguments args, std::string_view op);  ///< integers become floats first
Status unary_rounding(Builder& builder, Arguments args, std::string_view op);  ///< integers stay as they are
Status binary(Builder& builder, Arguments args, std::string_view op);
Status binary_float(Builder& builder, Arguments args, std::string_view op);
Status binary_quotient(Builder& builder, Arguments args,
                       std::string_view op);  ///< remainders, rounded quotients
Status binary_product(Builder& builder, Arguments args, std::string_view op);
Status sum_of(Builder& builder, Arguments args, std::string_view op);  ///< add, sub: with alpha
Status reverse_difference(Builder& builder, Arguments args, std::string_view op);
Status divide(Builder& builder, Arguments args, std::string_view op);  ///< with a rounding mode
Status power(Builder& builder, Arguments args, std::string_view op);
Status choose(Builder& builder, Arguments args, std::string_view op);  ///< where
Status fill_masked(Builder& builder, Arguments args, std::string_view op);
Status clamp_numbers(Builder& builder, Arguments args, std::string_view op);
Status clamp_tensors(Builder& builder, Arguments args, std::string_view op);
Status add_product(Builder& builder, Arguments args, std::string_view op);  ///< addcmul, addcdiv
Status interpolate(Builder& builder, Arguments args, std::string_view op);  ///< lerp
Status gelu(Builder& builder, Arguments args, std::string_view op);
Status softplus(Builder& builder, Arguments args, std::string_view op);
Status leaky_relu(Builder& builder, Arguments args, std::string_view op);
Status hardtanh(Builder& builder, Arguments args, std::string_view op);
Status threshold_backward(Builder& builder, Arguments args, std::string_view op);
Status sigmoid_backward(Builder& builder, Arguments args, std::string_view op);
Status tanh_backward(Builder& builder, Arguments args, std::string_view op);
Status silu_backward(Builder& builder, Arguments args, std::string_view op);

// reductions.cpp. `op` is the kind of the fold.
Status reduce_dims(Builder& builder, Arguments args,
                   std::string_view op);  ///< (self, dim or dims, keepdim, ...)
Status reduce_all(Builder& builder, Arguments args, std::string_view op);  ///< (self, ...)
Status arg_reduce(Builder& builder, Arguments args, std::string_view op);  ///< (self, dim?, keepdim)
Status extreme_and_position(Builder& builder, Arguments args, std::string_view op);  ///< max.dim, min.dim

// products.cpp
Status matmul(Builder& builder, Arguments args,
              std::string_view op);  ///< mm, bmm, and their sums as another dtype
Status add_matmul(Builder& builder, Arguments args, std::string_view op);     ///< addmm, baddbmm
Status matrix_vector(Builder& builder, Arguments args, std::string_view op);  ///< mv, dot

// norms.cpp
Status softmax(Builder& builder, Arguments args, std::string_view op);  ///< op: softmax, log_softmax
Status softmax_backward(Builder& builder, Arguments args, std::string_view op);
Status layer_norm(Builder& builder, Arguments args, std::string_view op);
Status rms_norm(Builder& builder, Arguments args, std::string_view op);

// pools.cpp
Status average_pool(Builder& builder, Arguments args, std::string_view op);

// moves.cpp
Status copy(Builder& builder, Arguments args, std::string_view op);  ///< (self, destination)
Status concatenate(Builder& builder, Arguments args, std::string_view op);
Status stack(Builder& builder, Arguments args, std::string_view op);
Status pad(Builder& builder, Arguments args, std::string_view op);
Status triangle(Builder& builder, Arguments args, std::string_view op);  ///< op: le (tril), ge (triu)
Status index_select(Builder& builder, Arguments args, std::string_view op);
Status index(Builder& builder, Arguments args, std::string_view op);  ///< x[:, i]: one tensor of positions
Status index_copy(Builder& builder, Arguments args, std::string_view op);
Status index_put(Builder& builder, Arguments args, std::string_view op);  ///< x[:, i] = values
Status embedding(Builder& builder, Arguments args, std::string_view op);
Status arange(Builder& builder, Arguments args, std::string_view op);

}  // namespace spyre::forms
