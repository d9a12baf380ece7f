// Each rule of the checker: a scene that breaks it and the nearest one that does not. One row is one stick of
// 128 bytes throughout.
#include "spyre/device/exec/checker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>

#include "spyre/device/exec/op_case.h"

namespace spyre::exec {

void PrintTo(const Finding& finding, std::ostream* out) {
  *out << to_string(finding);
}

}  // namespace spyre::exec

namespace spyre::testing_artifacts {
namespace {

using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::IsEmpty;

auto breaks(Rule rule) {
  return Field(&Finding::rule, rule);
}

/// Ops that are checked one after the other, as one launch.
class Scene {
 public:
  explicit Scene(const Machine& machine = spyre_card()) : checker_(machine) {
    checker_.begin_launch(DeviceProgram(), {});
  }

  Scene& host(int64_t address, int64_t bytes) {
    checker_.note_host_write(address, bytes, "x");
    return *this;
  }
  Scene& alloc(int64_t address, int64_t bytes) {
    checker_.note_alloc(address, bytes, "block");
    return *this;
  }
  /// `edit` may drive the card in ways that no artifact passes the reader with.
  Scene& op(const OpSpec& spec, const std::function<void(BoundOp&)>& edit = {}) {
    auto program = read_program({{"sdsc_0.json", write_sdsc(spec).dump()}});
    if (!program.ok()) {
      ADD_FAILURE() << program.error().to_string();
      return *this;
    }
    programs_.push_back(std::move(program).value());
    BoundOp bound = bind_op(programs_.back().ops[0], {}, instruction_).value();
    programs_.back().ops[0].file = "op " + std::to_string(instruction_++);
    if (edit) {
      edit(bound);
    }
    checker_.check_execute(bound);
    return *this;
  }
  std::vector<Finding> findings() { return checker_.end_launch(); }

