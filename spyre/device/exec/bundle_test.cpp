// Whole bundles: loops, pools, dynamic extents, shared files, and the published traffic of a softmax.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "spyre/device/exec/op_case.h"

namespace spyre::testing_artifacts {

using namespace exec;  // NOLINT: tests of that layer

namespace {

DeviceProgram read_or_fail(const ProgramFiles& files) {
  auto program = read_program(files);
  EXPECT_TRUE(program.ok()) << program.error().to_string();
  return program.ok() ? std::move(program).value() : DeviceProgram();
}

OpSpec unary(const char* function, int64_t rows) {
  return {.function = function,
          .dims = {{"mb", rows}, {"out", 64}},
          .tensors = {{.order = {"mb", "out"}, .base = 0}, {.order = {"mb", "out"}, .base = 1 << 20}},
          .symbolic = true};
}

TEST(Bundle, LoopsAdvanceAddressesAndShareOneFile) {
  // Two nested loops negate a 3 x 2 grid of one-row tiles, then the same file copies sign once more into the
  // pool.
  const std::string bundle = R"(
#map_0 = affine_map<(d0, d1)[s0] -> (s0 + 256*d0 + 128*d1)>
module {
  func.func @sdsc_bundle(%arg_0_base_addr: !sdscbundle.input_arg<index>, %arg_1_base_addr: !sdscbundle.input_arg<index>) {
    %pool = sdscbundle.device_mem_allocate 256 bytes : index
    %a = sdscbundle.input_arg_extract value from %arg_0_base_addr : !sdscbundle.input_arg<index> -> index
    %b = sdscbundle.input_arg_extract value from %arg_1_base_addr : !sdscbundle.input_arg<index> -> index
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    %o = arith.constant 128 : index
    %p = arith.addi %pool, %o : index
    scf.for %i = %c0 to %c3 step %c1 {
      scf.for %j = %c0 to %c2 step %c1 {
        %x = affine.apply #map_0(%i, %j)[%a]
        %y = affine.apply #map_0(%i, %j)[%b]
        sdscbundle.sdsc_execute (%x, %y) {sdsc_filename="sdsc_0.json", "symbol_ids"=[-1, -2]}
      }
    }
    sdscbundle.sdsc_execute (%b, %p) {sdsc_filename="sdsc_0.json", "symbol_ids"=[-1, -2]}
    return
  }
})";
  const DeviceProgram program =
      read_or_fail({{"bundle.mlir", bundle}, {"sdsc_0.json", write_sdsc(unary("neg", 1)).dump()}});
  TestMemory memory(4096);
  for (int i = 0; i < 6 * 64; ++i) {
    memory.put(0, i, kFp16, static_cast<float>(i));
  }
  std::vector<int64_t> instructions;
  RunOptions options;
  options.observe = [&](const BoundOp& bound, const OpCounts&) { instructions.push_back(bound.instruction); };
  const auto counts = run_both(program, {.parameters = {0, 1024}, .pool_base = 2048}, memory, options);
  ASSERT_TRUE(counts.ok()) << counts.error().to_string();
  for (int i = 0; i < 6 * 64; ++i) {
    EXPECT_EQ(memory.get(1024, i, kFp16), -static_cast<float>(i));
  }
  EXPECT_EQ(memory.get(2048 + 128, 63, kFp16), 63.0f);
  EXPECT_THAT(instructions, ::testing::ElementsAre(0, 1, 2, 3, 4, 5, 6));
  EXPECT_EQ(counts.value().ops[0].executes, 7);
  EXPECT_EQ(counts.value().total().traffic, (Traffic{.hbm_read = 7 * 128, .hbm_written = 7 * 128}));
}

TEST(Bundle, DynamicExtentsShortenTheWork) {
  // Rows are declared as at most 8 over two cores; the launch says 5: slices of 3 and 2.
  OpSpec op = unary("neg", 8);
  op.dims[0].splits = 2;
  op.extent_symbols = {{"mb", -1}};
  const std::string bundle =
      R"(func.func @b(%arg_0_base_addr: !sdscbundle.input_arg<index>, %arg_1_base_addr: !sdscbundle.input_arg<index>,
      %sym_0_0_base: !sdscbundle.input_arg<index, granularity=1, max_value=8>) {
    %a = sdscbundle.input_arg_extract value from %arg_0_base_addr : !sdscbundle.input_arg<index> -> index
    %b = sdscbundle.input_arg_extract value from %arg_1_base_addr : !sdscbundle.input_arg<index> -> index
    %n = sdscbundle.input_arg_extract value from %sym_0_0_base : !sdscbundle.input_arg<index, granularity=1, max_value=8> -> index
    %o = arith.constant 384 : index
    %a1 = arith.addi %a, %o : index
    %b1 = arith.addi %b, %o : index
    sdscbundle.sdsc_execute (%n, %a, %a1, %b, %b1) {sdsc_filename="sdsc_0.json", "symbol_ids"=[-1, -2, -3, -4, -5]}
    return })";
  const DeviceProgram program =
      read_or_fail({{"bundle.mlir", bundle}, {"sdsc_0.json", write_sdsc(op).dump()}});
  TestMemory memory(2048);
  for (int i = 0; i < 8 * 64; ++i) {
    memory.put(0, i, kFp16, 1.0f);
    memory.put(1024, i, kFp16, 7.0f);
  }
  const auto counts = run_both(program, {.parameters = {0, 1024, 5}}, memory);
  ASSERT_TRUE(counts.ok()) << counts.error().to_string();
  for (int i = 0; i < 8 * 64; ++i) {
    EXPECT_EQ(memory.get(1024, i, kFp16), i < 5 * 64 ? -1.0f : 7.0f) << i;
  }
  EXPECT_EQ(counts.value().ops[0].cores[0].vector_elements, 3 * 64);
  EXPECT_EQ(counts.value().ops[0].cores[1].vector_elements, 2 * 64);
  const auto too_long = run_both(program, {.parameters = {0, 1024, 9}}, memory);
  ASSERT_FALSE(too_long.ok());
  EXPECT_EQ(too_long.error().message,
            "sdsc_0.json (neg), instruction 0: extent of 'mb': found 9, allowed: 1 to 8");
}

