// What the writer refuses, beyond the validator, each with its message.

#include <gmock/gmock.h>

#include <functional>

#include "spyre/codegen/superdsc/constants.h"
#include "spyre/codegen/superdsc/corpus_for_test.h"

namespace spyre::superdsc {
namespace {

using testing::HasSubstr;

std::string refusal(const std::string& name, const std::function<void(OpSpec&)>& spoil,
                    const Machine& machine = spyre_card()) {
  Kernel kernel = corpus_kernel(name);
  spoil(std::get<OpSpec>(kernel.body[0]));
  const auto bundle = write_bundle(kernel, {.machine = machine});
  return bundle.ok() ? "accepted" : bundle.error().to_string();
}

Expr expr(const char* text) {
  return parse_expr(text).value();
}

TEST(Refusals, SlicesThatStartInsideAStick) {
  EXPECT_THAT(
      refusal("slice", [](OpSpec& op) { op.args[0].device_coordinates[2] = expr("Mod(c1 + 3, 64)"); }),
      HasSubstr("op 'identity', tensor 'X': coordinate 'Mod(c1 + 3, 64)' is no lane"));
}

TEST(Refusals, ConstantsOfFormatsThatHoldNone) {
  EXPECT_EQ(encode_constant(1.0, DataFormat::SEN143_FP8).error().message,
            "constants of format SEN143_FP8, allowed are SEN169_FP16, IEEE_FP32, IEEE_INT32");
}

TEST(Refusals, CoordinatesThatMixSymbols) {
  EXPECT_THAT(refusal("abs", [](OpSpec& op) { op.args[0].device_coordinates[1] = expr("c0 + c1"); }),
              HasSubstr("coordinate 'c0 + c1' mixes symbols or skips"));
  EXPECT_THAT(refusal("abs", [](OpSpec& op) { op.args[0].device_coordinates[1] = expr("2*c0"); }),
              HasSubstr("coordinate '2*c0' mixes symbols or skips"));
  EXPECT_THAT(refusal("abs", [](OpSpec& op) { op.args[0].device_coordinates[0] = expr("floor(c1/32)"); }),
              HasSubstr("advances by 32 of 'c1', a stick holds 64 of it"));
}

TEST(Refusals, TensorsThatAreTooSmall) {
  EXPECT_THAT(refusal("sum_stick", [](OpSpec& op) { op.args[0].device_size[0] = 1; }),
              HasSubstr("tensor 'X': holds 64 along 'out', the padded extent is 128"));
  EXPECT_THAT(refusal("abs", [](OpSpec& op) { op.args[0].device_size[1] = 3; }),
              HasSubstr("holds 3 along 'mb', the padded extent is 4"));
  EXPECT_THAT(refusal("slice", [](OpSpec& op) { op.args[0].device_coordinates[1] = expr("c0 + 5"); }),
              HasSubstr("runs to 7 along 'mb', it holds 6"));
}

TEST(Refusals, IndicesThatEndInsideALaterStick) {
  // The card takes whole sticks of indices, or less than one: 40 on one core would be refused there.
  const auto picks = [](int64_t count, int64_t split) {
    return [=](OpSpec& op) {
      op.iteration_space[0].extent = count;
      op.iteration_space[0].split = split;
      op.core_id_to_work_slice = default_core_map(op.iteration_space, false);
      op.args[0].device_size = {2, 32};
      op.args[2].device_size[1] = count;
    };
  };
  EXPECT_THAT(
      refusal("gather", picks(40, 1)),
      HasSubstr("tensor 'idx': each core reads 40 indices along 'mb', allowed are whole sticks of 32"));
  // The second core's 20 would begin in one stick and end in the next.
  EXPECT_THAT(
      refusal("gather", picks(40, 2)),
      HasSubstr("each core gets 20 along 'mb', allowed are whole sticks of 32 or pieces that divide one"));
  EXPECT_EQ(refusal("gather", picks(40, 5)), "accepted");
  EXPECT_EQ(refusal("gather", picks(64, 1)), "accepted");
}

TEST(Refusals, OperandsWithAnotherStick) {
  EXPECT_THAT(refusal("broadcast_add",
                      [](OpSpec& op) {
                        op.args[1].device_size = {1, 64};
                        op.args[1].device_coordinates = {expr("floor(c0/64)"), expr("Mod(c0, 64)")};
                      }),
              HasSubstr("tensor 'b': its stick runs along 'mb', the op's along 'out'\n  try  a restickify"));
}

TEST(Refusals, SplitsThatCutSticksOrDoNotDivide) {
  const auto split = [](size_t dim, int64_t into) {
    return [=](OpSpec& op) {
      for (IterationDim& d : op.iteration_space) d.split = 1;
      op.iteration_space[dim].split = into;
      op.core_id_to_work_slice = default_core_map(op.iteration_space, false);
    };
  };
  EXPECT_THAT(refusal("abs", split(1, 2)),
              HasSubstr("each core gets 32 along 'out', allowed are whole sticks of 64"));
  EXPECT_THAT(refusal("abs", split(0, 3)), HasSubstr("'mb' has extent 4, which 3 cores cannot share evenly"));
  EXPECT_THAT(refusal("restickify_short", split(1, 2)),
              HasSubstr("'out' is padded from 100 to 128 and cannot be split"));
  EXPECT_THAT(refusal("depthwise", split(1, 2)),
              HasSubstr("'i' is padded by the window and cannot be split"));
}

TEST(Refusals, SplitSlicesInLx) {
  EXPECT_THAT(
      refusal("slice",
              [](OpSpec& op) {
                op.args[0].allocation = {Place::kLx, 0};
              }),
      HasSubstr("tensor 'X': is a slice along 'mb', which is split; who holds which part in LX is open"));
}

TEST(Refusals, MatmulSticks) {
  const auto transposed = [](OpSpec& op, size_t arg, const char* outer, const char* inner) {
    op.args[arg].device_size = {4, 256, 64};
    op.args[arg].device_coordinates = {expr((std::string("floor(") + inner + "/64)").c_str()), expr(outer),
                                       expr((std::string("Mod(") + inner + ", 64)").c_str())};
  };
  EXPECT_THAT(refusal("matmul", [&](OpSpec& op) { transposed(op, 0, "k", "m"); }),
              HasSubstr("tensor 'X': the left operand's stick must be K"));
  EXPECT_THAT(refusal("matmul", [&](OpSpec& op) { transposed(op, 1, "n", "k"); }),
              HasSubstr("tensor 'W': the right operand's stick must be N"));
  EXPECT_THAT(refusal("matmul", [&](OpSpec& op) { transposed(op, 2, "n", "m"); }),
              HasSubstr("tensor 'Y': the result's stick must be N"));
}

TEST(Refusals, ReductionsTheCardLacks) {
  EXPECT_THAT(refusal("sum_stick", [](OpSpec& op) { op.op = OpId::prod; }),
              HasSubstr("op 'prod': cannot fold the stick dimension"));
  EXPECT_THAT(refusal("sum_nonstick",
                      [](OpSpec& op) {
                        op.op = OpId::exx2;
                        op.constants = {{"exx2scale", 0.25}, {"useZeroMean", 0.0}};
                      }),
              HasSubstr("op 'exx2': folds the stick dimension only"));
  EXPECT_THAT(refusal("sum_stick",
                      [](OpSpec& op) {
                        op.args[1].device_size = {1, 64};
                        op.args[1].device_coordinates = {Expr(), Expr()};
                      }),
              HasSubstr("folds 2 dimensions, one at a time is allowed"));
}

TEST(Refusals, WindowsThatLeaveARest) {
  EXPECT_THAT(refusal("avgpool", [](OpSpec& op) { op.args[0].device_size[1] = 5; }),
              HasSubstr("tensor 'X': windows consume 4 of the 5 positions along 'i'"));
  EXPECT_THAT(refusal("avgpool", [](OpSpec& op) { op.args[0].device_coordinates[1] = expr("h + kh"); }),
              HasSubstr("coordinate 'h + kh' disagrees with conv_params: stride 2, padding 0"));
  EXPECT_THAT(refusal("avgpool",
                      [](OpSpec& op) {
                        op.node_output_ranges = {2, 64, 2, 2};
                      }),
              HasSubstr("5 loops, the output ranges and the kernel leave 6: mb, i, j, out, ki, kj"));
}

TEST(Refusals, TensorsOutOfReach) {
  EXPECT_THAT(refusal("abs",
                      [](OpSpec& op) {
                        op.iteration_space[0] = {"c0", 8 << 20, 2, ""};
                        for (TensorArg& arg : op.args) arg.device_size[1] = 8 << 20;
                      }),
              HasSubstr("one core spans 512.00 MiB of device memory, it reaches 256.00 MiB"));
  EXPECT_THAT(refusal(
                  "abs",
                  [](OpSpec& op) {
                    op.iteration_space[0].extent = 40;
                    for (TensorArg& arg : op.args) arg.device_size[1] = 40;
                    op.args[1].allocation = {Place::kLx, 0};
                  },
                  toy_card()),
              HasSubstr("tensor 'Y': ends at byte 2560 of LX, a core has 2048"));
}

TEST(Refusals, RuntimeExtentsThatCoresCannotShare) {
  EXPECT_THAT(refusal("dynamic", [](OpSpec& op) { op.symbolic_dim_bounds[0].second.granularity = 1; }),
              HasSubstr("'mb' grows by 1, which 2 cores cannot share in steps of 1"));
}

TEST(Refusals, ExtentsThatNoArgumentHas) {
  Kernel kernel = corpus_kernel("dynamic");
  for (LaunchArgument& arg : kernel.arguments) arg.shape = {int64_t{16}, int64_t{64}};
  EXPECT_THAT(write_bundle(kernel).error().message,
              HasSubstr("runtime extent 's0' is in no argument's shape"));
}

TEST(Refusals, SayWhichItemOfTheKernelIsToBlame) {
  Kernel kernel = corpus_kernel("abs");
  const KernelItem good = kernel.body[0];
  OpSpec bad = std::get<OpSpec>(good);
  bad.args[0].device_coordinates[1] = expr("2*c0");
  kernel.body = {good, good, bad, good};
  EXPECT_EQ(write_bundle(kernel).error().item, 2U);
  // Cut into bundles, it is still the third of the kernel.
  EXPECT_EQ(write_bundle(kernel, {.parts = {{.items = 1}, {.items = 3}}}).error().item, 2U);
  // Of what the validator refuses, too; inside a loop it is the loop.
  bad = std::get<OpSpec>(good);
  bad.is_reduction = !bad.is_reduction;
  kernel.body = {good, LoopSpec{.count = 2, .body = {bad}}};
  EXPECT_EQ(write_bundle(kernel).error().item, 1U);
}

}  // namespace
}  // namespace spyre::superdsc
