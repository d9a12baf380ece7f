// Operators that are written in terms of others, in Python: how an eager call of one runs.

#include <torch/csrc/jit/python/pybind_utils.h>

#include "glue/bindings.h"
#include "glue/eager.h"
#include "glue/fallback.h"
#include "spyre/base/error.h"
#include "spyre/forms/promotion.h"

namespace spyre::glue {
namespace {

/// The form's result, or why there is none. What a form raises is a reason, too: wrong arguments are for the CPU's
/// kernel to name, in PyTorch's words.
py::object try_form(const py::object& form, const py::args& args, const py::kwargs& kwargs,
                    std::string& reason, FallbackCause& cause) {
  if (!eager_enabled()) {
    reason = kEagerIsOff;
    return {};
  }
  const FormScope scope;
  try {
    py::object result = form(*args, **kwargs);
    if (result.ptr() != Py_NotImplemented) {
      return result;
    }
    reason = "it has no form for these arguments on the card";
  } catch (py::error_already_set& error) {
    if (!error.matches(PyExc_Exception)) {
      throw;
    }
    if (const std::optional<std::string> refusal = scope.refusal()) {
      reason = *refusal;
    } else {
      const std::string raised = error.what();  // ends with the lines of Python that led there
      reason = "its form raised " + raised.substr(0, raised.find('\n'));
      cause = FallbackCause::kWrongArguments;
    }
  }
  return {};
}

/// Runs `form`; where the card cannot run all of it, `otherwise`, or without that the operator on the CPU.
py::object run_form(const std::string& name, const std::string& overload, const py::object& form,
                    const py::object& otherwise, const py::args& args, const py::kwargs& kwargs) {
  std::string reason;
  FallbackCause cause = FallbackCause::kNoKernel;
  if (py::object result = try_form(form, args, kwargs, reason, cause)) {
    return result;
  }
  if (!otherwise.is_none()) {
    return otherwise(*args, **kwargs);
  }
  const auto op = c10::Dispatcher::singleton().findSchemaOrThrow(name.c_str(), overload.c_str());
  // PyTorch unwraps numbers that it had wrapped as tensors, as the 2 of x // 2.
  const torch::jit::ToIValueAllowNumbersAsTensors numbers_are_tensors(true);
  torch::jit::Stack stack = torch::jit::createStackForSchema(op.schema(), args, kwargs, std::nullopt);
  {
    const py::gil_scoped_release others_may_run;
    cpu_fallback(op, &stack, reason, cause);
  }
  return torch::jit::createPyObjectForStack(std::move(stack));
}

/// The form of an operator whose kernel was refused. `forms`: by qualified name, overload included.
bool run_refused(const py::dict& forms, const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const py::gil_scoped_acquire python;
  const std::string name = c10::toString(op.operator_name());
  if (!forms.contains(name)) {
    return false;
  }
  py::list args;
  py::dict kwargs;
  const std::vector<c10::Argument>& arguments = op.schema().arguments();
  for (size_t i = 0; i < arguments.size(); ++i) {
    py::object value = torch::jit::toPyObject((*stack)[stack->size() - arguments.size() + i]);
    if (arguments[i].kwarg_only()) {
      kwargs[py::str(arguments[i].name())] = value;
    } else {
      args.append(value);
    }
  }
  std::string reason;
  FallbackCause cause = FallbackCause::kNoKernel;
  const py::object result = try_form(forms[name.c_str()], args, kwargs, reason, cause);
  if (!result && cause == FallbackCause::kWrongArguments) {
    cpu_fallback(op, stack, reason, cause);
    return true;
  }
  if (!result) {
    return false;
  }
  SPYRE_CHECK(op.schema().returns().size() == 1, "forms of refused operators have one result");
  torch::jit::drop(stack, arguments.size());
  stack->push_back(torch::jit::toIValue(result, op.schema().returns()[0].type()));
  return true;
}

/// The dtype that operands compute in, by name; None where PyTorch has none. An operand is a category and a type:
/// ("dimensioned", "float16"), ("zero_dimensional", "int32"), ("number", "float").
std::optional<std::string> promoted_type(const std::vector<std::pair<std::string, std::string>>& operands,
                                         const std::string& default_float) {
  using Category = forms::Promoted::Category;
  std::vector<forms::Promoted> seen;
  for (const auto& [category, type] : operands) {
    if (category == "number") {
      const Number::Kind kind = type == "bool"  ? Number::Kind::kBool
                                : type == "int" ? Number::Kind::kInt
                                                : Number::Kind::kFloat;
      seen.push_back({Category::kNumber, std::nullopt, kind});
    } else {
      const auto which = category == "dimensioned" ? Category::kDimensioned : Category::kZeroDimensional;
      seen.push_back({which, host_type_from_name(type).value()});
    }
  }
  const Result<HostType> found = forms::promote(seen, host_type_from_name(default_float).value());
  return found.ok() ? std::optional<std::string>(to_string(found.value())) : std::nullopt;
}

}  // namespace

void bind_forms(py::module& module) {
  module.def("promoted_type", &promoted_type, py::arg("operands"), py::arg("default_float") = "float32");
  module.def("set_refused_forms", [](const py::dict& forms) {
    set_refused_form([kept = new py::dict(forms)](const c10::OperatorHandle& op, torch::jit::Stack* stack) {
      return run_refused(*kept, op, stack);
    });
  });
  module.def("run_form", &run_form, py::arg("name"), py::arg("overload"), py::arg("form"),
             py::arg("otherwise"));
}

}  // namespace spyre::glue
