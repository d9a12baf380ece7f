#pragma once

#include <torch/csrc/utils/pybind.h>

/// torch_spyre._C, a file per topic.
namespace spyre::glue {

void bind_errors(py::module& module);    ///< CompileError, InternalError
void bind_layout(py::module& module);    ///< SpyreTensorLayout, DataFormats, ElementArrangement
void bind_tensor(py::module& module);    ///< layouts of tensors, factories and copies with explicit layouts
void bind_device(py::module& module);    ///< cards, streams, generators, settings, counters, fallback
void bind_compile(py::module& module);   ///< graph text to something that runs
void bind_launch(py::module& module);    ///< bundles, prepared kernels, launches
void bind_progress(py::module& module);  ///< what a compilation does, shown on stderr
void bind_opspec(py::module& module);    ///< kernels, operations and operands as values
void bind_logging(py::module& module);   ///< which messages of the C++ layers are printed
void bind_memory(py::module& module);    ///< statistics, snapshot, history
void bind_profile(py::module& module);   ///< reports of profiles
void bind_forms(py::module& module);     ///< eager operators that are written in Python, in terms of others

/// Remembers where tensors are allocated; see bindings_memory.cpp. Empty unless history is recorded.
std::shared_ptr<void> allocation_frames();

}  // namespace spyre::glue
