// spyre-inspect: explains a bundle: what it takes, what runs in which order, and what each core does where.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>

#include "spyre/base/json.h"
#include "spyre/base/text.h"
#include "spyre/program/read_program.h"
#include "tools/bundle_directory.h"
#include "tools/exit_code.h"

namespace spyre::tools {
namespace {

using namespace program;  // NOLINT: this tool speaks of little else

std::string form_text(const DeviceProgram& program, const LinearForm& form) {
  std::string out;
  for (const LinearForm::Term& term : form.terms) {
    const std::string atom = term.atom.kind == AtomSource::kPool ? "pool"
                             : term.atom.kind == AtomSource::kLoop
                                 ? fmt::format("i{}", term.atom.index)
                                 : program.parameters[static_cast<size_t>(term.atom.index)].name;
    out += out.empty() ? "" : " + ";
    out += term.coefficient == 1 ? atom : fmt::format("{}*{}", term.coefficient, atom);
  }
  if (out.empty() || form.constant != 0) {
    out += fmt::format("{}{}", out.empty() ? "" : " + ", form.constant);
  }
  return out;
}

std::string start_text(const CoreStart& start) {
  return start.symbolic ? fmt::format("symbol {}", start.value) : fmt::format("{:#x}", start.value);
}

std::string shape_text(const LaunchArg& arg) {
  std::vector<std::string> sizes;
  for (const auto& size : arg.shape) {
    sizes.push_back(std::visit([](const auto& v) { return fmt::format("{}", v); }, size));
  }
  return fmt::format("[{}]", fmt::join(sizes, ", "));
}

/// A scalar by its value, a ramp by its first two.
std::string fill_text(const Fill& fill) {
  return fill.step == 0 ? fmt::format("{}", fill.start)
                        : fmt::format("{}, {}, ...", fill.start, fill.start + fill.step);
}

/// The role, and of a constant its value.
std::string role_text(const LaunchArg& arg) {
  return arg.fill ? fmt::format("{} {}", arg.role, fill_text(*arg.fill)) : arg.role;
}

std::string dims_text(const ProgramOp& op, const Tensor& tensor) {
  std::vector<std::string> dims;
  for (const TensorDim& d : tensor.dims) {
    const std::string& label = op.dims[static_cast<size_t>(d.dim)].label;
    dims.push_back(d.scale == 1 ? fmt::format("{}:{} by {}", label, d.extent, d.stride)
                                : fmt::format("{}:absent", label));
  }
  return fmt::format("{}", fmt::join(dims, ", "));
}

std::string stick_text(const ProgramOp& op, const Tensor& tensor) {
  std::vector<std::string> digits;
  for (const StickDigit& digit : tensor.stick) {
    digits.push_back(fmt::format("{}:{}", op.dims[static_cast<size_t>(digit.dim)].label, digit.size));
  }
  return fmt::format("{}", fmt::join(digits, " x "));
}

/// Columns as wide as their widest cell.
class Table {
 public:
  explicit Table(std::vector<std::string> header) { rows_.push_back(std::move(header)); }
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  void print(const std::string& indent) const {
    std::vector<size_t> width(rows_[0].size());
    for (const auto& row : rows_) {
      for (size_t i = 0; i < row.size(); ++i) {
        width[i] = std::max(width[i], row[i].size());
      }
    }
    for (const auto& row : rows_) {
      std::string line = indent;
      for (size_t i = 0; i < row.size(); ++i) {
        line += fmt::format("{:<{}}", row[i], width[i] + 2);
      }
      line.erase(line.find_last_not_of(' ') + 1);
      fmt::print("{}\n", line);
    }
  }

