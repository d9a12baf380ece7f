// Kernels for Python: text to bundle, bundle to card, launch. Only the bundle's files lie between the two.

#include <optional>

#include "glue/bindings.h"
#include "glue/device_state.h"
#include "glue/error.h"
#include "glue/storage.h"
#include "glue/tensor_access.h"
#include "spyre/codegen/superdsc/save_bundle.h"
#include "spyre/opspec/text.h"
#include "spyre/program/read_program.h"
#include "spyre/runtime/launch.h"

namespace spyre::glue {
namespace {

/// A torch.Stream of a card; none: the current stream of the current device.
StreamRef stream_from(const py::object& stream) {
  if (stream.is_none()) {
    return stream_of(current_stream(current_device()));
  }
  const auto index = stream.attr("device_index").cast<c10::DeviceIndex>();
  return stream_of(
      c10::Stream(c10::Stream::UNSAFE, spyre_device(index), stream.attr("stream_id").cast<int64_t>()));
}

JobPlanRef prepare(const std::string& directory, const py::object& stream,
                   const std::optional<std::string>& profiler_name) {
  const StreamRef on = stream_from(stream);
  Card& target = card(static_cast<c10::DeviceIndex>(on->device_index()));
  const py::gil_scoped_release release;
  return unwrap(prepare_kernel(target, directory, {.stream = on, .kernel_name = profiler_name.value_or("")}));
}

LaunchTensor tensor_from(const at::Tensor& tensor, size_t position) {
  TORCH_CHECK(tensor.device().is_privateuseone(), "SpyreStream::launch: argument ", position,
              " must be on Spyre device, found ", tensor.device());
  return {memory_behind(tensor), tensor.sizes().vec()};
}

std::vector<LaunchTensor> tensors_from(const std::vector<at::Tensor>& args) {
  std::vector<LaunchTensor> tensors;
  for (size_t i = 0; i < args.size(); ++i) {
    tensors.push_back(tensor_from(args[i], i));
  }
  return tensors;
}

void launch_plan(const JobPlanRef& plan, const std::vector<at::Tensor>& args,
                 const std::vector<SymbolicArg>& symbolic, bool wait) {
  std::vector<LaunchTensor> tensors = tensors_from(args);
  const StreamRef stream = stream_of(current_stream(static_cast<c10::DeviceIndex>(plan->card().index())));
  const py::gil_scoped_release release;
  check(launch(plan, std::move(tensors), stream, wait ? Blocking::kYes : Blocking::kNo, symbolic));
}

const JobStep& step_at(const JobPlan& plan, size_t i) {
  if (i >= plan.steps().size()) {
    throw py::index_error("step " + std::to_string(i) + " of a plan of " +
                          std::to_string(plan.steps().size()));
  }
  return plan.steps()[i];
}

std::string plan_repr(const JobPlan& plan) {
  return "<JobPlan steps=" + std::to_string(plan.steps().size()) +
         " job_allocation_size=" + std::to_string(plan.job_allocation_size().count()) +
         " expected_inputs=0 pinned_buffers=" + std::to_string(plan.pinned_buffers()) + ">";
}

py::dict counts_dict(const exec::CoreCounts& counts) {
  py::dict out;
  out["hbm_read"] = counts.traffic.hbm_read;
  out["hbm_written"] = counts.traffic.hbm_written;
  out["lx_read"] = counts.traffic.lx_read;
  out["lx_written"] = counts.traffic.lx_written;
  out["ring_bytes"] = counts.ring_bytes;
  out["ring_byte_hops"] = counts.ring_byte_hops;
  out["macs"] = counts.macs;
  out["vector_elements"] = counts.vector_elements;
  out["useful_elements"] = counts.useful_elements;
  return out;
}

/// One entry per op of the program, and their total.
py::dict last_counts(const JobPlan& plan) {
  exec::RunCounts counts;
  std::vector<LoadedProgramRef> programs;
  {
    const py::gil_scoped_release release;
    counts = plan.last_run_counts();
    programs = plan.last_programs();
  }
  py::list ops;
  auto counted = counts.ops.begin();
  for (const LoadedProgramRef& program : programs) {
    for (const program::ProgramOp& ran : program->program().ops) {
      if (counted == counts.ops.end()) {
        break;
      }
      py::dict op = counts_dict(counted->total());
      op["op"] = ran.name;
      op["executes"] = counted++->executes;
      ops.append(op);
    }
  }
  py::dict out = counts_dict(counts.total());
  out["ops"] = ops;
  return out;
}

std::string symbolic_repr(const SymbolicArg& arg) {
  return std::string("SymbolicArg(kind=") +
         (arg.kind == SymbolicArg::Kind::kAddress ? "kAddress" : "kDimension") +
         ", tensor_id=" + std::to_string(arg.tensor_id) + ", dim_index=" + std::to_string(arg.dim_index) +
         ", value=" + std::to_string(arg.value) + ")";
}

void bind_symbolic_args(py::module& module) {
  py::enum_<SymbolicArg::Kind>(module, "SymbolicArgKind")
      .value("kAddress", SymbolicArg::Kind::kAddress)
      .value("kDimension", SymbolicArg::Kind::kDimension);
  py::class_<SymbolicArg>(module, "SymbolicArg", "What one parameter of a kernel is at a launch.")
      .def(py::init([](SymbolicArg::Kind kind, int64_t tensor_id, int64_t dim_index, int64_t value) {
             return SymbolicArg{kind, tensor_id, dim_index, value};
           }),
           py::arg("kind"), py::arg("tensor_id"), py::arg("dim_index") = -1, py::arg("value") = -1)
      .def_readwrite("kind", &SymbolicArg::kind)
      .def_readwrite("tensor_id", &SymbolicArg::tensor_id)
      .def_readwrite("dim_index", &SymbolicArg::dim_index)
      .def_readwrite("value", &SymbolicArg::value)
      .def("__repr__", &symbolic_repr);
  module.def(
      "_resolve_symbolic_args",
      [](const std::vector<at::Tensor>& args, const std::vector<SymbolicArg>& symbolic) {
        return unwrap(resolve(symbolic, tensors_from(args)));
      },
      py::arg("args"), py::arg("symbolic_args"), "The values that the parameters get.");
}

void write_bundle_at(const std::string& opspec, const std::string& directory) {
  const Kernel kernel = unwrap(parse_kernel(opspec, "opspec"));
  check(save_bundle(unwrap(write_bundle(kernel)), directory));
}

py::dict bundle_summary(const std::string& directory) {
  const program::DeviceProgram program = unwrap(program::read_program_at(directory));
  py::list ops;
  for (const program::ProgramOp& op : program.ops) {
    py::dict dims;
    for (const program::ProgramDim& dim : op.dims) {
      dims[py::str(dim.label)] = py::make_tuple(dim.extent, dim.splits);
    }
    py::dict entry;
    entry["file"] = op.file;
    entry["op"] = op.name;
    entry["cores"] = op.cores.size();
    entry["dims"] = dims;
    ops.append(entry);
  }
  py::list parameters;
  for (const program::Parameter& parameter : program.parameters) {
    parameters.append(parameter.name);
  }
  py::dict out;
  out["kernel_name"] = program.launch ? program.launch->kernel_name : "";
  out["parameters"] = parameters;
  out["pool_bytes"] = program.pool_bytes;
  out["ops"] = ops;
  return out;
}

}  // namespace

void bind_launch(py::module& module) {
  bind_symbolic_args(module);
  py::class_<JobPlan, JobPlanRef>(module, "JobPlan", "A kernel loaded onto a card.")
      .def("num_steps", [](const JobPlan& plan) { return plan.steps().size(); })
      .def("job_allocation_size", [](const JobPlan& plan) { return plan.job_allocation_size().count(); })
      .def("get_step_type",
           [](const JobPlan& plan, size_t i) { return std::string(step_at(plan, i).type()); })
      .def("get_step_pipeline_barrier",
           [](const JobPlan& plan, size_t i) { return step_at(plan, i).pipeline_barrier; })
      .def("get_step_stream_role",
           [](const JobPlan& plan, size_t i) {
             return step_at(plan, i).role() == StepRole::kPrep ? "Prep" : "Dev";
           })
      .def("get_step_name",
           [](const JobPlan& plan, size_t i) {
             (void)step_at(plan, i);
             return plan.step_name(i);
           })
      .def("last_run_counts", &last_counts, "What the last launch moved and computed.")
      .def("__repr__", &plan_repr);
  module.def("prepare_kernel", &prepare, py::arg("spyrecode_dir"), py::arg("stream") = py::none(),
             py::arg("profiler_name") = py::none(), "Loads the kernel in a SpyreCode directory onto a card.");
  module.def(
      "launch_jobplan", &launch_plan, py::arg("job_plan"), py::arg("args"),
      py::arg("symbolic_args") = std::vector<SymbolicArg>(), py::kw_only(), py::arg("wait") = false,
      "Runs a prepared kernel on the current stream; `wait` runs it on this thread if the stream is idle.");
  module.def(
      "_reset_device", [](c10::DeviceIndex index) { check(card(resolve_index(index)).reset()); },
      py::arg("index"), py::call_guard<py::gil_scoped_release>(),
      "Recovers the streams of a card after a fault; its memory stays.");
  module.def("write_bundle", &write_bundle_at, py::arg("opspec"), py::arg("directory"),
             "Compiles a kernel in OpSpec text form to a bundle directory.");
  module.def("read_bundle_summary", &bundle_summary, py::arg("directory"));
}

}  // namespace spyre::glue
