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

// activations.cpp
Status fraction(Builder& builder, Arguments args, std::string_view op);
Status heaviside(Builder& builder, Arguments args, std::string_view op);
Status log_of_sum(Builder& builder, Arguments args, std::string_view op);  ///< op: exp, exp2
Status logit(Builder& builder, Arguments args, std::string_view op);
Status nan_to_num(Builder& builder, Arguments args, std::string_view op);
Status sinc(Builder& builder, Arguments args, std::string_view op);
Status entropy(Builder& builder, Arguments args, std::string_view op);
Status xlogy(Builder& builder, Arguments args, std::string_view op);
Status degrees(Builder& builder, Arguments args, std::string_view op);   ///< op: deg2rad, rad2deg
Status infinite(Builder& builder, Arguments args, std::string_view op);  ///< op: positive, negative
Status celu(Builder& builder, Arguments args, std::string_view op);
Status elu(Builder& builder, Arguments args, std::string_view op);
Status hardshrink(Builder& builder, Arguments args, std::string_view op);
Status hardsigmoid(Builder& builder, Arguments args, std::string_view op);
Status hardswish(Builder& builder, Arguments args, std::string_view op);
Status log_sigmoid(Builder& builder, Arguments args, std::string_view op);
Status mish(Builder& builder, Arguments args, std::string_view op);
Status prelu(Builder& builder, Arguments args, std::string_view op);
Status softshrink(Builder& builder, Arguments args, std::string_view op);
Status threshold(Builder& builder, Arguments args, std::string_view op);
Status glu(Builder& builder, Arguments args, std::string_view op);
Status elu_backward(Builder& builder, Arguments args, std::string_view op);
Status gelu_backward(Builder& builder, Arguments args, std::string_view op);
Status hardsigmoid_backward(Builder& builder, Arguments args, std::string_view op);
Status hardswish_backward(Builder& builder, Arguments args, std::string_view op);
Status hardtanh_backward(Builder& builder, Arguments args, std::string_view op);
Status leaky_relu_backward(Builder& builder, Arguments args, std::string_view op);
Status log_sigmoid_backward(Builder& builder, Arguments args, std::string_view op);
Status mish_backward(Builder& builder, Arguments args, std::string_view op);
Status softplus_backward(Builder& builder, Arguments args, std::string_view op);
Status mse_loss(Builder& builder, Arguments args, std::string_view op);
Status huber_loss(Builder& builder, Arguments args, std::string_view op);
Status smooth_l1_loss(Builder& builder, Arguments args, std::string_view op);
Status mse_loss_backward(Builder& builder, Arguments args, std::string_view op);
Status both_extremes(Builder& builder, Arguments args, std::string_view op);
Status count_nonzero(Builder& builder, Arguments args, std::string_view op);
Status nansum(Builder& builder, Arguments args, std::string_view op);

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
Status grouped_product(Builder& builder, Arguments args, std::string_view op);

// attention.cpp
Status attention(Builder& builder, Arguments args, std::string_view op);
Status attention_backward(Builder& builder, Arguments args,
                          std::string_view op);  ///< op: mask, for its gradient

// encoder.cpp
Status multi_head_attention(Builder& builder, Arguments args, std::string_view op);
Status encoder_layer(Builder& builder, Arguments args, std::string_view op);

// norms.cpp
Status softmax(Builder& builder, Arguments args, std::string_view op);  ///< op: softmax, log_softmax
Status softmax_backward(Builder& builder, Arguments args, std::string_view op);
Status layer_norm(Builder& builder, Arguments args, std::string_view op);
Status rms_norm(Builder& builder, Arguments args, std::string_view op);

// statistics.cpp
Status variance(Builder& builder, Arguments args,
                std::string_view op);  ///< op: var, std; a second result is the mean
Status vector_norm(Builder& builder, Arguments args, std::string_view op);
Status weight_norm(Builder& builder, Arguments args, std::string_view op);
Status weight_norm_backward(Builder& builder, Arguments args, std::string_view op);
Status group_norm(Builder& builder, Arguments args, std::string_view op);
Status group_norm_backward(Builder& builder, Arguments args, std::string_view op);
Status batch_norm(Builder& builder, Arguments args,
                  std::string_view op);  ///< op: tracked, if there are running statistics
Status batch_norm_backward(Builder& builder, Arguments args, std::string_view op);
Status rms_norm_backward(Builder& builder, Arguments args, std::string_view op);
Status layer_norm_backward(Builder& builder, Arguments args, std::string_view op);

// pools.cpp
Status average_pool(Builder& builder, Arguments args, std::string_view op);
Status maximum_pool(Builder& builder, Arguments args, std::string_view op);  ///< and where the largest were
Status maximum_pool_backward(Builder& builder, Arguments args, std::string_view op);

// convolutions.cpp
Status convolution(Builder& builder, Arguments args, std::string_view op);
Status convolution_backward(Builder& builder, Arguments args, std::string_view op);

// moves.cpp
Status copy(Builder& builder, Arguments args, std::string_view op);  ///< (self, destination)
Status concatenate(Builder& builder, Arguments args, std::string_view op);
Status roll(Builder& builder, Arguments args, std::string_view op);
Status scatter_slice(Builder& builder, Arguments args,
                     std::string_view op);  ///< x with a slice in place of its own
Status scatter_select(Builder& builder, Arguments args, std::string_view op);  ///< the same of one position
Status stack(Builder& builder, Arguments args, std::string_view op);
Status pad(Builder& builder, Arguments args, std::string_view op);
Status triangle(Builder& builder, Arguments args, std::string_view op);  ///< op: le (tril), ge (triu)
/// A matrix with these elements on a diagonal.
Status diagonal_of(Builder& builder, Arguments args, std::string_view op);
Status index_select(Builder& builder, Arguments args, std::string_view op);
Status index(Builder& builder, Arguments args, std::string_view op);  ///< x[:, i]: one tensor of positions
Status index_copy(Builder& builder, Arguments args, std::string_view op);
Status index_put(Builder& builder, Arguments args, std::string_view op);  ///< x[:, i] = values
Status embedding(Builder& builder, Arguments args, std::string_view op);
Status arange(Builder& builder, Arguments args, std::string_view op);

// scans.cpp
Status cumulative_sum(Builder& builder, Arguments args, std::string_view op);

// sorting.cpp
Status top_k(Builder& builder, Arguments args, std::string_view op);
Status sort(Builder& builder, Arguments args,
            std::string_view op);  ///< op: stable, where that is an argument

// scatters.cpp
Status gather(Builder& builder, Arguments args, std::string_view op);
Status flip(Builder& builder, Arguments args, std::string_view op);
Status scatter(Builder& builder, Arguments args, std::string_view op);  ///< of a tensor or a number
Status scatter_add(Builder& builder, Arguments args, std::string_view op);
Status index_add(Builder& builder, Arguments args, std::string_view op);

// classes.cpp
Status one_hot(Builder& builder, Arguments args, std::string_view op);
Status nll_loss(Builder& builder, Arguments args, std::string_view op);
Status nll_loss_backward(Builder& builder, Arguments args, std::string_view op);
Status embedding_backward(Builder& builder, Arguments args, std::string_view op);
Status is_in(Builder& builder, Arguments args, std::string_view op);
Status histogram(Builder& builder, Arguments args, std::string_view op);
Status index_put_sum(Builder& builder, Arguments args,
                     std::string_view op);  ///< what meets twice is added up

}  // namespace spyre::forms
