// Launches on a machine of unit rates: a byte, an element or a multiply-accumulate takes 1 ns, the memory
// moves 1 byte per ns for everybody together. Every expectation is a sum that a reader can redo; the timeline
// stands beside it.
#include "spyre/device/timing/simulate.h"

#include <gmock/gmock.h>

#include <map>
#include <set>

#include "spyre/device/exec/count_run.h"
#include "spyre/device/exec/random_artifact.h"
#include "spyre/device/timing/test_program.h"

namespace spyre::timing {
namespace {

const Rates& kToy = toy_rates();
constexpr int64_t kMiB = 1 << 20;

TEST(Simulate, LoadAndStoreShareTheMemory) {
  // Two sticks in, two out, 256 bytes each way; 128 elements of arithmetic.
  //
  //     load   |<------- 256 bytes -------->|
  //     store  |<------- 256 bytes -------->|
  //     vector |<- 128 ->|
  //            0                           512
  const Timeline time = time_of({unary("neg", 2, 0, kMiB)}, kToy);
  EXPECT_EQ(time.kernel.ns, 512);
  EXPECT_EQ(time.waited().ns, 10 + 512);
  EXPECT_EQ(time.memory_busy.ns, 512);
  EXPECT_EQ(time.read, Bytes(256));
  EXPECT_EQ(time.written, Bytes(256));
  ASSERT_EQ(time.executes.size(), 1u);
  EXPECT_EQ(time.executes[0].bound, Bound::kMemory);
  EXPECT_EQ(time.executes[0].vector.ns, 128);
}

TEST(Simulate, TurningTheBusAroundCostsEachByteOfTheSmallerDirection) {
  // 512 bytes read, 256 written: 512 + 256 * (1 + 3).
  OpSpec add = unary("add", 2, 0, 2 * kMiB);
  add.tensors.insert(add.tensors.begin() + 1, TensorSpec{.order = {"mb", "out"}, .base = kMiB});
  Rates rates = kToy;
  rates.turnaround = 3;
  EXPECT_DOUBLE_EQ(time_of({add}, rates).kernel.ns, 512 + 256 * 4);
}

TEST(Simulate, LongArithmeticHidesTheMemory) {
  // 64 x 64 x 64 multiply-accumulates, 8192 bytes for each of three tensors.
  //
  //     load   |<- 16384 ->|
  //     store  |<-- 8192 ->|
  //     matrix |<------------ 262144 ------------>|
  const Timeline time = time_of({matmul({"", 64}, {"", 64}, {"", 64}, 0, kMiB, 2 * kMiB)}, kToy);
  EXPECT_EQ(time.kernel.ns, 64 * 64 * 64);
  EXPECT_EQ(time.executes[0].bound, Bound::kMatrix);
  EXPECT_EQ(time.memory_busy.ns, 3 * 8192);
}

TEST(Simulate, TheNextExecuteLoadsWhileThisOneComputes) {
  //     execute 0  load+store |<- 24576 ->|
  //                matrix     |<------------ 262144 ------------>|
  //     execute 1  load                   |<- 8192 ->|
  //                vector                                        |<- 4096 ->|
  //                store                                         |<----- 8192 ---->|
  const Timeline time = time_of(
      {matmul({"", 64}, {"", 64}, {"", 64}, 0, kMiB, 2 * kMiB), unary("neg", 64, 3 * kMiB, 4 * kMiB)}, kToy);
  EXPECT_EQ(time.kernel.ns, 262144 + 8192);
  EXPECT_EQ(time.executes[0].end.ns, 262144);
  EXPECT_EQ(time.executes[1].begin.ns, 262144);
  EXPECT_EQ(time.executes[1].end, time.kernel);
}

TEST(Simulate, AnExecuteThatReadsTheResultWaitsForItsLastByte) {
  //     execute 0  |<- 512 ->|
  //     execute 1            |<- 512 ->|
  EXPECT_EQ(time_of({unary("neg", 2, 0, kMiB), unary("neg", 2, kMiB, 2 * kMiB)}, kToy).kernel.ns, 1024);
}

TEST(Simulate, WhatStaysInLxPassesItsPort) {
  // 2 sticks from memory; in LX between; 2 sticks back. An LX operand passes 1 byte per ns, its 128 elements
  // take 128 ns.
  //
  //     execute 0  load 256, LX 256      |<- 256 ->|
  //     execute 1  LX 256, store 256               |<- 256 ->|
  const Timeline time =
      time_of({in_lx(unary("neg", 2, 0, 0), {1}), in_lx(unary("neg", 2, 0, kMiB), {0})}, kToy);
  EXPECT_EQ(time.kernel.ns, 512);
  EXPECT_EQ(time.executes[0].lx.ns, 256);
  EXPECT_EQ(time.read + time.written, Bytes(512));
}

TEST(Simulate, ASliceForSeveralCoresPassesOnce) {
  // Two cores, rows cut: each reads 32 of 64 rows (4096 bytes) and all of the weight (8192 bytes, once), and
  // writes 4096. A core's 131072 multiply-accumulates fill the arrays to (32 / 64) ^ 0.35.
  const Timeline time = time_of({matmul({"", 64, 2}, {"", 64}, {"", 64}, 0, kMiB, 2 * kMiB)}, kToy);
  EXPECT_EQ(time.memory_busy.ns, 3 * 8192);
  EXPECT_EQ(time.read, Bytes(2 * 8192));
  EXPECT_NEAR(time.kernel.ns, 131072 / std::pow(0.5, 0.35), 1e-6);
  int64_t loaded = 0;
  for (const Phase& phase : time.phases) loaded += phase.unit == Unit::kLoad ? phase.amount : 0;
  EXPECT_EQ(loaded, 8192 + 2 * 8192) << "each core takes in all that it reads";
}

TEST(Simulate, OneCoreTakesNoMoreThanItsShare) {
  // The memory could give 1 byte per ns; a core alone takes a quarter of that, for loads and stores together.
  Rates rates = kToy;
  rates.slice_alone = rates.reduction_share[0] = 0.25;
  EXPECT_EQ(time_of({unary("neg", 2, 0, kMiB)}, rates).kernel.ns, 512 * 4);
  // Two cores take twice as much.
  rates.reduction_share[1] = 0.5;
  EXPECT_EQ(time_of({unary("neg", 2, 0, kMiB, 2)}, rates).kernel.ns, 256 * 4);
}

TEST(Simulate, PartialSumsTravelTheRingInSteps) {
  // K cut over four neighbours. Each has 64 x 64 results in 4 bytes: three steps of 16384 ns after the
  // arithmetic, which runs on one corelet only: 64 * 64 * 64 * 2 / 1 for each core.
  //
  //     matrix |<-- 524288 -->|
  //     core 0                |-16384->|
  //     core 1                         |-16384->|
  //     core 2                                  |-16384->|
  const Timeline time = time_of({matmul({"", 64}, {"", 64}, {"", 256, 4}, 0, kMiB, 2 * kMiB)}, kToy);
  EXPECT_EQ(time.executes[0].ring.ns, 3 * 16384);
  EXPECT_EQ(time.kernel.ns, 2 * 64 * 64 * 64 + 3 * 16384 + 0);
  std::map<int, std::pair<double, double>> sent;
  for (const Phase& phase : time.phases) {
    if (phase.unit == Unit::kRing) sent[phase.core] = {phase.begin.ns, phase.end.ns};
  }
  const double computed = 2 * 64 * 64 * 64;
  EXPECT_THAT(sent,
              testing::ElementsAre(testing::Pair(0, testing::Pair(computed, computed + 16384)),
                                   testing::Pair(1, testing::Pair(computed + 16384, computed + 32768)),
                                   testing::Pair(2, testing::Pair(computed + 32768, computed + 49152))));
}

TEST(Simulate, TilesThatFillTheMachineStreamOneAfterTheOther) {
  // Eight tiles of 64 rows x 2048 columns on one core fill it, and their working set is at the knee. The host
  // sets up two operands: the loop is written down once.
  const int64_t tile = 64 * 2048 * 2;
  Rates rates = kToy;
  rates.launch_operand = 5;
  const Timeline time = time_of(loop_of(unary("neg", 64, 0, kMiB << 4, 1, 32), 8, {tile, tile}), rates);
  EXPECT_NEAR(time.kernel.ns, 8 * 2 * tile, 1e-6);
  EXPECT_EQ(time.launch.ns, 10 + 2 * 5);
}

TEST(Simulate, AnOperandThatIsThereTwiceIsLoadedOnce) {
  // x + x: 256 bytes in, 256 out.
  OpSpec add = unary("add", 2, 0, kMiB);
  add.tensors.insert(add.tensors.begin() + 1, add.tensors[0]);
  const Timeline time = time_of({add}, kToy);
  EXPECT_EQ(time.kernel.ns, 512);
  EXPECT_EQ(time.read, Bytes(256));
}

TEST(Simulate, CoresTheMachineLacksAreRefused) {
  const auto program = program_of({unary("neg", 4, 0, kMiB, 4)});
  const auto time = simulate(program, {}, toy_card(), kToy, Detail::kTotals);
  ASSERT_FALSE(time.ok());
  EXPECT_EQ(time.error().message,
            "sdsc_0.json (neg), instruction 0: found core 2, allowed: 0 to 1, as machine 'toy' has");
}

// ---- what must hold for every program -----------------------------------------------------------------------

class RandomPrograms : public testing::TestWithParam<uint64_t> {};

/// Bytes, multiply-accumulates and elements by unit, over all cores.
std::map<Unit, int64_t> amounts(const Timeline& time) {
  std::map<Unit, int64_t> sums;
  for (const Phase& phase : time.phases) sums[phase.unit] += phase.amount;
  return sums;
}

void expect_conservation(const program::DeviceProgram& program, const Rates& rates) {
  const Timeline time = time_of(program, rates);
  const auto counted = exec::count_run(program);
  ASSERT_TRUE(counted.ok()) << counted.error().to_string();
  const exec::CoreCounts total = counted.value().total();
  std::map<Unit, int64_t> sums = amounts(time);
  EXPECT_EQ(sums[Unit::kLoad], total.traffic.hbm_read);
  EXPECT_EQ(sums[Unit::kStore], total.traffic.hbm_written);
  EXPECT_EQ(sums[Unit::kRing], total.ring_bytes);
  EXPECT_EQ(sums[Unit::kMatrix], total.macs);
  EXPECT_EQ(sums[Unit::kVector], total.vector_elements);

  // No unit of a core does two things at once, and nothing lies outside the kernel.
  std::map<std::pair<int, Unit>, std::vector<const Phase*>> tracks;
  for (const Phase& phase : time.phases) tracks[{phase.core, phase.unit}].push_back(&phase);
  for (const auto& [track, phases] : tracks) {
    Nanos end;
    for (const Phase* phase : phases) {
      EXPECT_GE(phase->begin.ns, end.ns - 1e-6);
      EXPECT_GE(phase->end, phase->begin);
      end = phase->end;
    }
    EXPECT_LE(end.ns, time.kernel.ns + 1e-6);
  }

  // Busy and idle fill every core's time.
  for (const int core : time.cores) {
    Nanos at;
    for (const Phase& state : core_states(time, core)) {
      EXPECT_EQ(state.begin, at);
      at = state.end;
    }
    EXPECT_EQ(at, time.kernel);
  }

  // The memory's speed over time gives its bytes.
  double moved = 0;
  for (const MemorySpeed& speed : time.memory) {
    moved += (speed.end - speed.begin).ns * (speed.read + speed.written);
  }
  EXPECT_NEAR(moved, static_cast<double>((time.read + time.written).count()), 1);

  // The windows of executes tile the kernel.
  Nanos at;
  for (const ExecuteTime& execute : time.executes) {
    EXPECT_EQ(execute.begin, at);
    at = execute.end;
  }
  EXPECT_EQ(at, time.kernel);
  EXPECT_LE(time.memory_busy.ns, time.kernel.ns + 1e-6);
}

TEST_P(RandomPrograms, ConserveBytesWorkAndTime) {
  testing_artifacts::ArtifactMaker maker(GetParam());
  for (int i = 0; i < 50; ++i) {
    SCOPED_TRACE(i);
    const auto program = program_of({maker.make().op, maker.make().op, maker.make().op});
    expect_conservation(program, kToy);
    expect_conservation(program, fitted_rates());
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomPrograms, testing::Range<uint64_t>(0, 6));

TEST(Simulate, TheSameLaunchTakesTheSameTime) {
  testing_artifacts::ArtifactMaker maker(7);
  const auto program = program_of({maker.make().op, maker.make().op});
  const Timeline once = time_of(program, fitted_rates()), again = time_of(program, fitted_rates());
  EXPECT_EQ(once.kernel, again.kernel);
  EXPECT_EQ(once.phases.size(), again.phases.size());
  EXPECT_EQ(time_of(program, fitted_rates(), Detail::kTotals).kernel, once.kernel);
}

}  // namespace
}  // namespace spyre::timing
