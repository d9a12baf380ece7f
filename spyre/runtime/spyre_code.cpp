#include "spyre/runtime/spyre_code.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "spyre/base/json.h"
#include "spyre/program/fields.h"

namespace spyre {
namespace {

using program::Field;

constexpr size_t kMaxCommands = 1 << 16;
constexpr int64_t kStick = 128;

/// The command and its properties, as every entry of both plans has them.
struct Command {
  Field name;
  Field properties;
};

Result<Command> read_command(const Field& field) {
  SPYRE_ASSIGN_OR_RETURN(const Field name, field.at("command"));
  SPYRE_ASSIGN_OR_RETURN(const Field properties, field.at("properties"));
  return Command{name, properties};
}

/// A number as this file writes them: digits in a string.
Result<int64_t> decimal_of(const Field& field) {
  if (field.json().is_string()) {
    const std::optional<int64_t> value = program::parse_decimal(field.json().get_ref<const std::string&>());
    if (value && *value >= 0) {
      return *value;
    }
  }
  return field.refuse_value("a non-negative decimal number as a string");
}

Result<int64_t> decimal(const Field& properties, std::string_view key) {
  SPYRE_ASSIGN_OR_RETURN(const Field field, properties.at(key));
  return decimal_of(field);
}

Result<std::string> text(const Field& properties, std::string_view key) {
  SPYRE_ASSIGN_OR_RETURN(const Field field, properties.at(key));
  return field.text();
}

/// Reads both plans; `region_` and the known handles grow as it goes.
class Reader {
 public:
  explicit Reader(const Machine& machine)
      : base_(machine.program_base().count()), segment_(machine.segment_bytes.count()) {}

  Status preparation(const Field& plan) {
    SPYRE_ASSIGN_OR_RETURN(const auto commands, plan.elements(kMaxCommands));
    if (commands.size() < 2) {
      return plan.refuse(fmt::format("{} commands", commands.size()),
                         "Allocate, then at least one InitTransfer");
    }
    for (size_t i = 0; i < commands.size(); ++i) {
      SPYRE_ASSIGN_OR_RETURN(const Command command, read_command(commands[i]));
      const char* const expected = i == 0 ? "Allocate" : "InitTransfer";
      if (command.name.json() != expected) {
        return command.name.refuse_value(
            fmt::format("{}; the plan is one Allocate, then InitTransfers", expected));
      }
      SPYRE_TRY(i == 0 ? allocate(command.properties) : init_transfer(command.properties));
    }
    return Status();
  }

  Status execution(const Field& plan) {
    SPYRE_ASSIGN_OR_RETURN(const auto commands, plan.elements(kMaxCommands));
    for (const Field& field : commands) {
      SPYRE_ASSIGN_OR_RETURN(const Command command, read_command(field));
      SPYRE_TRY(step(command));
    }
    return check_order(plan);
  }

  SpyreCode take() { return std::move(code_); }

 private:
  Status check_order(const Field& plan) const {
    const auto computes = [](const JobStep& s) { return std::holds_alternative<Compute>(s.what); };
    const auto prepares = [](const JobStep& s) { return s.role() == StepRole::kPrep; };
    const auto last = std::find_if(code_.steps.rbegin(), code_.steps.rend(), computes);
    if (code_.steps.empty()) {
      return plan.refuse("no command", "at least one");
    }
    if (last == code_.steps.rend()) {
      return Status();
    }
    if (std::find_if(code_.steps.rbegin(), last, prepares) != last) {
      return plan.refuse("a preparation after the last ComputeOnDevice", "preparations, then what uses them");
    }
    if (std::get<Compute>(last->what).non_terminal) {
      return plan.refuse("non_terminal at the last ComputeOnDevice", "the mark where another one follows");
    }
    return Status();
  }

  Status allocate(const Field& properties) {
    SPYRE_ASSIGN_OR_RETURN(const int64_t size, decimal(properties, "size"));
    code_.allocation = Bytes(size);
    return Status();
  }

  Status init_transfer(const Field& properties) {
    InitTransfer init;
    SPYRE_ASSIGN_OR_RETURN(const Field file, properties.at("init_bin_file"));
    SPYRE_ASSIGN_OR_RETURN(init.file, file.text());
    if (init.file.empty() || init.file.find('/') != std::string::npos || init.file.front() == '.') {
      return file.refuse_value("the name of a file beside spyrecode.json");
    }
    SPYRE_ASSIGN_OR_RETURN(const int64_t size, decimal(properties, "size"));
    SPYRE_ASSIGN_OR_RETURN(init.offset, region_offset(properties, "dev_ptr", size));
    init.size = Bytes(size);
    code_.init.push_back(std::move(init));
    return Status();
  }