TEST(Bundle, MisalignedLaunchAddressesFault) {
  const std::string bundle = R"(func.func @b(%arg_0_base_addr: !sdscbundle.input_arg<index>) {
    %a = sdscbundle.input_arg_extract value from %arg_0_base_addr : !sdscbundle.input_arg<index> -> index
    sdscbundle.sdsc_execute (%a, %a) {sdsc_filename="sdsc_0.json", "symbol_ids"=[-1, -2]} return })";
  const DeviceProgram program =
      read_or_fail({{"bundle.mlir", bundle}, {"sdsc_0.json", write_sdsc(unary("neg", 1)).dump()}});
  TestMemory memory(1024);
  const auto counts = run_both(program, {.parameters = {130}}, memory);
  ASSERT_FALSE(counts.ok());
  EXPECT_EQ(counts.error().kind, ErrorKind::kDeviceFault);
  EXPECT_EQ(counts.error().message,
            "core 0, address 0x82, sdsc_0.json (neg), instruction 0: start of Tensor0 is no multiple of 128");
  const auto missing = run_both(program, {}, memory);
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().message, "launch: found 0 parameters, allowed: 1, as the bundle has");
}

/// max, sub, exp, sum, realdiv along dim 0 of an M x N tensor, all in HBM.
std::vector<OpSpec> softmax_ops(int64_t m, int64_t n, int64_t splits) {
  const int64_t matrix = m * n * 2, vector = n * 2;
  const int64_t x = 0, top = matrix, d = top + vector, e = d + matrix, total = e + matrix, y = total + vector;
  const std::vector<Dim> dims = {{"mb", n, splits}, {"out", m}};
  const auto full = [](int64_t base) {
    return TensorSpec{.order = {"out", "mb"}, .stick = {"mb"}, .base = base};
  };
  const auto row = [](int64_t base) {
    return TensorSpec{.order = {"mb", "out"}, .stick = {"mb"}, .scale = {{"out", -1}}, .base = base};
  };
  return {
      {.function = "maxnonstick", .dims = dims, .tensors = {full(x), row(top)}, .accumulator_listed = true},
      {.function = "sub", .dims = dims, .tensors = {full(x), row(top), full(d)}},
      {.function = "exp", .dims = dims, .tensors = {full(d), full(e)}},
      {.function = "sumnonstick", .dims = dims, .tensors = {full(e), row(total)}, .accumulator_listed = true},
      {.function = "realdiv", .dims = dims, .tensors = {full(e), row(total), full(y)}}};
}

