#include "spyre/opspec/validate.h"

#include <gmock/gmock.h>

#include <functional>

#include "spyre/opspec/text.h"

namespace spyre {
namespace {

using testing::HasSubstr;

// A valid kernel, changed by `spoil`; answers with the message of the refusal.
std::string refusal(const std::function<void(Kernel&, OpSpec&)>& spoil) {
  Kernel kernel = parse_kernel(R"(kernel k {
    pool_bytes=1024
    argument 0 { role=input dtype=float16 shape=[4, 128] device_size=[2, 4, 64] stride_map=[64, 128, 1] }
    op add {
      iteration_space={c0: (4, 2), c1: (128, 1)}
      core_id_to_work_slice={c0: Mod(core_id, 2), c1: 0}
      in X { device_size=[2, 4, 64] coords=[floor(c1/64), c0, Mod(c1, 64)] hbm=0 }
      in B { device_size=[2, 4, 64] coords=[floor(c1/64), c0, Mod(c1, 64)] lx=0 }
      out Y { device_size=[2, 4, 64] coords=[floor(c1/64), c0, Mod(c1, 64)] hbm_pool=0 }
    }
  })",
                               "t")
                      .value();
  EXPECT_TRUE(validate(kernel).ok());
  spoil(kernel, std::get<OpSpec>(kernel.body[0]));
  const Status status = validate(kernel);
  return status.ok() ? "accepted" : status.error().to_string();
}
std::string refusal_of_op(const std::function<void(OpSpec&)>& spoil) {
  return refusal([&](Kernel&, OpSpec& op) { spoil(op); });
}

TEST(Validate, RefusesAWrongReductionFlag) {
  EXPECT_THAT(refusal_of_op([](OpSpec& op) { op.is_reduction = true; }),
              HasSubstr("op 'add': is_reduction is true, the op is of family pointwise and needs false"));
}

TEST(Validate, RefusesWhatTextCannotSay) {
  EXPECT_THAT(refusal_of_op([](OpSpec& op) { op.args[0].name = "two words"; }),
              HasSubstr("op 'add': 'two words' cannot name a tensor"));
  EXPECT_THAT(refusal_of_op([](OpSpec& op) {
                op.constants = {{"gain", 1.0}, {"gain", 2.0}};
              }),
              HasSubstr("op 'add': constant 'gain' appears twice"));
}

TEST(Validate, RefusesBadIterationSpaces) {
  EXPECT_THAT(refusal_of_op([](OpSpec& op) { op.iteration_space[0].extent = 0; }),
              HasSubstr("extent of 'c0' is 0, must be positive"));
  EXPECT_THAT(refusal_of_op([](OpSpec& op) { op.iteration_space[1].symbol = "c0"; }),
              HasSubstr("symbol 'c0' appears twice"));
  EXPECT_THAT(refusal_of_op([](OpSpec& op) { op.iteration_space[0].symbol = "core_id"; }),
              HasSubstr("'core_id' cannot name a symbol"));
  EXPECT_THAT(refusal_of_op([](OpSpec& op) { op.iteration_space[0].split = 64; }),
              HasSubstr("splits ask for 64 cores, the card has 32"));
  EXPECT_THAT(refusal_of_op([](OpSpec& op) { op.iteration_space[0].dynamic = "s0"; }),
              HasSubstr("extent 's0' of 'c0' has no bound"));
}

TEST(Validate, RefusesCoreMapsThatAreNotOneToOne) {
  EXPECT_THAT(refusal_of_op([](OpSpec& op) { op.core_id_to_work_slice[0].second = Expr(); }),
              HasSubstr("core 1 repeats the slices [0, 0] of another core"));
  EXPECT_THAT(refusal_of_op([](OpSpec& op) {
                op.core_id_to_work_slice[0].second = Expr::symbol("core_id") + Expr::constant(1);
              }),
              HasSubstr("core 1 has slice 2 of 'c0', allowed are 0 to 1"));
  EXPECT_THAT(refusal_of_op([](OpSpec& op) { op.core_id_to_work_slice.pop_back(); }),
              HasSubstr("core_id_to_work_slice has no entry for 'c1'"));
  EXPECT_THAT(refusal_of_op([](OpSpec& op) { op.core_id_to_work_slice[0].second = Expr::symbol("c1"); }),
              HasSubstr("core maps depend on core_id alone"));
}

