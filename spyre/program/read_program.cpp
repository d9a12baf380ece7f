#include "spyre/program/read_program.h"

#include <fmt/format.h>

#include <algorithm>

#include "spyre/base/json.h"
#include "spyre/base/thread_pool.h"
#include "spyre/program/bundle_text.h"
#include "spyre/program/fields.h"
#include "spyre/program/launch_spec.h"
#include "spyre/program/lower.h"
#include "spyre/program/sdsc_record.h"
#include "spyre/program/validate.h"

namespace spyre::program {
namespace {

constexpr const char* kBundle = "bundle.mlir";
constexpr const char* kLaunchSpec = "launch_spec.json";
constexpr const char* kNestedLaunchSpec = "spyreCodeDir/launch_spec.json";

Result<ProgramOp> read_op(const std::string& text, const std::string& file, const Machine& machine) {
  SPYRE_ASSIGN_OR_RETURN(const Json json, parse_bounded_json(text, file));
  SPYRE_ASSIGN_OR_RETURN(const SdscRecord record, read_sdsc(json, file));
  SPYRE_TRY(validate_record(record, machine));
  return lower_sdsc(record);
}

bool is_sdsc_name(std::string_view name) {
  return name.starts_with("sdsc") && name.ends_with(".json");
}

Result<DeviceProgram> read_bundle(const ProgramFiles& files, const Machine& machine) {
  SPYRE_ASSIGN_OR_RETURN(BundleText bundle, parse_bundle(files.at(kBundle), kBundle));
  DeviceProgram program;
  program.parameters = std::move(bundle.parameters);
  program.pool_bytes = bundle.pool_bytes;
  program.loop_count = bundle.loop_count;
  program.steps = std::move(bundle.steps);
  for (const std::string& name : bundle.files) {
    if (!files.contains(name)) {
      return Error(
          ErrorKind::kNotFound,
          fmt::format("{}: sdsc_filename: found '{}', allowed: the files of the bundle", kBundle, name));
    }
  }
  std::vector<std::optional<Result<ProgramOp>>> ops(bundle.files.size());
  parallel_for(std::ssize(ops), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const auto file = files.find(bundle.files[i]);
      ops[i] = read_op(file->second, file->first, machine);
    }
  });
  for (std::optional<Result<ProgramOp>>& op : ops) {  // of several that are wrong, the first one is told
    if (!op->ok()) return op->error();
    program.ops.push_back(std::move(*op).value());
  }
  return program;
}

Result<DeviceProgram> read_lone_sdsc(const ProgramFiles& files, const Machine& machine) {
  const std::string* text = nullptr;
  std::string name;
  for (const auto& [file, content] : files) {
    if (!is_sdsc_name(file)) {
      continue;
    }
    if (text != nullptr) {
      return Error(
          ErrorKind::kNotFound,
          fmt::format("{}: found '{}' and '{}' without it, allowed: one sdsc file, or a bundle.mlir that "
                      "orders several",
                      kBundle, name, file));
    }
    text = &content;
    name = file;
  }
  if (text == nullptr) {
    return Error(ErrorKind::kNotFound,
                 fmt::format("found neither {} nor an sdsc file among {} files", kBundle, files.size()));
  }
  DeviceProgram program;
  SPYRE_ASSIGN_OR_RETURN(ProgramOp op, read_op(*text, name, machine));
  program.ops.push_back(std::move(op));
  program.steps.push_back({Execute{.op = 0, .bindings = {}}});
  return program;
}

/// The launch argument a form stands for, whatever offset it adds; nothing for anything else.
std::optional<int> argument_behind(const DeviceProgram& program, const LinearForm& form) {
  std::optional<int> arg;
  for (const LinearForm::Term& term : form.terms) {
    if (term.atom.kind == AtomSource::kLoop) {
      continue;
    }
    if (term.atom.kind != AtomSource::kParameter || term.coefficient != 1 || arg ||
        !program.parameters[term.atom.index].arg_index) {
      return std::nullopt;
    }
    arg = *program.parameters[term.atom.index].arg_index;
  }
  return arg;
}

void refine_execute(DeviceProgram& program, const Execute& execute) {
  ProgramOp& op = program.ops[execute.op];
  for (size_t t = 0; t < op.tensors.size(); ++t) {
    const CoreStart start = op.tensors[t].start[0];
    const auto binding = std::find_if(execute.bindings.begin(), execute.bindings.end(), [&](const auto& b) {
      return start.symbolic && b.symbol == start.value;
    });
    if (binding == execute.bindings.end()) {
      continue;
    }
    const std::optional<int> arg = argument_behind(program, binding->value);
    for (const LaunchArg& launch : program.launch->args) {
      if (arg && launch.arg_index == *arg) {
        refine_with_physical_size(op, static_cast<int>(t), launch.device_size);
      }
    }
  }
}

void refine_steps(DeviceProgram& program, const std::vector<Step>& steps) {
  for (const Step& step : steps) {
    if (const auto* execute = std::get_if<Execute>(&step.what)) {
      refine_execute(program, *execute);
    } else {
      refine_steps(program, std::get<ProgramLoop>(step.what).body);
    }
  }
}

}  // namespace

Result<DeviceProgram> read_program(const ProgramFiles& files, const Machine& machine) {
  SPYRE_ASSIGN_OR_RETURN(DeviceProgram program, files.contains(kBundle) ? read_bundle(files, machine)
                                                                        : read_lone_sdsc(files, machine));
  for (const char* name : {kLaunchSpec, kNestedLaunchSpec}) {
    if (const auto file = files.find(name); file != files.end() && !program.launch) {
      SPYRE_ASSIGN_OR_RETURN(const Json json, parse_bounded_json(file->second, name));
      SPYRE_ASSIGN_OR_RETURN(program.launch, read_launch_spec(json, name));
    }
  }
  SPYRE_TRY(validate_bindings(program));
  if (program.launch) {
    refine_steps(program, std::vector<Step>(program.steps));
  }
  for (const ProgramOp& op : program.ops) {
    SPYRE_TRY(validate_op(op, machine));
  }
  return program;
}

Result<ProgramFiles> load_program_files(const std::filesystem::path& path) {
  ProgramFiles files;
  std::error_code failure;
  if (!std::filesystem::is_directory(path, failure)) {
    SPYRE_ASSIGN_OR_RETURN(files["sdsc_0.json"], read_text(path));
    return files;
  }
  for (const auto& entry : std::filesystem::directory_iterator(path, failure)) {
    const std::string name = entry.path().filename().string();
    if (name == kBundle || name == kLaunchSpec || is_sdsc_name(name)) {
      SPYRE_ASSIGN_OR_RETURN(files[name], read_text(entry.path()));
    }
  }
  if (std::filesystem::exists(path / kNestedLaunchSpec, failure)) {
    SPYRE_ASSIGN_OR_RETURN(files[kNestedLaunchSpec], read_text(path / kNestedLaunchSpec));
  }
  return files;
}

Result<DeviceProgram> read_program_at(const std::filesystem::path& path, const Machine& machine) {
  SPYRE_ASSIGN_OR_RETURN(const ProgramFiles files, load_program_files(path));
  return read_program(files, machine);
}

}  // namespace spyre::program