 private:
  Checker checker_;
  std::deque<DeviceProgram> programs_;
  int64_t instruction_ = 0;
};

TensorSpec hbm(int64_t base) {
  return {.order = {"mb", "out"}, .base = base};
}
TensorSpec lx(int64_t base) {
  return {.order = {"mb", "out"}, .base = base, .lx = true};
}
/// Negates `rows` sticks, divided over `cores`.
OpSpec neg(const TensorSpec& in, const TensorSpec& out, int64_t rows = 4, int64_t cores = 1) {
  return {.function = "neg", .dims = {{"mb", rows, cores}, {"out", 64}}, .tensors = {in, out}};
}

constexpr int64_t kX = 0x1000, kY = 0x8000;

TEST(Checker, ReadingWhatTheHostWroteIsFine) {
  EXPECT_THAT(Scene().host(kX, 512).op(neg(hbm(kX), hbm(kY))).findings(), IsEmpty());
}

TEST(Checker, ReadingHbmThatNobodyWroteIsFoundToTheStick) {
  // The host wrote three of the four rows.
  const auto found = Scene().host(kX, 384).op(neg(hbm(kX), hbm(kY))).findings();
  ASSERT_THAT(found, ElementsAre(breaks(Rule::kUninitialised)));
  EXPECT_EQ(found[0].range, (AddressRange{Residence::kHbm, kX + 384, kX + 512}));
  EXPECT_EQ(found[0].party.op, "neg");
  EXPECT_EQ(found[0].party.core, 0);
}

/// One row into a tile of 64 at `base`, the rest of which is a declared gap; `row` is where it goes.
OpSpec one_row_of_a_tile(int64_t base, int64_t row = 0) {
  TensorSpec out = hbm(base + row * 128);
  out.gap = {{"mb", 63}};
  return neg(hbm(kX), out, 1);
}
/// Turns a whole tile.
OpSpec turn(int64_t from, int64_t to) {
  return {.function = "ReStickifyOpHBM",
          .dims = {{"mb", 64}, {"out", 64}},
          .tensors = {{.order = {"mb", "out"}, .stick = {"out"}, .base = from},
                      {.order = {"out", "mb"}, .stick = {"mb"}, .base = to}}};
}

TEST(Checker, ATurnMayReadTheGapThatTheWriterOfItsTileDeclared) {
  EXPECT_THAT(Scene().host(kX, 512).op(one_row_of_a_tile(kY)).op(turn(kY, 0x20000)).findings(), IsEmpty());
}

TEST(Checker, WhatLiesInTheGapOfATileIsNotWanted) {
  // Two earlier buffers where the tile is now, the second over part of the first.
  EXPECT_THAT(Scene()
                  .host(kX, 4096)
                  .op(neg(hbm(kX), hbm(kY), 8))
                  .op(neg(hbm(kY), hbm(0x40000), 8))
                  .op(neg(hbm(kX), hbm(kY + 256), 4))
                  .op(neg(hbm(kY + 256), hbm(0x48000), 4))
                  .op(one_row_of_a_tile(kY))
                  .op(turn(kY, 0x20000))
                  .findings(),
              IsEmpty());
}

TEST(Checker, ATileWithinAnOlderBufferHasItsOwnGap) {
  // A hundred rows that somebody has read, then a tile on 64 of them.
  EXPECT_THAT(Scene()
                  .host(kX, 0x4000)
                  .op(neg(hbm(kX), hbm(0x30000), 100))
                  .op(neg(hbm(0x30000), hbm(0x40000), 100))
                  .op(one_row_of_a_tile(0x30000 + 128))
                  .op(turn(0x30000 + 128, 0x20000))
                  .findings(),
              IsEmpty());
}

TEST(Checker, ATileThatWasReadFillsNoOther) {
  // Five rows of a tile, turned; then a tile that begins eight rows before it: its gap is none of the old one's.
  TensorSpec five = hbm(0x30000 + 8 * 128);
  five.gap = {{"mb", 59}};
  const auto two_tiles = [&](bool turned) {
    Scene scene;
    scene.host(kX, 0x4000).op(neg(hbm(kX), five, 5));
    if (turned) {
      scene.op(turn(0x30000 + 8 * 128, 0x40000));
    }
    return scene.op(one_row_of_a_tile(0x30000)).op(turn(0x30000, 0x20000)).findings();
  };
  EXPECT_THAT(two_tiles(true), IsEmpty());
  // Had nobody read them, they would be slices of one buffer, and the rows between missing.
  EXPECT_THAT(two_tiles(false), ElementsAre(breaks(Rule::kUninitialised)));
}

TEST(Checker, ATileWhereOneOfItsSizeWasReadIsANewOne) {
  // All 64 rows were turned, then one row is written: the other 63 are nobody's. Before, it is one row of the 64.
  const auto one_of_64 = [](int64_t read_before, int64_t written_before = 0) {
    Scene scene;
    scene.host(kX, 0x4000).op(neg(hbm(kX), hbm(0x30000), 64));
    if (read_before > 0) {
      scene.op(neg(hbm(0x30000), hbm(0x40000), read_before));
    }
    if (written_before > 0) {
      scene.op(neg(hbm(kX), hbm(0x30000 + 20 * 128), written_before));
    }
    return scene.op(one_row_of_a_tile(0x30000))
        .op(turn(0x30000, 0x20000))
        .op({.function = "sum",
             .dims = {{"mb", 64}, {"out", 64}},
             .tensors = {hbm(0x20000), {.order = {"mb", "out"}, .scale = {{"out", -2}}, .base = 0x50000}},
             .accumulator_listed = true})
        .findings();
  };
  EXPECT_THAT(one_of_64(0), IsEmpty());
  EXPECT_THAT(one_of_64(64), ElementsAre(breaks(Rule::kPadding)));
  // The row that was read is written again: an update, unless others used the memory in between.
  EXPECT_THAT(one_of_64(1), IsEmpty());
  EXPECT_THAT(one_of_64(1, 3), ElementsAre(breaks(Rule::kPadding)));
}

TEST(Checker, StepsWrittenOverABufferLeaveItsGapWhereItWas) {
  // 33 rows of a tile, then every second of them again; the sum along the turned rows masks the gap and no more.
  TensorSpec rows = hbm(kY), steps{.order = {"in", "mb", "out"}, .base = kY, .gap = {{"in", 1}, {"mb", 15}}};
  rows.gap = {{"mb", 31}};
  const OpSpec every_second{.function = "neg",
                            .dims = {{"in", 1}, {"mb", 17}, {"out", 64}},
                            .tensors = {{.order = {"in", "mb", "out"}, .base = kX}, steps}};
  const auto sum_behind = [&](int64_t mask) {
    return Scene()
        .host(kX, 0x4000)
        .op(neg(hbm(kX), rows, 33))
        .op(every_second)
        .op(turn(kY, 0x20000))
        .op({.function = "sum",
             .dims = {{"mb", 64}, {"out", 64}},
             .tensors = {hbm(0x20000), {.order = {"mb", "out"}, .scale = {{"out", -2}}, .base = 0x30000}},
             .mask = {{"out", {mask, 64 - mask}}},
             .accumulator_listed = true})
        .findings();
  };
  EXPECT_THAT(sum_behind(33), IsEmpty());
  EXPECT_THAT(sum_behind(34), ElementsAre(breaks(Rule::kPadding)));
}

TEST(Checker, ARowThatATurnWantsMustBeWritten) {
  // The first row is the second one's neighbour: the gap is a place for rows, and most of them are missing.
  EXPECT_THAT(Scene()
                  .host(kX, 512)
                  .op(one_row_of_a_tile(kY, 0))
                  .op(one_row_of_a_tile(kY, 1))
                  .op(turn(kY, 0x20000))
                  .findings(),
              ElementsAre(breaks(Rule::kUninitialised)));
  // No gap was declared: the tile has 64 rows, and somebody wrote four of them.
  EXPECT_THAT(Scene().host(kX, 512).op(neg(hbm(kX), hbm(kY), 4)).op(turn(kY, 0x20000)).findings(),
              ElementsAre(breaks(Rule::kLayout), breaks(Rule::kUninitialised)));
}

TEST(Checker, ACopyOutOfLxMayReadTheGapThatTheWriterDeclared) {
  // Four of six rows, then all six as two steps of three: one dim of the writer's, two of the reader's.
  TensorSpec four = lx(0);
  four.gap = {{"mb", 2}};
  const auto read_by = [&](const std::string& function) {
    return Scene()
        .host(kX, 512)
        .op(neg(hbm(kX), four, 4))
        .op({.function = function,
             .dims = {{"y", 2}, {"mb", 3}, {"out", 64}},
             .tensors = {{.order = {"y", "mb", "out"}, .base = 0, .lx = true},
                         {.order = {"y", "mb", "out"}, .base = kY}}})
        .findings();
  };
  EXPECT_THAT(read_by("identity"), IsEmpty());
  EXPECT_THAT(read_by("neg"), ElementsAre(breaks(Rule::kUninitialised)));
}

TEST(Checker, OfASliceTheLastSquareIsTurnedWhole) {
  // Of 157 rows two slices were written, one behind the other; 128 of them are turned, and summed where rows became lanes.
  const auto slice = [](int64_t first, int64_t rows) {
    TensorSpec out = hbm(kY + first * 128);
    out.gap = {{"mb", 157 - rows}};
    return neg(hbm(kX), out, rows);
  };
  const auto turned = [&](int64_t rows, int64_t behind, int64_t mask) {
    TensorSpec from{.order = {"mb", "out"}, .stick = {"out"}, .base = kY};
    if (behind > 0) {
      from.gap = {{"mb", behind}};
    }
    return Scene()
        .host(kX, 0x8000)
        .op(slice(0, 50))
        .op(slice(50, rows - 50))
        .op({.function = "ReStickifyOpHBM",
             .dims = {{"mb", 128}, {"out", 64}},
             .tensors = {from, {.order = {"out", "mb"}, .stick = {"mb"}, .base = 0x20000}}})
        .op({.function = "sum",
             .dims = {{"mb", 64}, {"out", 128}},
             .tensors = {hbm(0x20000), {.order = {"mb", "out"}, .scale = {{"out", -2}}, .base = 0x50000}},
             .mask = {{"out", {mask, 128 - mask}}},
             .accumulator_listed = true})
        .findings();
  };
  EXPECT_THAT(turned(126, 29, 126), IsEmpty());
  EXPECT_THAT(turned(126, 29, 127),
              ElementsAre(breaks(Rule::kPadding)));  // a lane that nobody wrote is summed
  EXPECT_THAT(turned(80, 29, 80), IsEmpty());
  // The second square has no row at all.
  EXPECT_THAT(turned(64, 29, 64), ElementsAre(breaks(Rule::kUninitialised)));
  // All 128 rows that there are: none is left out.
  EXPECT_THAT(turned(126, 0, 126), ElementsAre(breaks(Rule::kLayout), breaks(Rule::kUninitialised)));
}

TEST(Checker, ReadingLxThatNobodyWroteIsFound) {
  const auto found = Scene().op(neg(lx(0), hbm(kY))).findings();
  ASSERT_THAT(found, ElementsAre(breaks(Rule::kUninitialised)));
  EXPECT_EQ(found[0].range, (AddressRange{Residence::kLx, 0, 512}));
}

TEST(Checker, FreedMemoryIsNobodysAgain) {
  Checker checker;
  checker.note_alloc(kX, 512, "x");
  checker.note_host_write(kX, 512, "x");
  checker.note_free(kX);
  checker.note_alloc(kY, 512, "y");
  const auto program = read_program({{"sdsc_0.json", write_sdsc(neg(hbm(kX), hbm(kY))).dump()}}).value();
  checker.begin_launch(program, {});
  checker.check_execute(bind_op(program.ops[0], {}, 0).value());
  EXPECT_THAT(checker.end_launch(), ElementsAre(breaks(Rule::kOutOfBounds), breaks(Rule::kUninitialised)));
}

TEST(Checker, LxOutlivesALaunch) {
  Checker checker;
  checker.note_host_write(kX, 512, "x");
  const auto first = read_program({{"sdsc_0.json", write_sdsc(neg(hbm(kX), lx(0))).dump()}}).value();
  const auto second = read_program({{"sdsc_0.json", write_sdsc(neg(lx(0), hbm(kY))).dump()}}).value();
  for (const DeviceProgram* program : {&first, &second}) {
    checker.begin_launch(*program, {});
    checker.check_execute(bind_op(program->ops[0], {}, 0).value());
    EXPECT_THAT(checker.end_launch(), IsEmpty());
  }
}

TEST(Checker, ABufferWrittenOverAnotherIsFoundWhenTheFirstIsRead) {
  //   a  |0      512|
  //   b        |256      768|      written while a is still wanted
  const auto found = Scene()
                         .host(kX, 512)
                         .op(neg(hbm(kX), lx(0)))
                         .op(neg(lx(0), hbm(kY)))
                         .op(neg(hbm(kX), lx(256)))
                         .op(neg(lx(0), hbm(kY)))
                         .findings();
  ASSERT_THAT(found, ElementsAre(breaks(Rule::kClobbered)));
  EXPECT_EQ(found[0].party.instruction, 3);
  ASSERT_TRUE(found[0].other.has_value());
  EXPECT_EQ(found[0].other->instruction, 2);
  EXPECT_THAT(found[0].detail, ::testing::HasSubstr("instruction 0"));
}

TEST(Checker, BuffersBesideEachOtherAreFine) {
  EXPECT_THAT(Scene()
                  .host(kX, 512)
                  .op(neg(hbm(kX), lx(0)))
                  .op(neg(hbm(kX), lx(512)))
                  .op(neg(lx(0), hbm(kY)))
                  .op(neg(lx(512), hbm(kY)))
                  .findings(),
              IsEmpty());
}

TEST(Checker, AResultThatNobodyReadIsNotWrittenOver) {
  EXPECT_THAT(Scene().host(kX, 512).op(neg(hbm(kX), lx(0))).op(neg(hbm(kX), lx(0))).findings(),
              ElementsAre(breaks(Rule::kLostResult)));
  EXPECT_THAT(Scene()
                  .host(kX, 512)
                  .op(neg(hbm(kX), lx(0)))
                  .op(neg(lx(0), hbm(kY)))
                  .op(neg(hbm(kX), lx(0)))
                  .findings(),
              IsEmpty());
}

TEST(Checker, LeavingAnAllocationIsFound) {
  const auto found = Scene().alloc(kX, 384).alloc(kY, 512).host(kX, 512).op(neg(hbm(kX), hbm(kY))).findings();
  ASSERT_THAT(found, ElementsAre(breaks(Rule::kOutOfBounds)));
  EXPECT_THAT(found[0].detail, ::testing::HasSubstr("block, which is [0x1000, 0x1180)"));
  EXPECT_THAT(Scene().alloc(kX, 512).alloc(kY, 512).host(kX, 512).op(neg(hbm(kX), hbm(kY))).findings(),
              IsEmpty());
}

TEST(Checker, LeavingTheScratchpadIsFound) {
  // The toy card has 16 sticks of LX: 13 + 4 are too many, 12 + 4 are not.
  EXPECT_THAT(Scene(toy_card()).host(kX, 512).op(neg(hbm(kX), lx(13 * 128))).findings(),
              ElementsAre(breaks(Rule::kOutOfBounds)));
  EXPECT_THAT(Scene(toy_card()).host(kX, 512).op(neg(hbm(kX), lx(12 * 128))).findings(), IsEmpty());
}

TEST(Checker, LeavingTheAddressSpaceIsFound) {
  EXPECT_THAT(Scene(toy_card()).host(kX, 512).op(neg(hbm(kX), hbm(8 << 20))).findings(),
              ElementsAre(breaks(Rule::kOutOfBounds)));
}

TEST(Checker, TwoCoresDoNotWriteOneStick) {
  const auto found = Scene()
                         .host(kX, 512)
                         .op(neg(hbm(kX), hbm(kY), 4, 2), [](BoundOp& b) { b.start[1][1] = kY + 128; })
                         .findings();
  ASSERT_THAT(found, ElementsAre(breaks(Rule::kCoreStart), breaks(Rule::kSharedStick)));
  EXPECT_EQ(found[1].range, (AddressRange{Residence::kHbm, kY + 128, kY + 256}));
  EXPECT_EQ(found[1].party.core, 1);
  EXPECT_EQ(found[1].other->core, 0);
}

TEST(Checker, CoresThatShareAReductionMayFinishOneStick) {
  OpSpec sum{.function = "sum",
             .dims = {{"mb", 2}, {"out", 128, 2}},
             .tensors = {hbm(kX), {.order = {"mb", "out"}, .scale = {{"out", -2}}, .base = kY}},
             .accumulator_listed = true};
  EXPECT_THAT(Scene().host(kX, 512).op(sum).findings(), IsEmpty());
}

TEST(Checker, ACoreReachesSoFarAndNoFurther) {
  // The toy card's cores reach 64 KiB: 512 sticks.
  constexpr int64_t kFar = 0x40000;
  EXPECT_THAT(Scene(toy_card()).host(kX, 513 * 128).op(neg(hbm(kX), hbm(kFar), 513)).findings(),
              ElementsAre(breaks(Rule::kSpan), breaks(Rule::kSpan)));
  EXPECT_THAT(Scene(toy_card()).host(kX, 512 * 128).op(neg(hbm(kX), hbm(kFar), 512)).findings(), IsEmpty());
}

TEST(Checker, TensorsStartOnSticks) {
  EXPECT_THAT(
      Scene().host(kX, 1024).op(neg(hbm(kX), hbm(kY)), [](BoundOp& b) { b.start[0][0] = kX + 8; }).findings(),
      ElementsAre(breaks(Rule::kMisaligned)));
}

TEST(Checker, InPlaceMeansElementOnElement) {
  EXPECT_THAT(Scene().host(kX, 512).op(neg(hbm(kX), hbm(kX))).findings(), IsEmpty());
  const auto found = Scene().host(kX, 512).op(neg(hbm(kX), hbm(kX + 256))).findings();
  ASSERT_THAT(found, ElementsAre(breaks(Rule::kPartialOverlap)));
  EXPECT_EQ(found[0].party.tensor, "Tensor1");
  EXPECT_EQ(found[0].other->tensor, "Tensor0");
}

TEST(Checker, AReductionCannotWorkInPlace) {
  OpSpec sum{.function = "sumnonstick",
             .dims = {{"mb", 4}, {"out", 64}},
             .tensors = {hbm(kX), {.order = {"mb", "out"}, .scale = {{"mb", -1}}, .base = kX}},
             .accumulator_listed = true};
  EXPECT_THAT(Scene().host(kX, 512).op(sum).findings(), ElementsAre(breaks(Rule::kPartialOverlap)));
}

/// Negates a x b sticks, one to each of a*b cores; the labels of the two dims are free, the order is theirs.
OpSpec stick_each(TensorSpec in, TensorSpec out, const std::string& inner, int64_t a,
                  const std::string& outer, int64_t b) {
  in.order = out.order = {inner, "out", outer};
  return {.function = "neg", .dims = {{inner, a, a}, {outer, b, b}, {"out", 64}}, .tensors = {in, out}};
}

TEST(Checker, DimsOfOneStepPerCoreAreToldApart) {
  const auto written = [] {
    return Scene().host(kX, 12 * 128).op(stick_each(hbm(kX), lx(0), "mb", 3, "x", 4));
  };
  EXPECT_THAT(written().op(stick_each(lx(0), hbm(kY), "x", 3, "mb", 4)).findings(), IsEmpty());
  // Four by three: core 1 still has one stick, but wants another one than it wrote.
  OpSpec transposed = stick_each(lx(0), hbm(kY), "mb", 3, "x", 4);
  std::swap(transposed.dims[0], transposed.dims[1]);
  EXPECT_THAT(written().op(transposed).findings(), ElementsAre(breaks(Rule::kNotHeld)));
}

TEST(Checker, ACoreReadsOnlyWhatItHolds) {
  // Core 0 wrote two rows to its LX; then two cores want two rows each.
  const auto found =
      Scene().host(kX, 256).op(neg(hbm(kX), lx(0), 2)).op(neg(lx(0), hbm(kY), 4, 2)).findings();
  ASSERT_THAT(found, ElementsAre(breaks(Rule::kNotHeld)));
  EXPECT_EQ(found[0].party.core, 1);
  EXPECT_EQ(found[0].other->core, 0);
  EXPECT_THAT(Scene().host(kX, 512).op(neg(hbm(kX), lx(0), 4, 2)).op(neg(lx(0), hbm(kY), 4, 2)).findings(),
              IsEmpty());
}

TEST(Checker, ProducerAndConsumerStepThroughLxAlike) {
  // Written as 2 rows of 2 sticks, read as 4 rows of 1: the same bytes, another meaning.
  const OpSpec wide{.function = "neg", .dims = {{"mb", 2}, {"out", 128}}, .tensors = {hbm(kX), lx(0)}};
  EXPECT_THAT(Scene().host(kX, 512).op(wide).op(neg(lx(0), hbm(kY))).findings(),
              ElementsAre(breaks(Rule::kLayout)));
  // Sticks of a row beside each other: 4 rows of 1 is how a reshape reads them.
  TensorSpec in{.order = {"out", "mb"}, .base = kX}, by_rows{.order = {"out", "mb"}, .base = 0, .lx = true};
  const OpSpec rows{.function = "neg", .dims = {{"mb", 2}, {"out", 128}}, .tensors = {in, by_rows}};
  EXPECT_THAT(Scene().host(kX, 512).op(rows).op(neg(lx(0), hbm(kY))).findings(), IsEmpty());
}

TEST(Checker, OfADimWithAGapTheStepsBeforeItAreTheWritersToo) {
  // Two pieces of 100 rows, read as 100 rows of two elements, a stick each, in memory that has room for four.
  TensorSpec piece = hbm(kY);
  piece.gap = {{"mb", 100}};
  const auto read = [&](int64_t elements, int64_t room) {
    const std::vector<std::string> order = {"mb", "in", "out"};
    const OpSpec op{.function = "neg",
                    .dims = {{"mb", 100}, {"in", elements}, {"out", 64}},
                    .tensors = {{.order = order, .base = kY, .gap = {{"in", room - elements}}},
                                {.order = order, .base = 0x20000}}};
    Scene scene;
    scene.host(kX, 100 * 128).op(neg(hbm(kX), piece, 100));
    piece.base = kY + 100 * 128;
    return scene.op(neg(hbm(kX), piece, 100)).op(op).findings();
  };
  EXPECT_THAT(read(2, 4), IsEmpty());
  piece.base = kY;
  EXPECT_THAT(read(3, 4), ElementsAre(breaks(Rule::kLayout), breaks(Rule::kUninitialised)));
}

TEST(Checker, ProducerAndConsumerAgreeOnTheFormat) {
  TensorSpec from = lx(0), to = hbm(kY);
  from.format = to.format = DataFormat::IEEE_FP32;
  from.stick_sizes = to.stick_sizes = {32};
  const OpSpec other{.function = "neg", .dims = {{"mb", 4}, {"out", 32}}, .tensors = {from, to}};
  EXPECT_THAT(Scene().host(kX, 512).op(neg(hbm(kX), lx(0))).op(other).findings(),
              ElementsAre(breaks(Rule::kFormat)));
}

TEST(Checker, TheSameFindingOfManyCoresIsOneWithACount) {
  const auto found = Scene().op(neg(hbm(kX), hbm(kY), 4, 4)).findings();
  ASSERT_THAT(found, ElementsAre(breaks(Rule::kUninitialised)));
  EXPECT_EQ(found[0].occurrences, 4);
  EXPECT_EQ(
      to_string(found[0]),
      "uninitialised: launch 1, op 0 (neg), instruction 0, Tensor0, core 0, HBM [0x1000, 0x1080): reads "
      "what nobody wrote (4 times)");
}

}  // namespace
}  // namespace spyre::testing_artifacts
