#pragma once

#include <gtest/gtest.h>

#include "spyre/device/exec/executor.h"
#include "spyre/device/exec/test_memory.h"

namespace spyre::exec {

/// Interprets a program in `memory`, runs it with the fast executor in a copy, and expects the same bytes,
/// the same counts or the same refusal. Every test of an op thereby tests both.
inline Result<RunCounts> run_both(const DeviceProgram& program, const LaunchValues& launch,
                                  TestMemory& memory, const RunOptions& options = {},
                                  PathCounts* paths = nullptr,
                                  const VectorKernels& kernels = vector_kernels().front()) {
  TestMemory copy = memory;
  const Result<RunCounts> expected = interpret(program, launch, memory, options);
  const RunOptions quiet{.machine = options.machine, .max_points = options.max_points, .paths = paths};
  const Result<RunCounts> actual =
      PreparedProgram(program, kernels, *options.machine).execute(launch, copy, quiet);
  EXPECT_EQ(expected.ok(), actual.ok());
  if (expected.ok() && actual.ok()) {
    EXPECT_EQ(expected.value(), actual.value()) << "the executors count differently";
  } else if (!expected.ok() && !actual.ok()) {
    EXPECT_EQ(expected.error().to_string(), actual.error().to_string());
  }
  EXPECT_TRUE(memory.same_bytes(copy)) << "the executors leave different bytes";
  return expected;
}

}  // namespace spyre::exec
