// The fast executor against the interpreter: same bytes everywhere, same counts, same refusals, for any
// number of threads and every instruction set of this processor.
#include "spyre/device/exec/executor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "spyre/base/thread_pool.h"
#include "spyre/device/exec/random_artifact.h"
#include "spyre/device/exec/run_both.h"
#include "spyre/program/read_program.h"

namespace spyre::testing_artifacts {
namespace {

using ::testing::Gt;
using ::testing::HasSubstr;

/// Memory for an op with everything filled in the format of its first input.
TestMemory filled_memory(ArtifactMaker& maker, const OpSpec& op, size_t hbm_bytes, size_t lx_bytes) {
  TestMemory memory(hbm_bytes, 32, lx_bytes);
  const DataFormat format = op.tensors.front().format;
  maker.fill(memory.hbm(), format);
  const bool in_lx =
      std::any_of(op.tensors.begin(), op.tensors.end(), [](const TensorSpec& t) { return t.lx; });
  for (int core = 0; core < op.cores() && in_lx; ++core) {
    maker.fill(memory.lx(core), format);
  }
  return memory;
}

DeviceProgram read(const OpSpec& op) {
  Result<DeviceProgram> program = read_program({{"sdsc_0.json", write_sdsc(op).dump()}});
  EXPECT_TRUE(program.ok()) << program.error().to_string();
  return program.ok() ? std::move(program).value() : DeviceProgram();
}

int artifacts_to_try() {
  const char* asked = std::getenv("SPYRE_TEST_ARTIFACTS");
  return asked == nullptr ? 1000 : std::atoi(asked);
}

TEST(FastExecutor, AgreesWithTheInterpreterOnRandomArtifacts) {
  PathCounts paths;
  const std::span<const VectorKernels> targets = vector_kernels();
  const int count = artifacts_to_try();
  for (int seed = 0; seed < count && !::testing::Test::HasFailure(); ++seed) {
    ArtifactMaker maker(seed);
    const RandomArtifact made = maker.make();
    const VectorKernels& target = targets[seed % targets.size()];
    SCOPED_TRACE(fmt::format("seed {}: {} on {}", seed, made.op.function, target.name));
    TestMemory memory = filled_memory(maker, made.op, made.hbm_bytes, made.lx_bytes);
    ASSERT_TRUE(run_both(read(made.op), {}, memory, {}, &paths, target).ok());
  }
  EXPECT_THAT(paths.fast, Gt(20 * paths.interpreted)) << paths.interpreted << " went to the interpreter";
}

/// Cores that share columns of a product have what it multiplies in scratchpads of their own: some hold the same.
TEST(FastExecutor, CopiesOfAnOperandMayBeAlike) {
  int tried = 0;
  for (int seed = 0; tried < 20; ++seed) {
    ASSERT_LT(seed, 20000) << "random artifacts have no such products any more";
    ArtifactMaker maker(seed);
    const RandomArtifact made = maker.make();
    const OpSpec& op = made.op;
    if (op.function != "batchmatmul" || !op.tensors[0].lx || op.cores() < 2) {
      continue;
    }
    SCOPED_TRACE(fmt::format("seed {}", seed));
    TestMemory memory = filled_memory(maker, op, made.hbm_bytes, made.lx_bytes);
    for (int core = 1; core < op.cores(); ++core) {
      if (core % 3 != 0) {
        std::ranges::copy(memory.lx(0), memory.lx(core).begin());
      }
    }
    PathCounts paths;
    ASSERT_TRUE(run_both(read(op), {}, memory, {}, &paths).ok());
    tried += static_cast<int>(paths.fast);
  }
}

/// Ops large enough to be shared out: a product with split K, a reduction each way, a transposed matrix, a sum.
std::vector<OpSpec> large_ops() {
  const int64_t k = 1 << 20;
  return {
      {.function = "batchmatmul",
       .dims = {{"mb", 100, 2}, {"out", 256, 4}, {"in", 128, 2}},
       .tensors = {{.order = {"mb", "in"}, .stick = {"in"}},
                   {.order = {"in", "out"}, .base = k},
                   {.order = {"mb", "out"}, .base = 2 * k}}},
      {.function = "sum",
       .dims = {{"mb", 600, 2}, {"out", 256, 2}},
       .tensors = {{.order = {"mb", "out"}}, {.order = {"mb", "out"}, .scale = {{"out", -2}}, .base = k}}},
      {.function = "sumnonstick",
       .dims = {{"mb", 256, 2}, {"out", 600}},
       .tensors = {{.order = {"mb", "out"}, .stick = {"mb"}},
                   {.order = {"mb", "out"}, .stick = {"mb"}, .scale = {{"out", -1}}, .base = k}}},
      {.function = "ReStickifyOpHBM",
       .dims = {{"mb", 384, 2}, {"out", 256}},
       .tensors = {{.order = {"mb", "out"}}, {.order = {"out", "mb"}, .stick = {"mb"}, .base = k}}},
      {.function = "add",
       .dims = {{"mb", 600, 4}, {"out", 256}},
       .tensors = {{.order = {"mb", "out"}},
                   {.order = {"mb", "out"}, .scale = {{"out", -2}}, .base = k},
                   {.order = {"mb", "out"}, .base = 2 * k}}}};
}

TEST(FastExecutor, GivesTheSameBytesForAnyNumberOfThreads) {
  const int before = parallel_threads();
  for (const OpSpec& op : large_ops()) {
    SCOPED_TRACE(op.function);
    const DeviceProgram program = read(op);
    ArtifactMaker maker(1);
    const TestMemory filled = filled_memory(maker, op, 3u << 20, 128);
    TestMemory expected = filled;
    ASSERT_TRUE(interpret(program, {}, expected).ok());
    for (const int threads : {1, 2, 3, 8}) {
      set_parallel_threads(threads);
      TestMemory memory = filled;
      PathCounts paths;
      ASSERT_TRUE(execute(program, {}, memory, {.paths = &paths}).ok());
      EXPECT_EQ(paths.fast, 1);
      EXPECT_TRUE(memory.same_bytes(expected)) << threads << " threads";
    }
  }
  set_parallel_threads(before);
}

OpSpec small_add() {
  return {.function = "add",
          .dims = {{"mb", 4, 2}, {"out", 64}},
          .tensors = {{.order = {"mb", "out"}},
                      {.order = {"mb", "out"}, .base = 512},
                      {.order = {"mb", "out"}, .base = 1024}}};
}

TEST(FastExecutor, LeavesMemoryThatOnlyCopiesToTheInterpreter) {
  class Copying final : public CardMemory {
   public:
    explicit Copying(TestMemory& memory) : memory_(memory) {}
    Status read_hbm(uint64_t at, std::span<std::byte> to) override { return memory_.read_hbm(at, to); }
    Status write_hbm(uint64_t at, std::span<const std::byte> from) override {
      return memory_.write_hbm(at, from);
    }
    Status read_lx(int core, uint64_t at, std::span<std::byte> to) override {
      return memory_.read_lx(core, at, to);
    }
    Status write_lx(int core, uint64_t at, std::span<const std::byte> from) override {
      return memory_.write_lx(core, at, from);
    }

   private:
    TestMemory& memory_;
  };
  const OpSpec op = small_add();
  ArtifactMaker maker(2);
  TestMemory memory = filled_memory(maker, op, 1536, 128), expected = memory;
  Copying copying(memory);
  PathCounts paths;
  ASSERT_TRUE(execute(read(op), {}, copying, {.paths = &paths}).ok());
  ASSERT_TRUE(interpret(read(op), {}, expected).ok());
  EXPECT_EQ(paths.interpreted, 1);
  EXPECT_EQ(memory.hbm(), expected.hbm());
}

TEST(FastExecutor, CountsWhatItLeavesToTheInterpreterAndMayRefuseIt) {
  // Sticks of two rows: no fast code knows them.
  const OpSpec op{.function = "qfp8wt",
                  .dims = {{"mb", 4}, {"out", 128, 2}},
                  .tensors = {{.order = {"mb", "out"}},
                              {.order = {"mb", "out"},
                               .stick = {"mb", "out"},
                               .stick_sizes = {2, 64},
                               .format = DataFormat::SEN143_FP8,
                               .base = 1024}}};
  ArtifactMaker maker(4);
  TestMemory memory = filled_memory(maker, op, 2048, 128);
  PathCounts paths;
  ASSERT_TRUE(execute(read(op), {}, memory, {.paths = &paths}).ok());
  EXPECT_EQ(paths.interpreted, 1);
  EXPECT_EQ(paths.interpreted_ops, (std::map<std::string, int64_t>{{"qfp8wt", 1}}));
  const Result<RunCounts> refused = execute(read(op), {}, memory, {.may_interpret = false});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().kind, ErrorKind::kUnsupported);
  EXPECT_THAT(refused.error().message, HasSubstr("no code for this execute of qfp8wt"));
}

TEST(FastExecutor, WritesNothingWhenAnInputReachesPastMemory) {
  OpSpec op = small_add();
  op.tensors[1].base = 1024;  // its last stick, 0x580, is missing
  op.tensors[2].base = 512;
  ArtifactMaker maker(3);
  TestMemory memory = filled_memory(maker, op, 0x580, 128);
  const std::vector<std::byte> before = memory.hbm();
  const Result<RunCounts> counts = execute(read(op), {}, memory);
  ASSERT_FALSE(counts.ok());
  EXPECT_EQ(counts.error().kind, ErrorKind::kDeviceFault);
  EXPECT_THAT(counts.error().message, HasSubstr("0x580"));
  EXPECT_EQ(memory.hbm(), before);
}

TEST(FastExecutor, RunsAPreparedProgramAgain) {
  // Doubling in place, three times.
  OpSpec op = small_add();
  for (TensorSpec& t : op.tensors) t.base = 0;
  const DeviceProgram program = read(op);
  const PreparedProgram prepared = prepare(program);
  TestMemory memory(512);
  for (int i = 0; i < 256; ++i) memory.put(0, i, DataFormat::SEN169_FP16, 0.5f);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(prepared.execute({}, memory).ok());
  EXPECT_EQ(memory.get(0, 200, DataFormat::SEN169_FP16), 4.0f);
}

}  // namespace
}  // namespace spyre::testing_artifacts