TEST(Validate, RefusesWrongOperands) {
  EXPECT_THAT(refusal_of_op([](OpSpec& op) { op.args.erase(op.args.begin()); }),
              HasSubstr("2 tensors, needed are 2 inputs, 0 index tensors and the output"));
  EXPECT_THAT(refusal_of_op([](OpSpec& op) { op.args[2].is_input = true; }),
              HasSubstr("op 'add', tensor 'Y': the last tensor must be the output"));
  EXPECT_THAT(refusal_of_op([](OpSpec& op) { op.args[0].is_input = false; }),
              HasSubstr("tensor 'X': only the last tensor is an output"));
  EXPECT_THAT(refusal_of_op([](OpSpec& op) { op.args.resize(9, op.args[0]); }),
              HasSubstr("9 tensors, one op takes at most 8"));
}

TEST(Validate, RefusesFormatsTheOpDoesNotTake) {
  EXPECT_THAT(refusal_of_op([](OpSpec& op) { op.args[0].format = DataFormat::SENINT8; }),
              HasSubstr("tensor 'X': format SENINT8, allowed are SEN169_FP16, IEEE_FP32"));
  EXPECT_THAT(refusal_of_op([](OpSpec& op) { op.args[0].format = DataFormat::SEN153_FP9; }),
              HasSubstr("format SEN153_FP9 does not fill sticks"));
}

TEST(Validate, RefusesShapesThatDoNotFit) {
  EXPECT_THAT(refusal_of_op([](OpSpec& op) { op.args[0].device_size.pop_back(); }),
              HasSubstr("2 sizes and 3 coordinates, needed is one coordinate per size"));
  EXPECT_THAT(refusal_of_op([](OpSpec& op) { op.args[0].device_size[2] = 32; }),
              HasSubstr("the last size is 32, one stick of SEN169_FP16 holds 64"));
  EXPECT_THAT(refusal_of_op([](OpSpec& op) { op.args[0].device_coordinates[1] = Expr::symbol("c9"); }),
              HasSubstr("coordinate 'c9' uses 'c9', known are {c0, c1}"));
}

TEST(Validate, RefusesPlacesOutOfBounds) {
  EXPECT_THAT(refusal_of_op([](OpSpec& op) { op.args[0].allocation.value = 5; }),
              HasSubstr("launch argument 5 is not declared by kernel 'k'"));
  EXPECT_THAT(refusal_of_op([](OpSpec& op) { op.args[1].allocation.value = 64; }),
              HasSubstr("LX address 64, allowed are multiples of 128 below 2097152"));
  EXPECT_THAT(refusal_of_op([](OpSpec& op) { op.args[2].allocation.value = 1024; }),
              HasSubstr("pool offset 1024, allowed are multiples of 128 below 1024"));
}

TEST(Validate, RefusesTensorsThatRunPastThePool) {
  EXPECT_THAT(refusal([](Kernel& k, OpSpec&) { k.pool_bytes = 896; }),
              HasSubstr("tensor 'Y': ends at byte 1024 of the pool, which has 896"));
}

TEST(Validate, RefusesSizesThatWouldOverflow) {
  EXPECT_THAT(refusal_of_op([](OpSpec& op) { op.args[0].device_size[0] = INT64_MAX / 2; }),
              HasSubstr("has more than 4398046511104 elements"));
  EXPECT_THAT(refusal_of_op([](OpSpec& op) { op.iteration_space[0].extent = INT64_MAX; }),
              HasSubstr("allowed are up to 4398046511104"));
}

TEST(Validate, RefusesIndexTensorsInLx) {
  EXPECT_THAT(
      refusal_of_op([](OpSpec& op) {
        op.op = OpId::identity;
        op.args[0].name = "i";
        op.args[0].allocation = {Place::kLx, 0};
        op.args[0].format = DataFormat::SENUINT32;
        op.args[0].device_size[2] = 32;
        op.args[1].device_coordinates[1] = Expr::indirect("i");
      }),
      HasSubstr("tensor 'i': index tensors and what they index must live in device memory, found lx"));
}

TEST(Validate, RefusesConstantsThatTheOpDoesNotDefine) {
  EXPECT_THAT(refusal_of_op([](OpSpec& op) {
                op.constants = {{"alpha", 2.0}};
              }),
              HasSubstr("constants are {alpha}, needed are {}"));
  EXPECT_THAT(refusal_of_op([](OpSpec& op) {
                op.op = OpId::clip;
                op.args.erase(op.args.begin());
                op.constants = {{"clipMin", 0.0}};
              }),
              HasSubstr("constants are {clipMin}, needed are {clipMax, clipMin}"));
  EXPECT_THAT(refusal_of_op([](OpSpec& op) {
                op.constants = {{"x", INFINITY}};
              }),
              HasSubstr("constant 'x' is not finite"));
}

