// Errors for Python: what there is to know about them are attributes, their text is for people.

#include "glue/bindings.h"
#include "glue/error.h"

namespace spyre::glue {
namespace {

// Owned by the interpreter, and gone with it: never destroyed by us.
PyObject* compile_error = nullptr;
PyObject* internal_error = nullptr;

PyObject* new_exception(py::module& module, const char* name, const char* doc) {
  const std::string qualified = "torch_spyre._C." + std::string(name);
  PyObject* made = PyErr_NewExceptionWithDoc(qualified.c_str(), doc, PyExc_RuntimeError, nullptr);
  if (made == nullptr) {
    throw py::error_already_set();
  }
  module.add_object(name, made);
  return made;
}

void raise_refusal(const CompileRefused& refused) {
  const Error& error = refused.error;
  py::object value = py::reinterpret_borrow<py::object>(compile_error)(refused.what());
  value.attr("kind") = std::string(to_string(error.kind));
  value.attr("node") = error.node ? py::cast(error.node->name) : py::none();
  value.attr("aten") = error.node ? py::cast(error.node->aten) : py::none();
  value.attr("source") = error.node ? py::cast(error.node->source) : py::none();
  value.attr("hint") = error.hint;
  value.attr("extents") = error.extents;
  PyErr_SetObject(compile_error, value.ptr());
}

}  // namespace

void bind_errors(py::module& module) {
  compile_error = new_exception(
      module, "CompileError",
      "The compiler refuses a graph. node, aten, source: the node that is to blame and where it "
      "comes from, None where it is the graph as a whole. kind, hint: as text. extents: what "
      "those are computed from that would have to be fixed.");
  internal_error =
      new_exception(module, "InternalError", "A rule of our own is broken: a bug, never a refusal.");
  module.def(
      "_set_fault_hook",
      [](const py::object& hook) {
        // Kept for the life of the process: a fault may come when the interpreter is about to end.
        auto* const kept = new py::object(hook);
        set_fault_hook([kept](const std::string& message) {
          if (Py_IsInitialized() == 0) {
            return;
          }
          const py::gil_scoped_acquire gil;
          (*kept)(message);
        });
      },
      py::arg("hook"), "Is called with the message of every fault of a device, before that is raised.");
  py::register_exception_translator([](std::exception_ptr raised) {
    try {
      if (raised) {
        std::rethrow_exception(raised);
      }
    } catch (const CompileRefused& refused) {
      raise_refusal(refused);
    } catch (const InternalError& bug) {
      PyErr_SetString(internal_error, bug.what());
    }
  });
}

}  // namespace spyre::glue
