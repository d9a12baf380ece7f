#pragma once

#include <ATen/core/Tensor.h>

#include "spyre/layout/device_layout.h"

/// The operators this backend implements itself. Registration (a list of names) is in registration.cpp; everything
/// not named there runs by the CPU fallback.
namespace spyre::glue {

// factories.cpp
at::Tensor empty(c10::IntArrayRef size, std::optional<c10::ScalarType> dtype,
                 std::optional<c10::Layout> layout, std::optional<c10::Device> device,
                 std::optional<bool> pin_memory, std::optional<c10::MemoryFormat> memory_format);
at::Tensor empty_strided(c10::IntArrayRef size, c10::IntArrayRef stride, std::optional<c10::ScalarType> dtype,
                         std::optional<c10::Layout> layout, std::optional<c10::Device> device,
                         std::optional<bool> pin_memory);
/// A tensor in a layout that the compiler chose.
at::Tensor empty_with_layout(c10::IntArrayRef size, c10::IntArrayRef stride, c10::ScalarType dtype,
                             const DeviceLayout& layout, c10::Device device);
const at::Tensor& resize_(const at::Tensor& self, c10::IntArrayRef size,
                          std::optional<c10::MemoryFormat> memory_format);
/// The same for a tensor that a result is about to be written to: its elements are nobody's, and may be what no type of the host
/// can hold.
void resize_to_write(const at::Tensor& self, c10::IntArrayRef size);
at::Tensor& set_storage(at::Tensor& self, at::Storage source);
at::Tensor& set_storage_offset(at::Tensor& self, at::Storage source, int64_t storage_offset,
                               c10::IntArrayRef size, c10::IntArrayRef stride);
at::Tensor& set_tensor(at::Tensor& self, const at::Tensor& source);
at::Tensor& set_empty(at::Tensor& self);
bool is_set_to(const at::Tensor& self, const at::Tensor& other);

// views.cpp: all share the storage and with it the base layout; nothing moves.
at::Tensor as_strided(const at::Tensor& self, c10::IntArrayRef size, c10::IntArrayRef stride,
                      std::optional<int64_t> storage_offset);
const at::Tensor& as_strided_in_place(const at::Tensor& self, c10::IntArrayRef size, c10::IntArrayRef stride,
                                      std::optional<int64_t> storage_offset);
at::Tensor view(const at::Tensor& self, c10::IntArrayRef size);
at::Tensor reshape_alias(const at::Tensor& self, c10::IntArrayRef size, c10::IntArrayRef stride);
at::Tensor alias(const at::Tensor& self);
at::Tensor unfold(const at::Tensor& self, int64_t dimension, int64_t size, int64_t step);
at::Tensor view_dtype(const at::Tensor& self, c10::ScalarType dtype);
at::Tensor as_strided_with_layout(const at::Tensor& self, c10::IntArrayRef size, c10::IntArrayRef stride,
                                  int64_t storage_offset, std::optional<DeviceLayout> layout);

// copy.cpp
at::Tensor copy_from(const at::Tensor& self, const at::Tensor& dst, bool non_blocking);
/// `.to(dtype)`: a cast that stays on the card is a kernel; everything else is PyTorch's own.
at::Tensor to_copy(const at::Tensor& self, std::optional<c10::ScalarType> dtype,
                   std::optional<c10::Layout> layout, std::optional<c10::Device> device,
                   std::optional<bool> pin_memory, bool non_blocking,
                   std::optional<c10::MemoryFormat> memory_format);
at::Tensor copy_from_and_resize(const at::Tensor& self, const at::Tensor& dst);

// norms.cpp
/// The running statistics change when nothing can go wrong any more. Only training saves what it found.
std::tuple<at::Tensor, at::Tensor, at::Tensor> batch_norm(const at::Tensor& x,
                                                          const std::optional<at::Tensor>& weight,
                                                          const std::optional<at::Tensor>& bias,
                                                          const std::optional<at::Tensor>& running_mean,
                                                          const std::optional<at::Tensor>& running_var,
                                                          bool training, double momentum, double eps);

/// With a `dtype` PyTorch casts first. fp16 becomes float32 inside the kernel instead: what a cast leaves of rows that
/// end inside a stick is in an order that nothing folds.
at::Tensor softmax_as(const at::Tensor& x, int64_t dim, std::optional<c10::ScalarType> dtype);
at::Tensor log_softmax_as(const at::Tensor& x, int64_t dim, std::optional<c10::ScalarType> dtype);

// composites.cpp
at::Tensor attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                     const std::optional<at::Tensor>& mask, double dropout, bool is_causal,
                     std::optional<double> scale, bool enable_gqa);
at::Tensor one_hot(const at::Tensor& index, int64_t classes);
/// Whether these are operators of the card's.
bool is_whole_attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                        double dropout);
bool is_whole_one_hot(const at::Tensor& index, int64_t classes);
/// What `nn.TransformerEncoder` asks before it packs padded texts into a nested tensor: the card has none.
bool packs_no_texts(const at::Tensor& x, const at::Tensor& mask);

// fill.cpp
at::Tensor& fill_scalar(at::Tensor& self, const at::Scalar& value);
at::Tensor& fill_tensor(at::Tensor& self, const at::Tensor& value);
at::Tensor& zero_(at::Tensor& self);
at::Scalar local_scalar_dense(const at::Tensor& self);
void record_stream(at::Tensor& self, c10::Stream stream);

}  // namespace spyre::glue
