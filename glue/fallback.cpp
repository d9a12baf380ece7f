#include "glue/fallback.h"

#include <ATen/MemoryOverlap.h>
#include <ATen/core/ivalue.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/empty_strided.h>
#include <atomic>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "glue/device_state.h"
#include "glue/error.h"
#include "glue/generator.h"
#include "glue/kernels.h"
#include "glue/tensor_access.h"
#include "spyre/base/settings.h"

namespace spyre::glue {
namespace {

struct Books {
  std::mutex mutex;
  std::map<std::string, FallbackCount> counts;
  FallbackReporter reporter;
};

Books& books() {
  static auto* shared = new Books;
  return *shared;
}

std::atomic<int>& mode_override() {
  static std::atomic<int> mode{-1};  // -1: the setting decides
  return mode;
}

struct Forms {
  int depth = 0;
  std::optional<std::string> refusal;
};

Forms& forms() {
  thread_local Forms mine;
  return mine;
}

std::string describe(const at::Tensor& tensor) {
  return c10::str(tensor.scalar_type(), tensor.sizes());
}

void require_allowed(const std::string& message) {
  TORCH_CHECK(fallback_mode() != FallbackMode::kError, message,
              "\n  try  TORCH_SPYRE_FALLBACK=warn to allow it, or another operator");
}

void report(const std::string& name, const std::string& message) {
  if (fallback_mode() != FallbackMode::kWarn) {
    return;
  }
  FallbackReporter reporter;
  {
    const std::lock_guard lock(books().mutex);
    reporter = books().reporter;
  }
  if (reporter) {
    reporter(name, message);
  }
}

void count(const std::string& name, int64_t bytes, const std::string& reason) {
  const std::lock_guard lock(books().mutex);
  FallbackCount& entry = books().counts[name];
  ++entry.calls;
  entry.bytes += bytes;
  ++entry.reasons[reason.substr(0, reason.find('\n'))];
}

/// In a form (see FormScope) a fallback ends it.
void end_form(const std::string& name, const std::string& reason) {
  if (forms().depth > 0) {
    forms().refusal = name + ": " + reason;
    TORCH_CHECK(false, *forms().refusal);
  }
}

/// Whether a call has no tensor but those that it writes into, as `linspace` and `randperm`.
bool reads_no_tensor(const c10::FunctionSchema& schema, const torch::jit::Stack& stack) {
  const size_t first = stack.size() - schema.arguments().size();
  for (size_t i = 0; i < schema.arguments().size(); ++i) {
    const c10::IValue& value = stack[first + i];
    const bool holds_tensors = value.isTensor() || value.isTensorList() || value.isOptionalTensorList();
    if (holds_tensors && !schema.arguments()[i].is_out()) {
      return false;
    }
  }
  return true;
}

/// One call: which Spyre tensors went to the host, and as what.
class Call {
 public:
  Call(const c10::OperatorHandle& op, torch::jit::Stack* stack, const std::string& reason,
       FallbackCause cause)
      : schema_(op.schema()),
        stack_(stack),
        first_(stack->size() - schema_.arguments().size()),
        reason_(reason),
        cause_(cause) {}

  /// Nothing is read on the card, so that there is nothing to allow, to report or to count.
  void write(const c10::OperatorHandle& op) {
    move_arguments();
    const c10::DeviceIndex target = target_device();
    op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), stack_);
    write_back();
    move_results(target);
  }

  void run(const c10::OperatorHandle& op) {
    move_arguments();
    if (cause_ == FallbackCause::kNoKernel) {
      refuse_in_error_mode();
    }
    const c10::DeviceIndex target = target_device();
    run_on_cpu(op);
    refuse_in_error_mode();
    try {
      report();
      write_back();
      move_results(target);
    } catch (...) {
      count();
      throw;
    }
    count();
  }

 private:
  std::string name() const { return c10::toString(schema_.operator_name()); }

  /// The host's copy, made once per tensor so that one given twice stays one. Strides are kept, so that
  /// results get those that the CPU gives its own tensors; only elements that share memory are taken apart.
  /// The content of an `out` argument is nobody's, and may be what no type of the host can hold: it stays.
  at::Tensor to_host(const at::Tensor& tensor, bool is_out = false) {
    if (!is_spyre(tensor)) {
      return tensor;
    }
    device_ = device_.value_or(tensor.device().index());
    require_one_device(spyre_device(*device_), tensor.device());
    auto [entry, fresh] = hosts_.try_emplace(tensor.unsafeGetTensorImpl());
    if (!fresh) {
      return entry->second.host;
    }
    const auto on_host = tensor.options().device(c10::kCPU);
    const bool apart = at::has_internal_overlap(tensor) != at::MemOverlap::Yes;
    entry->second = {tensor, apart ? at::empty_strided(tensor.sizes(), tensor.strides(), on_host)
                                   : at::empty_like(tensor, on_host)};
    if (is_out) {
      entry->second.host.zero_();
      return entry->second.host;
    }
    copy_from(tensor, entry->second.host, /*non_blocking=*/false);
    bytes_ += static_cast<int64_t>(entry->second.host.nbytes());
    inputs_ += (inputs_.empty() ? "" : ", ") + describe(tensor);
    return entry->second.host;
  }

