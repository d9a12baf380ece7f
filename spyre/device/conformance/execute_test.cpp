// What every device promises about the programs it runs.

#include <gmock/gmock.h>

#include <cstring>

#include "spyre/device/conformance/conformance.h"
#include "spyre/device/lx.h"
#include "spyre/program/read_program.h"
#include "spyre/program/test_artifact.h"

namespace spyre {
namespace {

using testing::HasSubstr;

/// Y = -X, 2 x 64 each, at the given addresses.
LoadedProgramRef negation(int64_t x, int64_t y, bool through_lx = false) {
  testing_artifacts::OpSpec op = {.function = "neg",
                                  .dims = {{"mb", 2}, {"out", 64}},
                                  .tensors = {{.order = {"mb", "out"}, .base = x},
                                              {.order = {"mb", "out"}, .base = y, .lx = through_lx}}};
  auto program =
      program::read_program({{"sdsc_0.json", testing_artifacts::write_sdsc(op).dump()}}, toy_card());
  EXPECT_TRUE(program.ok()) << program.error().to_string();
  return std::make_shared<const LoadedProgram>(std::move(program).value(), toy_card());
}

struct Memory {
  std::vector<std::byte> x = std::vector<std::byte>(256, std::byte{0x3E});
  std::vector<std::byte> y = std::vector<std::byte>(256, std::byte{0});

  ExecuteRequest request(const LoadedProgramRef& program, ExecuteOptions options = {}) {
    return {.program = program.get(),
            .values = {},
            .memory = {{DeviceAddress(0), x}, {DeviceAddress(4096), y}},
            .options = options};
  }
};

TEST_P(DeviceConformance, AProgramComputesInTheMemoryMappedForIt) {
  const LoadedProgramRef program = negation(0, 4096);
  for (const Executor executor : {Executor::kFast, Executor::kInterpreter}) {
    Memory memory;
    const auto counts = device().execute(memory.request(program, {.executor = executor}));
    ASSERT_TRUE(counts.ok()) << counts.error().to_string();
    EXPECT_EQ(memory.y[0], std::byte{0x3E});
    EXPECT_EQ(memory.y[1], std::byte{0xBE});
    EXPECT_EQ(counts.value().total().traffic, (exec::Traffic{.hbm_read = 256, .hbm_written = 256}));
  }
}

TEST_P(DeviceConformance, CountsAreLeftOutOnRequest) {
  Memory memory;
  const auto counts = device().execute(memory.request(negation(0, 4096), {.count = false}));
  ASSERT_TRUE(counts.ok());
  EXPECT_EQ(counts.value(), exec::RunCounts());
}

TEST_P(DeviceConformance, AProgramOutsideItsMemoryFaultsAndTheCardLivesOn) {
  for (const Executor executor : {Executor::kFast, Executor::kInterpreter}) {
    Memory memory;
    const auto counts = device().execute(memory.request(negation(128, 4096), {.executor = executor}));
    ASSERT_FALSE(counts.ok()) << "the second row of X lies past its memory";
    EXPECT_EQ(counts.error().kind, ErrorKind::kDeviceFault);
    EXPECT_THAT(counts.error().message, HasSubstr("core 0, address 0x100, sdsc_0.json (neg), instruction 0"));
    EXPECT_TRUE(device().execute(memory.request(negation(0, 4096), {.executor = executor})).ok());
  }
}

TEST_P(DeviceConformance, ScratchpadsKeepWhatAProgramLeavesUntilTheyAreCleared) {
  Memory memory;
  ASSERT_TRUE(device().execute(memory.request(negation(0, 256, /*through_lx=*/true))).ok());
  EXPECT_EQ(device().lx(0).value()[257], std::byte{0xBE});
  device().clear_lx();
  uint16_t word = 0;
  std::memcpy(&word, device().lx(0).value().data() + 256, sizeof word);
  EXPECT_EQ(word, kLxPoison);
}

}  // namespace
}  // namespace spyre
