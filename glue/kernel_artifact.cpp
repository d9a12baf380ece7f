#include "glue/kernel_artifact.h"

#include <c10/util/StringUtil.h>

#include "spyre/base/json.h"
#include "spyre/program/launch_spec.h"

namespace spyre::glue {
namespace {

constexpr const char* kLaunchSpec = "spyreCodeDir/launch_spec.json";

Error refuse(const std::string& found, const std::string& allowed) {
  return Error(ErrorKind::kInvalidArgument, c10::str(kLaunchSpec, ": found ", found, ", allowed: ", allowed));
}

Result<KernelArgument> read_argument(const program::LaunchArg& arg, const std::string& name) {
  KernelArgument argument{.name = name, .offset = arg.offset, .storage = arg.storage};
  const std::optional<HostType> type = host_type_from_name(arg.dtype);
  if (!type || !arg.device_format || arg.device_size.empty()) {
    return refuse(c10::str("argument '", name, "' with dtype '", arg.dtype, "' and ",
                           arg.device_size.empty() ? "no" : "a", " layout"),
                  "a dtype of the card and a whole layout");
  }
  argument.dtype = *type;
  for (const auto& size : arg.shape) {
    const auto* const fixed = std::get_if<int64_t>(&size);
    if (fixed == nullptr) {
      return refuse(c10::str("argument '", name, "' with the extent ", std::get<std::string>(size)),
                    "fixed sizes");
    }
    argument.size.push_back(*fixed);
  }
  argument.most = argument.size;
  argument.stride = arg.stride.empty() ? spyre::contiguous_strides(argument.size) : arg.stride;
  argument.layout = DeviceLayout::raw(arg.device_size, arg.stride_map, *arg.device_format, arg.arrangement);
  SPYRE_TRY(argument.layout.check_well_formed());
  return argument;
}

}  // namespace

KernelArtifact artifact_of(CompiledGraph& compiled) {
  KernelArtifact artifact{.name = compiled.graph.name,
                          .bundle = std::move(compiled.bundle),
                          .arguments = compiled.arguments,
                          .caller_pool = compiled.caller_pool};
  for (const BufferId output : compiled.graph.results) {
    const Buffer& buffer = compiled.graph.buffers[static_cast<size_t>(output)];
    if (buffer.is_input) artifact.written_inputs.push_back(buffer.name);
  }
  return artifact;
}

Result<KernelArtifact> read_artifact(Bundle bundle, const std::vector<std::string>& inputs,
                                     const std::vector<std::string>& outputs, const ArgumentBounds& bounds) {
  const auto text = bundle.files.find(kLaunchSpec);
  if (text == bundle.files.end()) return refuse("no such file", "what the kernel is launched with");
  const Json json = Json::parse(text->second, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) return refuse("something else", "JSON");
  SPYRE_ASSIGN_OR_RETURN(const program::LaunchSpec spec, program::read_launch_spec(json, kLaunchSpec));

  KernelArtifact artifact{.name = spec.kernel_name, .caller_pool = Bytes(spec.pool_size)};
  for (const program::LaunchArg& arg : spec.args) {
    const size_t position = artifact.arguments.size();
    if (arg.is_constant() || position == inputs.size() + outputs.size()) break;
    const bool is_input = position < inputs.size();
    SPYRE_ASSIGN_OR_RETURN(
        KernelArgument argument,
        read_argument(arg, is_input ? inputs[position] : outputs[position - inputs.size()]));
    if (const auto open = bounds.find(argument.name); open != bounds.end()) {
      if (open->second.size() != argument.size.size()) {
        return refuse(c10::str("bounds of ", open->second.size(), " dimensions of '", argument.name, "'"),
                      c10::str(argument.size.size(), " of them"));
      }
      for (size_t d = 0; d < argument.size.size(); ++d) {
        argument.open.push_back(open->second[d] > 0);
        if (argument.open[d]) argument.most[d] = open->second[d];
      }
    }
    argument.role = is_input ? KernelArgument::Role::kInput : KernelArgument::Role::kOutput;
    if (is_input && arg.role == "input_output") artifact.written_inputs.push_back(argument.name);
    artifact.arguments.push_back(std::move(argument));
  }
  if (artifact.arguments.size() != inputs.size() + outputs.size()) {
    return refuse(c10::str(artifact.arguments.size(), " arguments"),
                  c10::str(inputs.size(), " inputs and ", outputs.size(), " outputs"));
  }
  artifact.bundle = std::move(bundle);
  return artifact;
}

}  // namespace spyre::glue