  /// An address in the program segment as an offset of the region; `size` bytes fit behind it.
  Result<Bytes> region_offset(const Field& properties, std::string_view key, int64_t size) const {
    SPYRE_ASSIGN_OR_RETURN(const Field field, properties.at(key));
    SPYRE_ASSIGN_OR_RETURN(const int64_t pointer, decimal_of(field));
    const int64_t end = base_ + code_.allocation.count();
    if (pointer < base_ || pointer > end || size > end - pointer) {
      return field.refuse(fmt::format("{} with {} bytes behind it", pointer, size),
                          fmt::format("inside the program region, {} to {}", base_, end),
                          ErrorKind::kOutOfRange);
    }
    if (pointer % kStick != 0) {
      return field.refuse_value(fmt::format("a multiple of {}", kStick));
    }
    return Bytes(pointer - base_);
  }

  Status step(const Command& command) {
    SPYRE_ASSIGN_OR_RETURN(const std::string name, command.name.text());
    if (name == "ComputeOnDevice") {
      return compute_on_device(command.properties);
    }
    if (name == "ComputeOnHost") {
      return compute_on_host(command.properties);
    }
    if (name == "DataTransfer") {
      return data_transfer(command.properties);
    }
    return command.name.refuse_value("ComputeOnDevice, ComputeOnHost or DataTransfer");
  }

  Status compute_on_device(const Field& properties) {
    Compute compute;
    SPYRE_ASSIGN_OR_RETURN(compute.entry, region_offset(properties, "job_bin_ptr", 0));
    SPYRE_ASSIGN_OR_RETURN(const std::optional<Field> mark, properties.find("non_terminal"));
    if (mark) {
      if (mark->json() != "true") {
        return mark->refuse_value("\"true\", or no such property");
      }
      compute.non_terminal = true;
    }
    JobStep step{.what = compute};
    SPYRE_ASSIGN_OR_RETURN(const std::optional<Field> name, properties.find("name"));
    if (name) {
      SPYRE_ASSIGN_OR_RETURN(step.name, name->text());
    }
    code_.steps.push_back(std::move(step));
    return Status();
  }

  Status compute_on_host(const Field& properties) {
    HostCompute compute;
    SPYRE_ASSIGN_OR_RETURN(const Field input, properties.at("ihandle"));
    SPYRE_ASSIGN_OR_RETURN(const std::string input_name, input.text());
    if (!input_name.empty()) {
      SPYRE_ASSIGN_OR_RETURN(compute.input, known_handle(input));
    }
    SPYRE_ASSIGN_OR_RETURN(const Field shape, properties.at("ishape"));
    SPYRE_ASSIGN_OR_RETURN(const auto sizes, shape.elements(kMaxCommands));
    for (const Field& field : sizes) {
      SPYRE_ASSIGN_OR_RETURN(const int64_t size, decimal_of(field));
      compute.input_shape.push_back(size);
    }
    SPYRE_ASSIGN_OR_RETURN(const Field size, properties.at("size"));
    SPYRE_ASSIGN_OR_RETURN(const int64_t bytes, decimal_of(size));
    SPYRE_ASSIGN_OR_RETURN(const Field hcm, properties.at("hcm"));
    SPYRE_TRY(read_parameters(hcm, compute));
    if (compute.parameters && bytes < static_cast<int64_t>(compute.parameters->size()) * 8) {
      return size.refuse_value(fmt::format("room for {} parameters of 8 bytes", compute.parameters->size()));
    }
    SPYRE_ASSIGN_OR_RETURN(compute.buffer, new_handle(properties, "ohandle", Bytes(bytes)));
    code_.steps.push_back({.what = std::move(compute)});
    return Status();
  }

  Status read_parameters(const Field& hcm, HostCompute& compute) const {
    SPYRE_ASSIGN_OR_RETURN(const std::optional<Field> vdci, hcm.find("vdci"));
    if (!vdci) {
      return Status();
    }
    SPYRE_ASSIGN_OR_RETURN(const std::optional<Field> list, vdci->find("parameters"));
    if (!list) {
      return Status();
    }
    SPYRE_ASSIGN_OR_RETURN(const auto fields, list->elements(kMaxCommands));
    compute.parameters.emplace();
    for (const Field& field : fields) {
      SPYRE_ASSIGN_OR_RETURN(ParameterSource source, read_parameter(field));
      compute.parameters->push_back(std::move(source));
    }
    return Status();
  }

  static Result<ParameterSource> read_parameter(const Field& field) {
    static const std::map<std::string, ParameterSource::Kind> kKinds = {
        {"pool", ParameterSource::Kind::kPool},
        {"kernel", ParameterSource::Kind::kKernel},
        {"dimension", ParameterSource::Kind::kDimension},
        {"loop_dimension", ParameterSource::Kind::kLoopDimension}};
    ParameterSource source;
    SPYRE_ASSIGN_OR_RETURN(const Field kind, field.at("kind"));
    SPYRE_ASSIGN_OR_RETURN(const std::string name, kind.text());
    const auto known = kKinds.find(name);
    if (known == kKinds.end()) {
      return kind.refuse_value("pool, kernel, dimension or loop_dimension");
    }
    source.kind = known->second;
    if (source.kind == ParameterSource::Kind::kPool) {
      return source;
    }
    SPYRE_ASSIGN_OR_RETURN(source.arg_index, integer(field, "arg_index", 0));
    if (source.is_address()) {
      return source;
    }
    SPYRE_ASSIGN_OR_RETURN(source.dim_index, integer(field, "dim_index", 0));
    SPYRE_ASSIGN_OR_RETURN(source.granularity, integer(field, "granularity", 1));
    SPYRE_ASSIGN_OR_RETURN(source.max_value, integer(field, "max_value", 1));
    SPYRE_ASSIGN_OR_RETURN(source.symbol, text(field, "symbol"));
    return source;
  }

