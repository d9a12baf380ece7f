#include "glue/eager_call.h"

#include <ATen/Context.h>
#include <c10/core/DefaultDtype.h>

#include <algorithm>
#include <cctype>

#include "glue/storage.h"
#include "glue/tensor_access.h"
#include "spyre/base/error.h"
#include "spyre/layout/device_layout.h"

namespace spyre::glue {
namespace {

/// Names of a graph: arg0, arg1. (Here `fmt` would be the one that PyTorch brings, another version than ours.)
std::string numbered(const char* prefix, size_t number) {
  return prefix + std::to_string(number);
}

/// Logical elements of the whole storage, of which the tensor may be a part.
int64_t elements_of_storage(const at::Tensor& tensor) {
  const StorageContext* context = context_of(*tensor.storage().unsafeGetStorageImpl());
  return context != nullptr && context->image ? context->image->numel : 0;
}

Number::Kind kind_of(c10::ScalarType dtype) {
  if (dtype == c10::kBool) {
    return Number::Kind::kBool;
  }
  return c10::isIntegralType(dtype, /*includeBool=*/false) ? Number::Kind::kInt : Number::Kind::kFloat;
}

/// Whether a float is among its tensors with dimensions, and nothing but masks beside: then the type of a float without
/// dimensions does not matter, and it may be one that the card does not have.
bool computes_in_floats(Arguments call) {
  bool found = false;
  for (const c10::IValue& value : call) {
    if (value.isTensor() && is_spyre(value.toTensor())) {
      const at::Tensor& tensor = value.toTensor();
      if (tensor.scalar_type() == c10::kBool) {
        continue;
      }
      if (!tensor.is_floating_point() || tensor.dim() == 0) {
        return false;
      }
      found = true;
    }
  }
  return found;
}

/// Python's own number, which among integers is of the default type.
Result<Argument> number_of(const at::Scalar& scalar, Arguments call) {
  const c10::ScalarType default_float = c10::get_default_dtype_as_scalartype();
  if (scalar.isFloatingPoint() && !try_host_type(default_float) && !computes_in_floats(call)) {
    return forms::refuse(c10::str("the card computes no ", default_float));
  }
  return Argument(Number{.value = scalar.toDouble(), .kind = kind_of(scalar.type())});
}

Result<Argument> number_of(const at::Tensor& tensor, Arguments call) {
  if (tensor.unsafeGetTensorImpl()->is_wrapped_number()) {
    return number_of(tensor.item(), call);
  }
  Number number{.value = tensor.item().toDouble(), .kind = kind_of(tensor.scalar_type())};
  number.dtype = try_host_type(tensor.scalar_type());
  if (!number.dtype && !(tensor.is_floating_point() && computes_in_floats(call))) {
    return forms::refuse(c10::str("the card computes no ", tensor.scalar_type()));
  }
  return Argument(number);
}

int float32_parts() {
  switch (at::globalContext().float32MatmulPrecision()) {
    case at::Float32MatmulPrecision::HIGHEST:
      return 3;
    case at::Float32MatmulPrecision::HIGH:
      return 2;
    case at::Float32MatmulPrecision::MEDIUM:
      return 1;
  }
  return 3;
}

}  // namespace

forms::Options form_options() {
  const std::optional<HostType> default_float = try_host_type(c10::get_default_dtype_as_scalartype());
  // Another one than the card has is refused with the number that would have it.
  return {.default_float = default_float.value_or(HostType::kFloat32),
          .float32_parts = float32_parts(),
          .positions_exist = true};  // eager_positions.h
}

CallGraph::CallGraph(std::string aten) : aten_(std::move(aten)) {
  graph_.name = aten_;
  std::replace_if(
      graph_.name.begin(), graph_.name.end(), [](char c) { return std::isalnum(c) == 0; }, '_');
}

void CallGraph::add_result(const ResultSpec& spec) {
  TensorView result{.dtype = host_type_of(spec.dtype), .size = spec.size, .stride = spec.stride};
  if (spec.has_elements()) {
    result.buffer =
        graph_.add_buffer({.name = "out", .dtype = result.dtype, .size = spec.size, .stride = spec.stride});
    graph_.results.push_back(result.buffer);
  }
  results_.push_back(std::move(result));
}

void CallGraph::add_result(const at::Tensor& written) {
  results_.push_back(view(written));
  if (results_.back().buffer >= 0) {
    graph_.results.push_back(results_.back().buffer);
  }
}

TensorView CallGraph::view(const at::Tensor& tensor) {
  TensorView view{.dtype = host_type_of(tensor.scalar_type()),
                  .size = tensor.sizes().vec(),
                  .stride = tensor.strides().vec(),
                  .offset = tensor.storage_offset()};
  if (tensor.numel() == 0) {
    return view;  // no memory to read
  }
  for (const auto& [known, its_view] : inputs_) {
    if (is_same_view(known, tensor)) {
      return its_view;
    }
  }
  Buffer buffer{.name = numbered("arg", inputs_.size()),
                .dtype = view.dtype,
                .size = view.size,
                .stride = view.stride,
                .offset = view.offset,
                .storage = elements_of_storage(tensor),
                .is_input = true,
                .layout = layout_of(tensor)};
  // An expanded dimension is the same elements over and over: one is enough.
  for (size_t d = 0; d < buffer.size.size(); ++d) {
    if (buffer.stride[d] == 0 && buffer.size[d] > 1) {
      buffer.size[d] = 1;
    }
  }
  view.buffer = graph_.add_buffer(std::move(buffer));
  inputs_.emplace_back(tensor, view);
  return view;
}

Result<Argument> CallGraph::argument(const c10::IValue& value, Arguments call) {
  if (value.isTensor()) {
    const at::Tensor& tensor = value.toTensor();
    if (!tensor.defined()) {
      return Argument();
    }
    if (tensor.device().is_cpu() && tensor.dim() == 0) {
      return number_of(tensor, call);
    }
    SPYRE_CHECK(is_spyre(tensor), "a call of tensors on two devices is refused when it is read");
    return Argument(view(tensor));
  }
  if (value.isTensorList() || value.isOptionalTensorList()) {
    TensorList list;
    const auto add = [&](const at::Tensor& tensor) {
      list.push_back(tensor.defined() ? std::optional(view(tensor)) : std::nullopt);
    };
    for (const c10::IValue& item : value.toListRef()) {
      if (item.isTensor() && item.toTensor().defined() && !is_spyre(item.toTensor())) {
        return forms::refuse("a list with a tensor that is not on the card");
      }
      add(item.isTensor() ? item.toTensor() : at::Tensor());
    }
    return Argument(std::move(list));
  }
  if (value.isBool() || value.isInt() || value.isDouble()) {
    return number_of(value.toScalar(), call);
  }
  if (value.isString()) {
    return Argument(value.toStringRef());
  }
  if (value.isIntList()) {
    return Argument(value.toIntVector());
  }
  if (value.isBoolList()) {
    std::vector<int64_t> flags;
    for (const bool flag : value.toBoolList()) {
      flags.push_back(flag ? 1 : 0);
    }
    return Argument(std::move(flags));
  }
  if (value.isDoubleList()) {
    return Argument(value.toDoubleVector());
  }
  SPYRE_CHECK(value.isNone(), "a call with an argument of another kind has no key");
  return Argument();
}

Status CallGraph::expand(const forms::FormRow& form, Arguments arguments) {
  Call call{.op = std::string(form.name), .results = results_};
  for (const c10::IValue& value : arguments.first(std::min(arguments.size(), forms::argument_count(form)))) {
    SPYRE_ASSIGN_OR_RETURN(Argument argument, this->argument(value, arguments));
    call.arguments.push_back(std::move(argument));
  }
  SPYRE_TRY(forms::expand_form(graph_, form, call, {.aten = aten_}, form_options()));
  drop_unused_inputs();
  return Status();
}

/// A kernel takes what it reads or writes, no more.
void CallGraph::drop_unused_inputs() {
  std::vector<bool> used(graph_.buffers.size());
  for (const BufferId id : graph_.results) {
    used[static_cast<size_t>(id)] = true;
  }
  for (const Node& node : graph_.nodes) {
    used[static_cast<size_t>(node.target)] = true;
    for (const Instruction& instruction : node.body) {
      if (instruction.is_load()) {
        used[static_cast<size_t>(instruction.buffer)] = true;
      }
    }
  }
  std::vector<BufferId> now(used.size(), -1);
  std::vector<Buffer> kept;
  for (size_t id = 0; id < used.size(); ++id) {
    if (used[id] || !graph_.buffers[id].is_input) {
      now[id] = static_cast<BufferId>(kept.size());
      kept.push_back(std::move(graph_.buffers[id]));
    }
  }
  graph_.buffers = std::move(kept);
  const auto renumber = [&](BufferId& id) { id = now[static_cast<size_t>(id)]; };
  std::for_each(graph_.results.begin(), graph_.results.end(), renumber);
  for (TensorView& result : results_) {
    if (result.buffer >= 0) {
      renumber(result.buffer);
    }
  }
  for (Node& node : graph_.nodes) {
    renumber(node.target);
    for (Instruction& instruction : node.body) {
      if (instruction.is_load()) {
        renumber(instruction.buffer);
      }
    }
  }
}

const at::Tensor& CallGraph::input(std::string_view name) const {
  size_t i = 0;
  while (i < inputs_.size() && numbered("arg", i) != name) {
    ++i;
  }
  SPYRE_CHECK(i < inputs_.size(), "the graph has no input of this name");
  return inputs_[i].first;
}

const std::string& CallGraph::result_name(size_t i) const {
  return graph_.buffers[static_cast<size_t>(results_[i].buffer)].name;
}

}  // namespace spyre::glue
