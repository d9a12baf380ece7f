#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <vector>

#include "spyre/codegen/superdsc/corpus_for_test.h"
#include "spyre/device/exec/checked_run.h"
#include "spyre/device/exec/test_memory.h"
#include "spyre/program/read_program.h"

/// A kernel of the corpus as a bundle on a card with a checker: arguments a few sticks apart, inputs written
/// by the host, everything else untouched.
namespace spyre {

using superdsc::corpus_kernel;
using superdsc::corpus_names;

/// How a run ended: the first of these that says no.
struct Outcome {
  enum class By { kNobody, kReader, kFault, kChecker };
  friend void PrintTo(By by, std::ostream* out) {
    *out << std::array{"nobody", "the reader", "a fault", "the checker"}[static_cast<size_t>(by)];
  }
  By by = By::kNobody;
  std::string message;  ///< of the refusal or fault
  std::vector<exec::Finding> findings;

  bool found(exec::Rule rule) const {
    return std::any_of(findings.begin(), findings.end(), [&](const auto& f) { return f.rule == rule; });
  }
  std::string to_string() const {
    std::string text = message;
    for (const exec::Finding& finding : findings) {
      text += (text.empty() ? "" : "\n") + exec::to_string(finding);
    }
    return text;
  }
};

/// Reads and runs a bundle made from `kernel`, which may have been changed since. Runtime extents are the
/// largest.
inline Outcome run_bundle(const Kernel& kernel, const program::ProgramFiles& files,
                          const exec::OpExecutor& execute = exec::interpret_op) {
  constexpr int64_t kGuard = 1024;
  const auto read = program::read_program(files);
  if (!read.ok()) {
    return {.by = Outcome::By::kReader, .message = read.error().to_string()};
  }
  const program::DeviceProgram& program = read.value();
  std::map<int64_t, int64_t> base;
  int64_t end = kGuard;
  exec::Checker checker;
  for (const LaunchArgument& a : kernel.arguments) {
    int64_t bytes = bits_of(a.format) / 8;
    for (const int64_t size : a.device_size) {
      bytes *= size;
    }
    bytes = round_up(bytes, 128);
    base[a.index] = end;
    checker.note_alloc(end, bytes, "argument " + std::to_string(a.index));
    if (a.role != ArgumentRole::kOutput) {
      checker.note_host_write(end, bytes, "argument " + std::to_string(a.index));
    }
    end += bytes + kGuard;
  }
  exec::TestMemory memory(static_cast<size_t>(end + program.pool_bytes + kernel.pool_bytes + (1 << 20)));
  std::fill(memory.hbm().begin(), memory.hbm().end(), std::byte{0});
  exec::LaunchValues launch;
  launch.pool_base = end;
  for (const program::Parameter& p : program.parameters) {
    launch.parameters.push_back(p.arg_index && base.contains(*p.arg_index) ? base.at(*p.arg_index)
                                                                           : p.max_value.value_or(8));
  }
  exec::RunOptions options;
  options.max_points = int64_t{1} << 30;
  exec::CheckedRun run = exec::run_checked(program, launch, memory, checker, execute, options);
  Outcome outcome{.findings = std::move(run.findings)};
  if (!run.status.ok()) {
    outcome.by = Outcome::By::kFault;
    outcome.message = run.status.error().to_string();
  } else if (!outcome.findings.empty()) {
    outcome.by = Outcome::By::kChecker;
  }
  return outcome;
}

}  // namespace spyre
