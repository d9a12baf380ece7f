#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

namespace spyre::glue {

/// Random numbers for a card are drawn on the host by PyTorch's own CPU generator (mt19937), one per card, and then
/// copied: with equal seeds `torch.randn(n, device="spyre")` holds the values of `torch.randn(n)`, rounded to the
/// card's format.

/// The default generator of a card. Seeding it does not start the runtime.
const at::Generator& default_generator(c10::DeviceIndex index);

/// A generator of its own, as made by `torch.Generator("spyre")`.
at::Generator make_generator(c10::DeviceIndex index);

/// The CPU generator inside a Spyre generator. Another one is left as it is: kernels of the CPU name what they take.
at::Generator host_generator(const at::Generator& generator);

/// The kernel of operators that overwrite their first argument with random numbers: `x.normal_()`. What was there is not
/// read, and nothing falls back: this is where the card's numbers come from.
void draw(const c10::OperatorHandle& op, torch::jit::Stack* stack);

}  // namespace spyre::glue