  /// Whether an argument that is written is not read: `out`, and what cummax and cummin have their helpers fill.
  bool is_out_argument(const c10::Argument& argument) const {
    const std::string& op = schema_.name();
    const bool is_helper = op == "aten::_cummax_helper" || op == "aten::_cummin_helper";
    return argument.is_out() || (is_helper && argument.alias_info() != nullptr);
  }

  void move_arguments() {
    for (size_t i = 0; i < schema_.arguments().size(); ++i) {
      c10::IValue& value = (*stack_)[first_ + i];
      const c10::AliasInfo* alias = schema_.arguments()[i].alias_info();
      const bool written = alias != nullptr && alias->isWrite();
      const bool is_out = is_out_argument(schema_.arguments()[i]);
      if (value.isTensor()) {
        const at::Tensor tensor = value.toTensor();
        value = to_host(tensor, is_out);
        if (written && is_spyre(tensor)) {
          written_.push_back(tensor);
        }
      } else if (value.isTensorList()) {
        c10::List<at::Tensor> hosts;
        for (const at::Tensor& tensor : value.toTensorVector()) {
          hosts.push_back(to_host(tensor, is_out));
          if (written && is_spyre(tensor)) {
            written_.push_back(tensor);
          }
        }
        value = hosts;
      } else if (value.isOptionalTensorList()) {
        c10::List<std::optional<at::Tensor>> hosts;
        for (const std::optional<at::Tensor>& tensor : value.toOptionalTensorList()) {
          hosts.push_back(tensor.has_value() ? std::optional(to_host(*tensor)) : std::nullopt);
        }
        value = hosts;
      } else if (value.isDevice() && value.toDevice().type() == c10::kPrivateUse1) {
        requested_ = resolve_index(value.toDevice().index());
        value = c10::Device(c10::kCPU);
      } else {
        move_generator(i, value);
      }
    }
  }

  /// A Spyre generator draws on the host; none at all means the card's default one.
  void move_generator(size_t argument, c10::IValue& value) {
    if (value.isGenerator()) {
      value = host_generator(value.toGenerator());
    } else if (value.isNone() && schema_.arguments()[argument].name() == "generator") {
      value = host_generator(default_generator(device_.value_or(current_device())));
    }
  }

