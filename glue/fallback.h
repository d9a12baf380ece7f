#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

namespace spyre::glue {

/// Runs an operator that has no device path on the CPU: Spyre tensors are copied to the host, the CPU kernel
/// runs, what it changed is copied back into the same tensors, what it made becomes new Spyre tensors.
///
/// Never silent about it: each use is counted, also one whose kernel raises, and by the setting TORCH_SPYRE_FALLBACK it
/// warns when the kernel has run (once per operator and call site), raises before it does, or says nothing. An operator that returns a view of its input is refused,
/// because a copy would not be one; so is one with tensors of two cards, as on any device.
///
/// Numbers that no tensor decides (linspace, tril_indices, randperm) are written from the host, as those of `full` are: that
/// is a transfer, not a fallback (ADR 0070).
///
/// `reason` says why the card does not run it. Where the arguments seem to be wrong, the CPU's kernel is asked for
/// PyTorch's own error: when it raises, nothing fell back, and there is nothing to say or to count.
enum class FallbackCause { kNoKernel, kWrongArguments };
void cpu_fallback(const c10::OperatorHandle& op, torch::jit::Stack* stack, const std::string& reason,
                  FallbackCause cause = FallbackCause::kNoKernel);
/// The same for operators without a row in eager_table.def.
void cpu_fallback_without_kernel(const c10::OperatorHandle& op, torch::jit::Stack* stack);

/// A copy between two tensors of one card that no kernel makes: the host moves the elements. Counted and reported as a
/// fallback of aten::copy_, and refused where fallbacks are.
void host_copy_fallback(const at::Tensor& from, const at::Tensor& to, const std::string& refusal);

/// While one lives on this thread, an operator that would go to the CPU raises instead, and the scope knows why: an
/// operator written in terms of others (eager_steps.h) runs on the card as a whole or on the CPU
/// as a whole. Half and half would round where neither does, and be counted under other names.
///
///     var(x) = mean, sub, square, sum      sub refused: one fallback, of var, "aten::sub.Tensor: ..."
///
/// Scopes nest; a refusal ends all of them.
class FormScope {
 public:
  FormScope();
  ~FormScope();
  FormScope(const FormScope&) = delete;
  FormScope& operator=(const FormScope&) = delete;

  /// The operator refused in this scope, with the reason.
  std::optional<std::string> refusal() const;
};

/// Raises PyTorch's usual error when the tensors of one call are on two devices.
void require_one_device(c10::Device first, c10::Device other);

enum class FallbackMode { kWarn, kError, kSilent };
FallbackMode fallback_mode();
void set_fallback_mode(FallbackMode mode);

struct FallbackCount {
  int64_t calls = 0;
  int64_t bytes = 0;                       ///< host bytes copied, both ways
  std::map<std::string, int64_t> reasons;  ///< calls by why; the first line of it
};
/// By operator name, overload included.
std::map<std::string, FallbackCount> fallback_counts();
void reset_fallback_counts();

/// Delivers a warning about an operator at the current Python line; installed by the bindings. `message` is
/// complete.
using FallbackReporter = std::function<void(const std::string& op, const std::string& message)>;
void set_fallback_reporter(FallbackReporter reporter);

}  // namespace spyre::glue
