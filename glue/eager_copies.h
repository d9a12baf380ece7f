#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <string>

/// Copies between tensors of one card, by kernels: the same elements, or the same values as another dtype. A copy is a call
/// like any other (ADR 0048): one graph, in which the layout search moves what lies otherwise.
namespace spyre::glue {

/// A copy between two tensors of one card; empty when it is done. Otherwise why no kernel does it: the caller must.
std::string copy_on_card(const at::Tensor& from, const at::Tensor& to);

/// The same elements as another dtype, in whatever layout the conversion leaves them in. Nothing: no kernel does it.
std::optional<at::Tensor> cast_on_card(const at::Tensor& tensor, c10::ScalarType dtype);

}  // namespace spyre::glue