  void run_on_cpu(const c10::OperatorHandle& op) {
    try {
      op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), stack_);
    } catch (...) {
      if (cause_ == FallbackCause::kNoKernel) {
        count();
      }
      throw;
    }
  }

  c10::DeviceIndex target_device() const { return requested_.value_or(device_.value_or(current_device())); }

  void write_back() {
    for (const at::Tensor& tensor : written_) {
      const at::Tensor& host = hosts_.at(tensor.unsafeGetTensorImpl()).host;
      if (tensor.sizes() != host.sizes()) {
        resize_to_write(tensor, host.sizes());
        if (host.is_non_overlapping_and_dense()) {
          tensor.as_strided_(host.sizes(), host.strides());
        }
      }
      copy_from(host, tensor, /*non_blocking=*/false);
      bytes_ += static_cast<int64_t>(host.nbytes());
    }
  }

  at::Tensor to_card(const at::Tensor& host, c10::DeviceIndex target) {
    if (!host.defined() || !host.device().is_cpu()) {
      return host;
    }
    // A result that is one of the arguments (in-place, out=) is the caller's own tensor.
    for (const auto& [impl, pair] : hosts_) {
      if (pair.host.is_same(host)) {
        return pair.spyre;
      }
    }
    TORCH_CHECK(host.layout() == c10::kStrided, name(), " returns a ", host.layout(),
                " tensor; Spyre tensors are strided\n  try  .cpu() on the input first");
    bytes_ += static_cast<int64_t>(host.nbytes());
    if (at::has_internal_overlap(host) == at::MemOverlap::Yes) {
      return host.to(spyre_device(target));
    }
    const auto options = host.options().device(spyre_device(target));
    at::Tensor card = at::empty_strided(host.sizes(), host.strides(), options);
    copy_from(host, card, /*non_blocking=*/false);
    return card;
  }

  void move_results(c10::DeviceIndex target) {
    const auto& returns = schema_.returns();
    const size_t begin = stack_->size() - returns.size();
    for (size_t i = 0; i < returns.size(); ++i) {
      c10::IValue& value = (*stack_)[begin + i];
      const c10::AliasInfo* alias = returns[i].alias_info();
      TORCH_CHECK(alias == nullptr || alias->isWrite() || !value.isTensor(), name(),
                  " returns a view of its input and has no Spyre kernel; a CPU fallback would return a copy",
                  "\n  try  .cpu() on the input first");
      if (value.isTensor()) {
        value = to_card(value.toTensor(), target);
      } else if (value.isTensorList()) {
        c10::List<at::Tensor> cards;
        for (const at::Tensor& tensor : value.toTensorVector()) {
          cards.push_back(to_card(tensor, target));
        }
        value = cards;
      }
    }
  }

  std::string message() const {
    return c10::str(name(), " is falling back to cpu: ", reason_,
                    ". Inputs: ", inputs_.empty() ? "none on the card" : inputs_, "; ", bytes_,
                    " bytes copied to the host.");
  }

  void refuse_in_error_mode() const { require_allowed(message()); }
  void report() const { glue::report(name(), message()); }
  void count() const { glue::count(name(), bytes_, reason_); }

  struct Pair {
    at::Tensor spyre, host;
  };

  const c10::FunctionSchema& schema_;
  torch::jit::Stack* stack_;
  size_t first_;
  const std::string& reason_;
  const FallbackCause cause_;
  std::unordered_map<c10::TensorImpl*, Pair> hosts_;
  std::vector<at::Tensor> written_;
  std::optional<c10::DeviceIndex> device_, requested_;
  std::string inputs_;
  int64_t bytes_ = 0;
};

}  // namespace

FormScope::FormScope() {
  if (forms().depth++ == 0) {
    forms().refusal.reset();
  }
}

FormScope::~FormScope() {
  --forms().depth;
}

std::optional<std::string> FormScope::refusal() const {
  return forms().refusal;
}

void cpu_fallback(const c10::OperatorHandle& op, torch::jit::Stack* stack, const std::string& reason,
                  FallbackCause cause) {
  if (reads_no_tensor(op.schema(), *stack)) {
    Call(op, stack, reason, cause).write(op);
    return;
  }
  end_form(c10::toString(op.operator_name()), reason);
  Call(op, stack, reason, cause).run(op);
}

void cpu_fallback_without_kernel(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  static const std::string reason = "it has no Spyre kernel";
  cpu_fallback(op, stack, reason);
}

void host_copy_fallback(const at::Tensor& from, const at::Tensor& to, const std::string& refusal) {
  const std::string name = "aten::copy_";
  const std::string reason = c10::str("no kernel copies ", describe(from), " with strides ", from.strides(),
                                      " into ", describe(to), " with strides ", to.strides(), ": ", refusal);
  end_form(name, reason);
  const auto bytes = static_cast<int64_t>(from.nbytes() + to.nbytes());
  const std::string message =
      c10::str(name, " is falling back to cpu: ", reason, "; ", bytes, " bytes moved by the host.");
  require_allowed(message);
  report(name, message);
  count(name, bytes, reason);
}

void require_one_device(c10::Device first, c10::Device other) {
  TORCH_CHECK(first == other,
              "Expected all tensors to be on the same device, but found at least two devices, ", first,
              " and ", other, "!");
}

FallbackMode fallback_mode() {
  if (const int mode = mode_override().load(); mode != -1) {
    return static_cast<FallbackMode>(mode);
  }
  static const FallbackMode from_setting = [] {
    const std::string word = unwrap(read_string("TORCH_SPYRE_FALLBACK"));
    return word == "error"    ? FallbackMode::kError
           : word == "silent" ? FallbackMode::kSilent
                              : FallbackMode::kWarn;
  }();
  return from_setting;
}

void set_fallback_mode(FallbackMode mode) {
  mode_override().store(static_cast<int>(mode));
}

std::map<std::string, FallbackCount> fallback_counts() {
  const std::lock_guard lock(books().mutex);
  return books().counts;
}

void reset_fallback_counts() {
  const std::lock_guard lock(books().mutex);
  books().counts.clear();
}

void set_fallback_reporter(FallbackReporter reporter) {
  const std::lock_guard lock(books().mutex);
  books().reporter = std::move(reporter);
}

}  // namespace spyre::glue