TEST(Validate, RefusesLoopsThatDoNotMatch) {
  EXPECT_THAT(refusal_of_op([](OpSpec& op) { op.tiled_symbols = {{"c0"}}; }),
              HasSubstr("tiled_symbols has 1 levels inside 0 loops, needed is one per loop"));
  const auto in_loop = [](const std::function<void(OpSpec&)>& spoil) {
    return refusal([&](Kernel& kernel, OpSpec& op) {
      op.tiled_symbols = {{"c0"}};
      spoil(op);
      LoopSpec loop{.count = 4};
      loop.body.emplace_back(op);
      kernel.body = {std::move(loop)};
    });
  };
  EXPECT_EQ(in_loop([](OpSpec&) {}), "accepted");
  EXPECT_THAT(in_loop([](OpSpec& op) { op.args[1].tile_advance = Expr::symbol("c0"); }),
              HasSubstr("tensor 'B': a tensor in LX cannot advance in a loop"));
  EXPECT_THAT(in_loop([](OpSpec& op) { op.args[0].tile_advance = Expr::symbol("c1"); }),
              HasSubstr("tile_advance uses 'c1', tiled are {c0}"));
  EXPECT_THAT(in_loop([](OpSpec& op) {
                op.tiled_symbol_trip_counts = {{"c0", 3}};
              }),
              HasSubstr("trip count of 'c0' is 3, its loop runs 4 times"));
}

TEST(Validate, RefusesWindowsWhereTheyDoNotBelong) {
  EXPECT_THAT(refusal_of_op([](OpSpec& op) { op.window = WindowParams{}; }),
              HasSubstr("conv_params belong to pool and conv ops only"));
  EXPECT_THAT(refusal_of_op([](OpSpec& op) {
                op.op = OpId::depthwiseconv2dnative;
                op.is_reduction = true;
              }),
              HasSubstr("pool and conv ops need conv_params"));
}

TEST(Validate, RefusesShufflesOutsideLx) {
  EXPECT_THAT(refusal_of_op([](OpSpec& op) {
                op.op = OpId::shuffle;
                op.args.erase(op.args.begin() + 1);
              }),
              HasSubstr("tensor 'X': shuffle copies from LX to LX, found hbm"));
  EXPECT_THAT(refusal_of_op([](OpSpec& op) {
                op.args[0].work_division = {{"c0", 2, Expr()}};
              }),
              HasSubstr("work_division belongs to shuffle only"));
  const auto divided = [](Expr owner) {
    return refusal_of_op([&](OpSpec& op) {
      op.op = OpId::shuffle;
      op.args.erase(op.args.begin());
      for (TensorArg& arg : op.args) {
        arg.allocation = {Place::kLx, 0};
        arg.work_division = {{"c0", 2, owner}};
      }
    });
  };
  EXPECT_EQ(divided(Expr::mod(Expr::symbol("core_id"), 2)), "accepted");
  EXPECT_THAT(divided(Expr::symbol("c0")), HasSubstr("work divisions depend on core_id alone"));
  EXPECT_THAT(divided(2 * Expr::symbol("core_id")),
              HasSubstr("core 1 holds slice 2 of 'c0', allowed are 0 to 1"));
}

TEST(Validate, RefusesBadKernels) {
  EXPECT_THAT(refusal([](Kernel& k, OpSpec&) { k.name = "two words"; }),
              HasSubstr("'two words' cannot name a kernel"));
  EXPECT_THAT(refusal([](Kernel& k, OpSpec&) { k.pool_bytes = int64_t{15} << 30; }),
              HasSubstr("pool of 16106127360 bytes, allowed are 0 to 15032385536"));
  EXPECT_THAT(refusal([](Kernel& k, OpSpec&) { k.arguments.push_back(k.arguments[0]); }),
              HasSubstr("launch argument 0 is negative or declared twice"));
  EXPECT_THAT(refusal([](Kernel& k, OpSpec&) { k.arguments[0].stride_map.pop_back(); }),
              HasSubstr("differ in length"));
}

}  // namespace
}  // namespace spyre
