#pragma once

#include <gtest/gtest.h>

#include <set>

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

/// The op again and again, its tensors so many bytes further each time.
inline program::DeviceProgram loop_of(OpSpec op, int64_t trips, const std::vector<int64_t>& step) {
  op.symbolic = true;
  std::string maps, applied, passed, symbols;
  int symbol = 0;
  for (size_t t = 0; t < op.tensors.size(); ++t) {
    std::set<int64_t> seen;
    for (int64_t core = 0; core < op.cores(); ++core) {
      const int64_t start = testing_artifacts::start_of(op, op.tensors[t], core);
      if (!seen.insert(start).second) continue;
      maps += fmt::format("#map_{} = affine_map<(d0)[s0] -> (s0 + {}*d0 + {})>\n", symbol, step[t], start);
      applied += fmt::format("%x{} = affine.apply #map_{}(%i)[%a]\n", symbol, symbol);
      passed += fmt::format("{}%x{}", symbol > 0 ? ", " : "", symbol);
      ++symbol;
      symbols += fmt::format("{}-{}", symbol > 1 ? ", " : "", symbol);
    }
  }
  const std::string bundle = fmt::format(R"({}module {{
  func.func @sdsc_bundle(%arg_0_base_addr: !sdscbundle.input_arg<index>) {{
    %a = sdscbundle.input_arg_extract value from %arg_0_base_addr : !sdscbundle.input_arg<index> -> index
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %n = arith.constant {} : index
    scf.for %i = %c0 to %n step %c1 {{
      {}
      sdscbundle.sdsc_execute ({}) {{sdsc_filename="sdsc_0.json", "symbol_ids"=[{}]}}
    }}
    return
  }}
}})",
                                         maps, trips, applied, passed, symbols);
  auto program = program::read_program(
      {{"bundle.mlir", bundle}, {"sdsc_0.json", testing_artifacts::write_sdsc(op).dump()}});
  EXPECT_TRUE(program.ok()) << program.error().to_string();
  return program.ok() ? std::move(program).value() : program::DeviceProgram();
}

inline OpSpec in_lx(OpSpec op, std::initializer_list<int> tensors) {
  for (const int t : tensors) op.tensors[static_cast<size_t>(t)].lx = true;
  return op;
}

}  // namespace spyre::timing
