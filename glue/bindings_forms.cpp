// Operators that are written in terms of others, in Python: how an eager call of one runs.

#include <torch/csrc/jit/python/pybind_utils.h>

#include "glue/bindings.h"
#include "glue/eager.h"
#include "glue/eager_steps.h"
#include "glue/kernels.h"
#include "spyre/forms/promotion.h"

namespace spyre::glue {
namespace {

/// The results of a form, a tensor or several. NotImplemented: none for these arguments.
std::optional<Tensors> results_of(const py::object& form, const py::args& args, const py::kwargs& kwargs) {
  try {
    const py::object found = form(*args, **kwargs);
    if (found.ptr() == Py_NotImplemented) {
      return std::nullopt;
    }
    Tensors results;
    for (const py::handle one : py::isinstance<py::tuple>(found) ? py::tuple(found) : py::make_tuple(found)) {
      results.push_back(one.is_none() ? at::Tensor() : py::cast<at::Tensor>(one));
    }
    return results;
  } catch (py::error_already_set& error) {
    if (!error.matches(PyExc_Exception)) {
      throw;
    }
    const std::string raised = error.what();  // ends with the lines of Python that led there
    TORCH_CHECK(false, raised.substr(0, raised.find('\n')));
  }
}

/// Runs `form`; where the card cannot run all of it, the operator on the CPU.
py::object run_form(const std::string& name, const std::string& overload, const py::object& form,
                    const py::args& args, const py::kwargs& kwargs) {
  const auto op = c10::Dispatcher::singleton().findSchemaOrThrow(name.c_str(), overload.c_str());
  // PyTorch unwraps numbers that it had wrapped as tensors, as the 2 of x // 2.
  const torch::jit::ToIValueAllowNumbersAsTensors numbers_are_tensors(true);
  torch::jit::Stack stack = torch::jit::createStackForSchema(op.schema(), args, kwargs, std::nullopt);
  const StepsTaken taken = take_steps([&] { return results_of(form, args, kwargs); });
  {
    const py::gil_scoped_release others_may_run;
    if (taken.results) {
      finish_steps(op, &stack, *taken.results);
    } else {
      cpu_fallback(op, &stack, taken.refusal, taken.cause);
    }
  }
  return torch::jit::createPyObjectForStack(std::move(stack));
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
  module.def("is_whole_attention", &is_whole_attention, py::arg("query"), py::arg("key"), py::arg("value"),
             py::arg("dropout"));
  module.def("is_whole_one_hot", &is_whole_one_hot, py::arg("index"), py::arg("classes"));
  module.def("run_form", &run_form, py::arg("name"), py::arg("overload"), py::arg("form"));
}

}  // namespace spyre::glue