TEST(Softmax, MovesEightMatricesAndFourVectorsAsPublished) {
  const int64_t m = 8, n = 256;
  for (const int64_t splits : {1, 4}) {
    ProgramFiles files;
    std::string bundle = "func.func @b() {\n";
    int number = 0;
    for (const OpSpec& op : softmax_ops(m, n, splits)) {
      const std::string name = fmt::format("sdsc_{}.json", number++);
      files[name] = write_sdsc(op).dump();
      bundle += fmt::format("sdscbundle.sdsc_execute () {{sdsc_filename=\"{}\", \"symbol_ids\"=[]}}\n", name);
    }
    files["bundle.mlir"] = bundle + "return }";
    const DeviceProgram program = read_or_fail(files);
    TestMemory memory(4 * m * n * 2 + 2 * n * 2);
    for (int64_t i = 0; i < m * n; ++i) {
      memory.put(0, i, kFp16, static_cast<float>(i % 17) / 4);
    }
    const auto counts = run_both(program, {}, memory);
    ASSERT_TRUE(counts.ok()) << counts.error().to_string();
    const Traffic traffic = counts.value().total().traffic;
    EXPECT_EQ(traffic.hbm_read + traffic.hbm_written, 2 * (8 * m * n + 4 * n)) << splits << " cores";
    // What was counted is what was touched: every stick of every tensor, once per op that names it.
    int64_t touched = 0;
    for (const auto& [stick, times] : memory.writes) {
      touched += times * 128;
    }
    EXPECT_EQ(traffic.hbm_written, touched);
    // And it is a softmax: columns sum to one.
    const int64_t y = (3 * m * n + 2 * n) * 2;
    for (int64_t column = 0; column < n; column += 37) {
      double sum = 0;
      for (int64_t r = 0; r < m; ++r) {
        sum += memory.get(y, (column / 64 * m + r) * 64 + column % 64, kFp16);
      }
      EXPECT_NEAR(sum, 1.0, 0.01);
    }
  }
}

TEST(Counters, DistinctSticksReadAreTheSticksCounted) {
  // Layouts, broadcasts and gaps of all kinds on one core: the closed form agrees with what memory saw.
  const std::vector<TensorSpec> shapes = {
      {.order = {"mb", "x", "out"}},
      {.order = {"out", "mb", "x"}},
      {.order = {"x", "out", "mb"}, .scale = {{"mb", -1}}},
      {.order = {"mb", "x", "out"}, .scale = {{"x", -1}, {"out", -2}}},
      {.order = {"mb", "x", "out"}, .gap = {{"mb", 3}, {"out", 64}}},
  };
  for (const TensorSpec& shape : shapes) {
    OpSpec op{.function = "add", .dims = {{"mb", 3}, {"x", 2}, {"out", 128}}};
    op.tensors = {shape, {.order = {"mb", "x", "out"}}, {.order = {"mb", "x", "out"}}};
    OpCase c(op);
    const OpCounts counts = c.run();
    EXPECT_EQ(counts.total().traffic.hbm_read, static_cast<int64_t>(c.memory().reads.size()) * 128);
    EXPECT_EQ(counts.total().traffic.hbm_written, static_cast<int64_t>(c.memory().writes.size()) * 128);
  }
}

}  // namespace
}  // namespace spyre::testing_artifacts
