#pragma once

#include <gtest/gtest.h>

#include "spyre/device/timing/simulate.h"
#include "spyre/program/read_program.h"
#include "spyre/program/test_artifact.h"

/// Programs for timing tests: ops written as text, executed one after the other, at addresses as stated.
namespace spyre::timing {

using testing_artifacts::Dim;
using testing_artifacts::OpSpec;
using testing_artifacts::TensorSpec;

inline program::DeviceProgram program_of(const std::vector<OpSpec>& ops) {
  program::ProgramFiles files;
  std::string bundle = "func.func @b() {\n";
  for (size_t i = 0; i < ops.size(); ++i) {
    const std::string name = fmt::format("sdsc_{}.json", i);
    files[name] = testing_artifacts::write_sdsc(ops[i]).dump();
    bundle += fmt::format("sdscbundle.sdsc_execute () {{sdsc_filename=\"{}\", \"symbol_ids\"=[]}}\n", name);
  }
  files["bundle.mlir"] = bundle + "return }";
  auto program = program::read_program(files);
  EXPECT_TRUE(program.ok()) << program.error().to_string();
  return program.ok() ? std::move(program).value() : program::DeviceProgram();
}

inline Timeline time_of(const program::DeviceProgram& program, const Rates& rates,
                        Detail detail = Detail::kCores) {
  auto timeline = simulate(program, largest_extents(program), spyre_card(), rates, detail);
  EXPECT_TRUE(timeline.ok()) << timeline.error().to_string();
  return timeline.ok() ? std::move(timeline).value() : Timeline();
}

inline Timeline time_of(const std::vector<OpSpec>& ops, const Rates& rates, Detail detail = Detail::kCores) {
  return time_of(program_of(ops), rates, detail);
}

/// `function` from one [rows, 64 * sticks] tensor to another, rows cut over cores.
inline OpSpec unary(const std::string& function, int64_t rows, int64_t from, int64_t to, int64_t cores = 1,
                    int64_t sticks = 1) {
  return {.function = function,
          .dims = {{"mb", rows, cores}, {"out", 64 * sticks}},
          .tensors = {{.order = {"mb", "out"}, .base = from}, {.order = {"mb", "out"}, .base = to}}};
}

/// [m, k] times [k, n], each cut into so many pieces.
inline OpSpec matmul(Dim m, Dim n, Dim k, int64_t a, int64_t b, int64_t c) {
  m.label = "mb", n.label = "out", k.label = "in";
  return {.function = "batchmatmul",
          .dims = {m, n, k},
          .tensors = {{.order = {"mb", "in"}, .stick = {"in"}, .base = a},
                      {.order = {"in", "out"}, .stick = {"out"}, .base = b},
                      {.order = {"mb", "out"}, .stick = {"out"}, .base = c}},
          .k_fastest = true};
}

inline OpSpec in_lx(OpSpec op, std::initializer_list<int> tensors) {
  for (const int t : tensors) op.tensors[static_cast<size_t>(t)].lx = true;
  return op;
}

}  // namespace spyre::timing