 private:
  std::vector<std::vector<std::string>> rows_;
};

// ---- text

void print_launch(const DeviceProgram& program) {
  if (program.launch) {
    fmt::print("kernel {}\n\narguments\n", program.launch->kernel_name);
    Table table({"arg", "role", "dtype", "shape", "device size", "stride map", "format"});
    for (const LaunchArg& arg : program.launch->args) {
      table.add({std::to_string(arg.arg_index), role_text(arg), arg.dtype, shape_text(arg),
                 list_text(arg.device_size), list_text(arg.stride_map),
                 arg.device_format ? std::string(to_string(*arg.device_format)) : "?"});
    }
    table.print("  ");
  }
  fmt::print("\nparameters\n");
  Table table({"name", "kind", "granularity", "max"});
  for (const Parameter& p : program.parameters) {
    table.add({p.name, p.kind == ParameterKind::kAddress ? "address" : "extent",
               p.granularity ? std::to_string(*p.granularity) : "",
               p.max_value ? std::to_string(*p.max_value) : ""});
  }
  table.print("  ");
  fmt::print("\npool {} bytes\n", program.pool_bytes);
}

void print_steps(const DeviceProgram& program, const std::vector<Step>& steps, const std::string& indent) {
  for (const Step& step : steps) {
    if (const auto* loop = std::get_if<ProgramLoop>(&step.what)) {
      fmt::print("{}for i{} = {} to {} step {}\n", indent, loop->counter, form_text(program, loop->lower),
                 form_text(program, loop->upper), form_text(program, loop->step));
      print_steps(program, loop->body, indent + "  ");
      continue;
    }
    const auto& execute = std::get<Execute>(step.what);
    const ProgramOp& op = program.ops[static_cast<size_t>(execute.op)];
    fmt::print("{}{} {}\n", indent, op.file, op.name);
    for (const Execute::Binding& binding : execute.bindings) {
      fmt::print("{}    {} = {}\n", indent, binding.symbol, form_text(program, binding.value));
    }
  }
}

void print_op(const ProgramOp& op) {
  fmt::print("\n{}: {} in {} on {} cores\n", op.file, op.name, to_string(op.format), op.cores.size());
  Table dims({"dim", "extent", "splits", "per core", "runtime"});
  for (size_t d = 0; d < op.dims.size(); ++d) {
    dims.add({op.dims[d].label, std::to_string(op.dims[d].extent), std::to_string(op.dims[d].splits),
              std::to_string(op.slice_extent(static_cast<int>(d))),
              op.dims[d].symbol ? fmt::format("symbol {}", *op.dims[d].symbol) : ""});
  }
  dims.print("  ");
  fmt::print("\n");
  Table tensors({"tensor", "role", "where", "format", "stick", "dims, innermost first (steps by elements)"});
  for (size_t t = 0; t < op.tensors.size(); ++t) {
    const Tensor& tensor = op.tensors[t];
    const bool is_output = static_cast<int>(t) == op.output;
    tensors.add({tensor.name,
                 is_output         ? "out"
                 : tensor.is_index ? "index"
                                   : "in",
                 std::string(to_string(tensor.residence)), std::string(to_string(tensor.format)),
                 stick_text(op, tensor), dims_text(op, tensor)});
  }
  tensors.print("  ");
  fmt::print("\n");
  std::vector<std::string> header = {"core"};
  for (const ProgramDim& dim : op.dims) header.push_back(dim.label);
  for (const Tensor& tensor : op.tensors) header.push_back(tensor.name);
  Table cores(header);
  for (size_t c = 0; c < op.cores.size(); ++c) {
    std::vector<std::string> row = {std::to_string(op.cores[c].core)};
    for (size_t d = 0; d < op.dims.size(); ++d) {
      const int64_t extent = op.slice_extent(static_cast<int>(d));
      row.push_back(
          fmt::format("{}..{}", op.cores[c].slice[d] * extent, (op.cores[c].slice[d] + 1) * extent));
    }
    for (const Tensor& tensor : op.tensors) row.push_back(start_text(tensor.start[c]));
    cores.add(row);
  }
  cores.print("  ");
  for (const Constant& k : op.constants) fmt::print("  constant {} = {} ({:#x})\n", k.name, k.value, k.bits);
  for (const Mask& m : op.masks) {
    fmt::print("  {} {}..{} reads as {}\n", op.dims[static_cast<size_t>(m.dim)].label, m.start,
               m.start + m.count, m.value);
  }
}

// ---- JSON

Json steps_json(const DeviceProgram& program, const std::vector<Step>& steps) {
  Json out = Json::array();
  for (const Step& step : steps) {
    if (const auto* loop = std::get_if<ProgramLoop>(&step.what)) {
      out.push_back({{"loop", loop->counter},
                     {"lower", form_text(program, loop->lower)},
                     {"upper", form_text(program, loop->upper)},
                     {"step", form_text(program, loop->step)},
                     {"body", steps_json(program, loop->body)}});
      continue;
    }
    const auto& execute = std::get<Execute>(step.what);
    Json bindings = Json::object();
    for (const Execute::Binding& b : execute.bindings)
      bindings[std::to_string(b.symbol)] = form_text(program, b.value);
    out.push_back({{"execute", program.ops[static_cast<size_t>(execute.op)].file}, {"bindings", bindings}});
  }
  return out;
}

Json op_json(const ProgramOp& op) {
  Json dims = Json::array(), tensors = Json::array(), cores = Json::array();
  for (const ProgramDim& d : op.dims) {
    dims.push_back({{"label", d.label}, {"extent", d.extent}, {"splits", d.splits}});
  }
  for (size_t t = 0; t < op.tensors.size(); ++t) {
    const Tensor& tensor = op.tensors[t];
    Json starts = Json::array();
    for (const CoreStart& start : tensor.start) starts.push_back(start_text(start));
    Json layout = Json::array();
    for (const TensorDim& d : tensor.dims) {
      layout.push_back({{"dim", op.dims[static_cast<size_t>(d.dim)].label},
                        {"scale", d.scale},
                        {"steps", d.extent},
                        {"stride", d.stride}});
    }
    tensors.push_back({{"name", tensor.name},
                       {"output", static_cast<int>(t) == op.output},
                       {"residence", to_string(tensor.residence)},
                       {"format", to_string(tensor.format)},
                       {"dims", layout},
                       {"starts", starts}});
  }
  for (const CoreWork& work : op.cores) cores.push_back({{"core", work.core}, {"slice", work.slice}});
  return {{"file", op.file}, {"op", op.name},      {"format", to_string(op.format)},
          {"dims", dims},    {"tensors", tensors}, {"cores", cores}};
}

Json program_json(const DeviceProgram& program) {
  Json arguments = Json::array(), parameters = Json::array(), ops = Json::array();
  for (const LaunchArg& arg : program.launch ? program.launch->args : std::vector<LaunchArg>()) {
    arguments.push_back({{"arg_index", arg.arg_index},
                         {"role", arg.role},
                         {"dtype", arg.dtype},
                         {"shape", shape_text(arg)},
                         {"device_size", arg.device_size},
                         {"stride_map", arg.stride_map}});
    if (arg.fill) arguments.back()["fill"] = fill_text(*arg.fill);
  }
  for (const Parameter& p : program.parameters) {
    parameters.push_back(
        {{"name", p.name}, {"kind", p.kind == ParameterKind::kAddress ? "address" : "extent"}});
  }
  for (const ProgramOp& op : program.ops) ops.push_back(op_json(op));
  return {{"kernel", program.launch ? program.launch->kernel_name : ""},
          {"arguments", arguments},
          {"parameters", parameters},
          {"pool_bytes", program.pool_bytes},
          {"steps", steps_json(program, program.steps)},
          {"ops", ops}};
}

int run(const std::string& path, bool json) {
  // What is explained must be what would run.
  if (std::error_code failure;
      std::filesystem::exists(std::filesystem::path(path) / "spyreCodeDir", failure)) {
    if (const auto bundle = open_bundle(path); !bundle.ok()) return report(bundle.error(), kBadArtifact);
  }
  const auto program = read_program_at(path);
  if (!program.ok()) {
    return report(program.error(), kBadArtifact);
  }
  if (json) {
    fmt::print("{}\n", program_json(program.value()).dump(2));
    return kDone;
  }
  print_launch(program.value());
  fmt::print("\nsteps\n");
  print_steps(program.value(), program.value().steps, "  ");
  for (const ProgramOp& op : program.value().ops) {
    print_op(op);
  }
  return kDone;
}

}  // namespace
}  // namespace spyre::tools

int main(int argc, char** argv) {
  CLI::App app(
      "Explains a bundle: arguments, steps, and for each op its splits, layouts, and what every core does at "
      "which "
      "address.\nExit codes: 0 done, 1 command line, 2 bad artifact, 4 bug.",
      "spyre-inspect");
  std::string path;
  bool json = false;
  app.add_option("bundle", path, "Compile directory, or one sdsc JSON file")
      ->required()
      ->check(CLI::ExistingPath);
  app.add_flag("--json", json, "Print JSON");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? spyre::tools::kDone : spyre::tools::kBadUsage;
  }
  return spyre::tools::guarded_main([&] { return spyre::tools::run(path, json); });
}
