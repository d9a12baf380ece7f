#include "tests/fuzz/entry_points.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include "spyre/base/json.h"
#include "spyre/codegen/superdsc/bundle.h"
#include "spyre/device/exec/checked_run.h"
#include "spyre/device/exec/memory_shape.h"
#include "spyre/device/exec/test_memory.h"
#include "spyre/driver/compile.h"
#include "spyre/opspec/text.h"
#include "spyre/program/bundle_text.h"
#include "spyre/program/fields.h"
#include "spyre/program/launch_spec.h"
#include "spyre/program/read_program.h"

namespace spyre::fuzz {
namespace {

constexpr std::string_view kSeparator = "\n=== ";

/// Files of a bundle as one text: "=== name\n", then the content.
std::string join_files(const program::ProgramFiles& files) {
  std::string text;
  for (const auto& [name, content] : files) {
    if (name.ends_with(".json") || name.ends_with(".mlir")) {
      text += std::string(kSeparator) + name + "\n" + content;
    }
  }
  return text;
}

program::ProgramFiles split_files(std::string_view text) {
  program::ProgramFiles files;
  for (size_t at = text.find(kSeparator); at != std::string_view::npos;) {
    const size_t next = text.find(kSeparator, at + 1);
    const std::string_view part = text.substr(at + kSeparator.size(), next - at - kSeparator.size());
    const size_t line = std::min(part.find('\n'), part.size());
    files[std::string(part.substr(0, line))] = part.substr(std::min(line + 1, part.size()));
    at = next;
  }
  return files;
}

/// Runs a program that was accepted, on a small memory, for a bounded number of points and executes.
void run(const program::DeviceProgram& program) {
  constexpr int64_t kPoints = 2000, kExecutes = 64;
  exec::TestMemory memory(32 << 10, 32, 16 << 10);
  exec::Checker checker;
  exec::LaunchValues launch{.pool_base = 16 << 10};
  for (size_t i = 0; i < program.parameters.size(); ++i) {
    launch.parameters.push_back(program.parameters[i].arg_index ? static_cast<int64_t>(i) * 4096 : 4);
    checker.note_host_write(i * 4096, 4096, "argument");
  }
  int64_t executes = 0;
  const auto execute = [&](const exec::BoundOp& bound, exec::CardMemory& to) -> Status {
    if (++executes > kExecutes) {
      return Error(ErrorKind::kDeviceFault, "enough");
    }
    return exec::interpret_op(bound, to);
  };
  exec::RunOptions options;
  options.max_points = kPoints;
  for (const exec::Finding& finding :
       exec::run_checked(program, launch, memory, checker, execute, options).findings) {
    (void)exec::to_string(finding);
  }
}

constexpr std::array kTargets = {
    Target{"bundle_text", bundle_text, 1500}, Target{"sdsc", sdsc, 1500},
    Target{"launch_spec", launch_spec, 1500}, Target{"opspec", opspec, 1500},
    Target{"bundle", bundle, 1500},           Target{"graph", graph, 400},
};

}  // namespace

std::span<const Target> targets() {
  return kTargets;
}

void bundle_text(std::string_view text) {
  (void)program::parse_bundle(text, "bundle.mlir").ok();
}

void sdsc(std::string_view text) {
  const auto program = program::read_program({{"sdsc_0.json", std::string(text)}});
  if (program.ok()) {
    run(program.value());
  }
}

void launch_spec(std::string_view text) {
  const auto json = program::parse_bounded_json(text, "launch_spec.json");
  if (!json.ok()) {
    return;
  }
  const auto spec = program::read_launch_spec(json.value(), "launch_spec.json");
  for (size_t i = 0; spec.ok() && i < spec.value().args.size(); ++i) {
    (void)exec::shape_of(spec.value().args[i], 0);
  }
}

void opspec(std::string_view text) {
  const auto kernel = parse_kernel(text, "fuzz.opspec");
  if (!kernel.ok()) {
    return;
  }
  const auto written = write_bundle(kernel.value());
  if (written.ok()) {
    (void)program::read_program(written.value().files).ok();
  }
}

void graph(std::string_view text) {
  Result<Graph> parsed = parse_graph(text, "fuzz.ir");
  if (!parsed.ok()) {
    return;
  }
  if (const auto compiled = compile(std::move(parsed).value()); compiled.ok()) {
    (void)program::read_program(compiled.value().bundle.files).ok();
  }
}

void bundle(std::string_view text) {
  const auto program = program::read_program(split_files(text));
  if (program.ok()) {
    run(program.value());
  }
}

std::vector<std::string> seeds(std::string_view target, const std::string& corpus) {
  constexpr size_t kLargestGraph =
      4096;  // whole layers take long to compile, and have no loops that these lack
  std::vector<std::filesystem::path> paths;
  for (const auto& entry :
       std::filesystem::directory_iterator(corpus + (target == "graph" ? "/graphs" : "/opspec"))) {
    paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> out;
  for (const auto& path : paths) {
    const std::string text = read_text(path).value();
    if (target == "graph") {
      if (text.size() <= kLargestGraph) out.push_back(text);
      continue;
    }
    if (target == "opspec") {
      out.push_back(text);
      continue;
    }
    const auto files = write_bundle(parse_kernel(text, path.string()).value()).value().files;
    if (target == "bundle") {
      out.push_back(join_files(files));
    }
    for (const auto& [name, content] : files) {
      if ((target == "bundle_text" && name == "bundle.mlir") ||
          (target == "sdsc" && name.starts_with("sdsc_")) ||
          (target == "launch_spec" && name.ends_with("launch_spec.json"))) {
        out.push_back(content);
      }
    }
  }
  return out;
}

}  // namespace spyre::fuzz