  static Result<int64_t> integer(const Field& field, std::string_view key, int64_t low) {
    SPYRE_ASSIGN_OR_RETURN(const Field value, field.at(key));
    return value.integer(low, INT64_MAX);
  }

  Status data_transfer(const Field& properties) {
    Transfer transfer;
    SPYRE_ASSIGN_OR_RETURN(const Field direction, properties.at("dirn"));
    if (direction.json() != "false" && direction.json() != "true") {
      return direction.refuse_value("\"false\" (host to device) or \"true\" (device to host)");
    }
    transfer.to_host = direction.json() == "true";
    SPYRE_ASSIGN_OR_RETURN(const int64_t size, decimal(properties, "size"));
    transfer.size = Bytes(size);
    SPYRE_TRY(transfer.to_host ? read_source(properties, transfer) : read_target(properties, transfer));
    if (transfer.to_host) {
      SPYRE_ASSIGN_OR_RETURN(transfer.buffer, new_handle(properties, "host_handle", transfer.size));
    } else {
      SPYRE_ASSIGN_OR_RETURN(const Field handle, properties.at("host_handle"));
      SPYRE_ASSIGN_OR_RETURN(transfer.buffer, known_handle(handle));
      if (transfer.size > code_.buffers[static_cast<size_t>(transfer.buffer)]) {
        return handle.refuse(fmt::format("{} bytes to send", size),
                             fmt::format("the {} bytes of the buffer",
                                         code_.buffers[static_cast<size_t>(transfer.buffer)].count()));
      }
    }
    code_.steps.push_back({.what = transfer});
    return Status();
  }

  Status read_target(const Field& properties, Transfer& transfer) const {
    SPYRE_ASSIGN_OR_RETURN(transfer.offset, region_offset(properties, "dev_ptr", transfer.size.count()));
    return Status();
  }

  /// An address below the program segment is one in a launch tensor, whose size is known at the launch.
  Status read_source(const Field& properties, Transfer& transfer) const {
    SPYRE_ASSIGN_OR_RETURN(const Field field, properties.at("dev_ptr"));
    SPYRE_ASSIGN_OR_RETURN(const int64_t pointer, decimal_of(field));
    if (pointer >= base_) {
      return read_target(properties, transfer);
    }
    if (pointer % kStick != 0) {
      return field.refuse_value(fmt::format("a multiple of {}", kStick));
    }
    transfer.tensor = static_cast<int>(pointer / segment_);
    transfer.offset = Bytes(pointer % segment_);
    return Status();
  }

  Result<int> known_handle(const Field& field) const {
    SPYRE_ASSIGN_OR_RETURN(const std::string name, field.text());
    const auto known = handles_.find(name);
    if (known == handles_.end()) {
      return field.refuse_value("a handle that an earlier command made");
    }
    return known->second;
  }

  Result<int> new_handle(const Field& properties, std::string_view key, Bytes size) {
    SPYRE_ASSIGN_OR_RETURN(const Field field, properties.at(key));
    SPYRE_ASSIGN_OR_RETURN(const std::string name, field.text());
    if (name.empty() || handles_.contains(name)) {
      return field.refuse_value("a new, non-empty handle");
    }
    const int index = static_cast<int>(code_.buffers.size());
    handles_[name] = index;
    code_.buffers.push_back(size);
    return index;
  }

  int64_t base_, segment_;
  SpyreCode code_;
  std::map<std::string, int> handles_;
};

}  // namespace

StepRole JobStep::role() const {
  const auto* transfer = std::get_if<Transfer>(&what);
  const bool on_card = std::holds_alternative<Compute>(what) || (transfer != nullptr && transfer->to_host);
  return on_card ? StepRole::kDev : StepRole::kPrep;
}

std::string_view JobStep::type() const {
  if (std::holds_alternative<HostCompute>(what)) {
    return "HostCompute";
  }
  if (const auto* transfer = std::get_if<Transfer>(&what)) {
    return transfer->to_host ? "D2H" : "H2D";
  }
  return "Compute";
}

Result<SpyreCode> read_spyre_code(const Json& json, const std::string& file, const Machine& machine) {
  const Field root(file, json);
  Reader reader(machine);
  SPYRE_ASSIGN_OR_RETURN(const Field preparation, root.at("JobPreparationPlan"));
  SPYRE_ASSIGN_OR_RETURN(const Field execution, root.at("JobExecPlan"));
  SPYRE_TRY(reader.preparation(preparation));
  if (const Status read = reader.execution(execution); !read.ok()) {
    Error error = read.error();
    error.message = "Failed to parse SpyreCode command: " + error.message;
    return error;
  }
  return reader.take();
}

}  // namespace spyre
