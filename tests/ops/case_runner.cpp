// spyre_case_runner: runs kernels on the emulated card, one request after the other, for judges written in
// another language.
//
// A request is one line of JSON and then raw bytes; so is its answer.
//
//     {"kernel": OpSpec text, "arguments": [{"index": 0, "bytes": 512}, ...]}  + the bytes of each argument
//     {"fast": 1, "interpreted": 0, "arguments": [...]}                        + the same arguments
//     afterwards
//     {"error": message}                                                       if anything was refused
//
// `{"table": true}` asks for the op table instead. Every kernel goes the whole way (text, OpSpec, bundle,
// program) and runs several times: interpreted, and by the fast executor with each instruction set of this
// processor. All runs must leave the same bytes everywhere and the same counts; sticks between arguments must
// stay as they were. A disagreement is an error too.

#include <fmt/format.h>

#include <iostream>

#include "spyre/base/json.h"
#include "spyre/codegen/superdsc/bundle.h"
#include "spyre/device/exec/executor.h"
#include "spyre/device/exec/test_memory.h"
#include "spyre/ops/ops.h"
#include "spyre/opspec/text.h"
#include "spyre/program/read_program.h"

namespace spyre {
namespace {

constexpr std::byte kPoison{0xA5};  // what TestMemory is born with

struct Argument {
  int64_t index = 0;
  int64_t base = 0;  ///< one untouched stick before it, one after the last
  std::string bytes;
};

Error disagreement(std::string_view what) {
  return Error(ErrorKind::kInvalidArgument, fmt::format("disagreement: {}", what));
}

Result<std::vector<Argument>> read_arguments(const Json& request, std::istream& in) {
  std::vector<Argument> arguments;
  int64_t end = kStickBytes.count();
  for (const Json& entry : request.at("arguments")) {
    Argument argument{.index = entry.at("index"), .base = end};
    argument.bytes.resize(entry.at("bytes").get<size_t>());
    in.read(argument.bytes.data(), static_cast<std::streamsize>(argument.bytes.size()));
    end = (end + static_cast<int64_t>(argument.bytes.size()) + 2 * kStickBytes.count() - 1) /
          kStickBytes.count() * kStickBytes.count();
    arguments.push_back(std::move(argument));
  }
  return arguments;
}

Result<exec::LaunchValues> launch_values(const program::DeviceProgram& program,
                                         const std::vector<Argument>& arguments, int64_t pool) {
  exec::LaunchValues launch{.pool_base = pool};
  for (const program::Parameter& parameter : program.parameters) {
    for (const Argument& argument : arguments) {
      if (parameter.arg_index == argument.index) launch.parameters.push_back(argument.base);
    }
  }
  if (launch.parameters.size() != program.parameters.size()) {
    return disagreement(fmt::format("{} parameters, {} of them are tensors that came along",
                                    program.parameters.size(), launch.parameters.size()));
  }
  return launch;
}

/// Bytes that belong to no argument are as they were; arguments take their new content.
Status take_back(const exec::TestMemory& memory, std::vector<Argument>& arguments, int64_t pool) {
  exec::TestMemory copy = memory;
  int64_t at = 0;
  for (Argument& argument : arguments) {
    for (; at < argument.base; ++at) {
      if (copy.hbm()[at] != kPoison) return disagreement(fmt::format("byte {} is between tensors", at));
    }
    std::memcpy(argument.bytes.data(), copy.hbm().data() + at, argument.bytes.size());
    at += static_cast<int64_t>(argument.bytes.size());
  }
  for (; at < pool; ++at) {
    if (copy.hbm()[at] != kPoison) return disagreement(fmt::format("byte {} is past the last tensor", at));
  }
  return Status();
}

Result<Json> run_case(const Json& request, std::vector<Argument>& arguments) {
  SPYRE_ASSIGN_OR_RETURN(const Kernel kernel, parse_kernel(request.at("kernel").get<std::string>(), "case"));
  SPYRE_ASSIGN_OR_RETURN(const Bundle bundle, write_bundle(kernel));
  SPYRE_ASSIGN_OR_RETURN(const program::DeviceProgram program, program::read_program(bundle.files));

  const int64_t stick = kStickBytes.count();
  int64_t pool = stick;
  if (!arguments.empty()) {
    const int64_t last = arguments.back().base + static_cast<int64_t>(arguments.back().bytes.size());
    pool = (last + 2 * stick - 1) / stick * stick;
  }
  exec::TestMemory memory(static_cast<size_t>(pool + kernel.pool_bytes));
  for (const Argument& argument : arguments) {
    std::memcpy(memory.hbm().data() + argument.base, argument.bytes.data(), argument.bytes.size());
  }
  SPYRE_ASSIGN_OR_RETURN(const exec::LaunchValues launch, launch_values(program, arguments, pool));

  const exec::TestMemory before = memory;
  SPYRE_ASSIGN_OR_RETURN(const exec::RunCounts counts, exec::interpret(program, launch, memory));
  exec::PathCounts paths;
  for (const exec::VectorKernels& kernels : exec::vector_kernels()) {
    exec::TestMemory copy = before;
    exec::RunOptions options;
    paths = {};
    options.paths = &paths;
    const exec::PreparedProgram prepared(program, kernels, *options.machine);
    SPYRE_ASSIGN_OR_RETURN(const exec::RunCounts fast, prepared.execute(launch, copy, options));
    if (!(fast == counts)) return disagreement(fmt::format("{} counts differently", kernels.name));
    if (!copy.same_bytes(memory)) return disagreement(fmt::format("{} leaves other bytes", kernels.name));
  }
  SPYRE_TRY(take_back(memory, arguments, pool));
  return Json{{"fast", paths.fast}, {"interpreted", paths.interpreted}};
}

Json formats_of(FormatSet set) {
  Json names = Json::array();
  for (int i = 0; i < kDataFormatCount; ++i) {
    const auto format = static_cast<DataFormat>(i);
    if (set.contains(format)) names.push_back(std::string(to_string(format)));
  }
  return names;
}

/// Every op function: a reduction counts once per variant.
Json table() {
  Json rows = Json::array();
  for (const OpInfo& op : all_ops()) {
    const auto add = [&](bool nonstick) {
      Json constants = Json::array();
      for (const std::string_view name : op.constants) constants.push_back(std::string(name));
      rows.push_back({{"function", op_func_name(op, nonstick)},
                      {"base", std::string(op.name)},
                      {"family", std::string(to_string(op.family))},
                      {"inputs", op.inputs},
                      {"input_formats", formats_of(op.input_formats)},
                      {"output_formats", formats_of(op.output_formats)},
                      {"constants", std::move(constants)}});
    };
    if (op.family != OpFamily::kReduction || op.stick_variant) add(false);
    if (op.nonstick_variant) add(true);
  }
  return {{"table", std::move(rows)}};
}

Result<Json> answer(const std::string& line, std::istream& in, std::vector<Argument>& arguments) {
  SPYRE_ASSIGN_OR_RETURN(const Json request, parse_json(line, "request"));
  if (request.contains("table")) return table();
  SPYRE_ASSIGN_OR_RETURN(arguments, read_arguments(request, in));
  SPYRE_ASSIGN_OR_RETURN(Json reply, run_case(request, arguments));
  reply["arguments"] = Json::array();
  for (const Argument& argument : arguments) {
    reply["arguments"].push_back({{"index", argument.index}, {"bytes", argument.bytes.size()}});
  }
  return reply;
}

}  // namespace
}  // namespace spyre

int main() {
  std::ios::sync_with_stdio(false);
  std::string line;
  while (std::getline(std::cin, line)) {
    std::vector<spyre::Argument> arguments;
    const spyre::Result<spyre::Json> reply = spyre::answer(line, std::cin, arguments);
    if (reply.ok()) {
      std::cout << reply.value().dump() << '\n';
      for (const spyre::Argument& argument : arguments) std::cout << argument.bytes;
    } else {
      std::cout << spyre::Json{{"error", reply.error().to_string()}}.dump() << '\n';
    }
    std::cout << std::flush;
  }
  return 0;
}
