#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <map>
#include <span>
#include <vector>

/// Copies of an eager operator's operands, made by kernels of their own before its kernel runs.
///
///     x.gather(0, i)     x a view over rows that do not fill their sticks         c = x, copied        c.gather(0, i)
///
/// Most calls are one graph, in which the layout search moves values (ADR 0049, 0051). What comes here are results whose
/// sticks would run along columns, and operands that no path of copies inside one graph brings together; ADR 0051 lists
/// them.
namespace spyre::glue {

/// How a copy lies: as a fresh tensor of the same size does, or as one without its dimensions of one element, where
/// those would leave one element to a stick (the positions [2, 1] of an embedding are read from a stick).
enum class CopyForm : uint8_t { kPlain, kSqueezed };

struct OperandCopy {
  int position = 0;  ///< among the tensors of the call
  CopyForm form = CopyForm::kPlain;
};

/// By what they are copies of.
using Copies = std::map<const c10::TensorImpl*, at::Tensor>;

/// Those of `tensors` that lie otherwise than `form` says, of those with these positions.
std::vector<OperandCopy> wanted_copies(const std::vector<at::Tensor>& tensors,
                                       const std::vector<int>& positions, CopyForm form);

/// Makes the copies; dimensions that repeat an element keep doing so. What no kernel copies is left out.
Copies make_copies(const std::vector<at::Tensor>& tensors, std::span<const OperandCopy> wanted);

/// The dimensions from the one that steps farthest in memory to the one that steps least.
std::vector<int64_t> memory_order(const at::Tensor& tensor);

/// Makes a tensor that fills its storage lie as a fresh one does, by a kernel that copies it: its storage gets the copy's
/// memory, and all tensors that share it see the change. False where it does so already, or cannot.
///
///     a.add_(b)         a, widened from 16 bits, lies in another order than b; afterwards as b does
bool settle(const at::Tensor& written);

/// The arguments with copies in place of what they are copies of.
std::vector<c10::IValue> with_copies(std::span<const c10::IValue> arguments, const Copies& copies);

}  // namespace spyre::glue
