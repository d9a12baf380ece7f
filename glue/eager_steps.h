#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "glue/eager_call.h"
#include "glue/fallback.h"

/// Operators written in other operators, each of which is a kernel of its own.
///
/// Most operators are one graph (spyre/forms). Written in others are those whose results are as long as values say, which
/// have to be looked at (eager_values.cpp); calls that their form refuses although each step runs; and what a script has
/// registered in Python (bindings_forms.cpp). All of it runs on the card, or the operator as a whole on the CPU.
namespace spyre::glue {

using Tensors = std::vector<at::Tensor>;
/// The results for the arguments of the schema. Nothing: there are no steps for these.
using Steps = std::optional<Tensors> (*)(Arguments args);

/// The results of steps, or why there are none. What steps raise is a reason, too: wrong arguments are for the CPU's
/// kernel to name, in PyTorch's words.
struct StepsTaken {
  std::optional<Tensors> results;
  std::string refusal;
  FallbackCause cause = FallbackCause::kNoKernel;
};
StepsTaken take_steps(const std::function<std::optional<Tensors>()>& steps);

/// Results as PyTorch says that they lie, for any device: a compiled program relies on it where it calls `op`.
Tensors with_promised_strides(const c10::OperatorHandle& op, Arguments arguments, Tensors results);

/// Leaves the results of steps on the stack in place of the arguments: in the tensors that the operator writes, if it does.
void finish_steps(const c10::OperatorHandle& op, torch::jit::Stack* stack, Tensors results);

/// Runs a call whose kernel was refused step by step. False, and nothing changed: there are no steps, or the card refuses
/// one of them.
bool run_refused_in_steps(const forms::FormRow& form, const c10::OperatorHandle& op,
                          torch::jit::Stack* stack);

/// Registers the operators whose results depend on values.
void register_values(torch::Library& library);
std::optional<Tensors> histogram_between_extremes(Arguments args);

}  // namespace spyre::glue
