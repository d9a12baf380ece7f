// The one artifact that is published in full: abs on a (4, 64) fp16 tensor over two cores.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "spyre/device/exec/run_both.h"
#include "spyre/device/exec/test_memory.h"
#include "spyre/program/read_program.h"
#include "spyre/program/test_artifact.h"

namespace spyre::exec {
namespace {

using testing_artifacts::kFp16;

DeviceProgram published_abs() {
  auto program = read_program_at(SPYRE_CORPUS "/abs_seed");
  EXPECT_TRUE(program.ok()) << program.error().to_string();
  return std::move(program).value();
}

TEST(PublishedAbs, LoadsWithItsPrintedAddresses) {
  const DeviceProgram program = published_abs();
  ASSERT_EQ(program.ops.size(), 1u);
  const ProgramOp& op = program.ops[0];
  EXPECT_EQ(op.name, "abs");
  EXPECT_EQ(op.dims[0], (ProgramDim{.label = "c0", .extent = 4, .splits = 2}));
  EXPECT_EQ(op.dims[1], (ProgramDim{.label = "c1", .extent = 64, .splits = 1}));
  EXPECT_THAT(op.tensors[0].start, testing::ElementsAre(CoreStart{false, 0}, CoreStart{false, 256}));
  EXPECT_THAT(op.tensors[1].start, testing::ElementsAre(CoreStart{false, 512}, CoreStart{false, 768}));
}

TEST(PublishedAbs, ComputesAbsOnBothCores) {
  const DeviceProgram program = published_abs();
  TestMemory memory(1024);
  for (int i = 0; i < 256; ++i) {
    memory.put(0, i, kFp16, static_cast<float>(i % 2 == 0 ? i : -i));
  }
  const auto counts = run_both(program, {}, memory);
  ASSERT_TRUE(counts.ok()) << counts.error().to_string();
  for (int i = 0; i < 256; ++i) {
    EXPECT_EQ(memory.get(512, i, kFp16), static_cast<float>(i)) << i;
  }
  // Each core reads two sticks and writes two.
  for (const CoreCounts& core : counts.value().ops[0].cores) {
    EXPECT_EQ(core.traffic, (Traffic{.hbm_read = 256, .hbm_written = 256}));
    EXPECT_EQ(core.vector_elements, 128);
    EXPECT_EQ(core.ring_bytes, 0);
  }
}

TEST(PublishedAbs, FaultsNamingCoreAddressAndInstructionWhenMemoryEnds) {
  const DeviceProgram program = published_abs();
  TestMemory memory(384);  // the second half of core 1's input is missing
  const auto counts = run_both(program, {}, memory);
  ASSERT_FALSE(counts.ok());
  EXPECT_EQ(counts.error().kind, ErrorKind::kDeviceFault);
  EXPECT_THAT(counts.error().message,
              testing::StartsWith("core 1, address 0x180, sdsc_0.json (abs), instruction 0: "));
}

}  // namespace
}  // namespace spyre::exec
