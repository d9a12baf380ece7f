#include "spyre/program/bundle_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace spyre::program {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr Atom kPool{AtomSource::kPool, 0};
constexpr Atom parameter(int i) {
  return {AtomSource::kParameter, i};
}
constexpr Atom loop(int i) {
  return {AtomSource::kLoop, i};
}

BundleText parsed(std::string_view text) {
  auto bundle = parse_bundle(text, "bundle.mlir");
  EXPECT_TRUE(bundle.ok()) << bundle.error().to_string();
  return bundle.ok() ? std::move(bundle).value() : BundleText();
}

void expect_refused(std::string_view body, const std::string& text) {
  const auto bundle = parse_bundle(
      "func.func @b(%p: !sdscbundle.input_arg<index>) {\n" + std::string(body) + "\nreturn\n}", "b.mlir");
  ASSERT_FALSE(bundle.ok()) << body;
  EXPECT_THAT(bundle.error().message, HasSubstr(text));
}

TEST(Bundle, ReadsTheFormThatFrontEndsEmit) {
  const BundleText bundle = parsed(R"(
#map_0 = affine_map<(d0, d1)[s0] -> (s0 + 4096*d0 + d1 * 128)>
module {
  func.func @sdsc_bundle(%pool_base_addr: !sdscbundle.input_arg<index>,   // the caller's pool
                         %arg_0_base_addr: !sdscbundle.input_arg<index>,
                         %sym_0_1_base: !sdscbundle.input_arg<index, granularity=64, max_value=512>) {
    %pool = sdscbundle.input_arg_extract value from %pool_base_addr : !sdscbundle.input_arg<index> -> index
    %arg_0 = sdscbundle.input_arg_extract value from %arg_0_base_addr : !sdscbundle.input_arg<index> -> index
    %n = sdscbundle.input_arg_extract value from %sym_0_1_base : !sdscbundle.input_arg<index, granularity=64, max_value=512> -> index
    %most = sdscbundle.input_arg_extract max_value from %sym_0_1_base : !sdscbundle.input_arg<index, granularity=64, max_value=512> -> index
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %loop_bound_0 = arith.constant 3 : index
    %arg_0_core_offset_256 = arith.constant 256 : index
    %arg_0_core_256 = arith.addi %arg_0, %arg_0_core_offset_256 : index
    scf.for %i_0 = %c0 to %loop_bound_0 step %c1 {
      scf.for %i_1 = %c0 to %n step %most {
        %addr_0 = affine.apply #map_0(%i_0, %i_1)[%arg_0_core_256]
        sdscbundle.sdsc_execute (%n, %addr_0) {sdsc_filename="sdsc_0.json", "symbol_ids"=[-1, -2]}
      }
    }
    sdscbundle.sdsc_execute (%pool, %arg_0) {sdsc_filename="sdsc_1.json", "symbol_ids"=[-3, -4]}
    sdscbundle.sdsc_execute (%arg_0, %pool) {sdsc_filename="sdsc_0.json", "symbol_ids"=[-1, -2]}
    return
  }
}
)");
  ASSERT_EQ(bundle.parameters.size(), 3u);
  EXPECT_TRUE(bundle.parameters[0].is_pool);
  EXPECT_EQ(bundle.parameters[1].arg_index, 0);
  EXPECT_EQ(bundle.parameters[2].kind, ParameterKind::kExtent);
  EXPECT_EQ(bundle.parameters[2].max_value, 512);
  EXPECT_THAT(bundle.files, ElementsAre("sdsc_0.json", "sdsc_1.json"));
  EXPECT_EQ(bundle.loop_count, 2);
  ASSERT_EQ(bundle.steps.size(), 3u);
  const ProgramLoop& outer = std::get<ProgramLoop>(bundle.steps[0].what);
  const ProgramLoop& inner = std::get<ProgramLoop>(outer.body[0].what);
  EXPECT_EQ(inner.step, (LinearForm{.constant = 512}));
  const Execute& execute = std::get<Execute>(inner.body[0].what);
  EXPECT_EQ(execute.bindings[1].symbol, -2);
  EXPECT_EQ(execute.bindings[1].value,
            (LinearForm{.constant = 256, .terms = {{parameter(1), 1}, {loop(0), 4096}, {loop(1), 128}}}));
  EXPECT_EQ(std::get<Execute>(bundle.steps[2].what).op, 0);  // the shared file, bound anew
}

TEST(Bundle, AllocatesItsOwnPool) {
  const BundleText bundle = parsed(R"(func.func @b() {
    %pool = sdscbundle.device_mem_allocate 8192 bytes : index
    %o = arith.constant 4096 : index
    %a = arith.addi %pool, %o : index
    sdscbundle.sdsc_execute (%a) {sdsc_filename="sdsc_0.json", "symbol_ids"=[-1]}
    return })");
  EXPECT_EQ(bundle.pool_bytes, 8192);
  EXPECT_EQ(std::get<Execute>(bundle.steps[0].what).bindings[0].value,
            (LinearForm{.constant = 4096, .terms = {{kPool, 1}}}));
}

TEST(Bundle, RefusesWhatItCannotUnderstand) {
  expect_refused("%a = arith.muli %p, %p : index", "line 2: found 'arith.muli', allowed: arith.constant");
  expect_refused("%a = arith.addi %x, %x : index", "found '%x', allowed: a value defined above");
  expect_refused("%a = arith.constant 1 : index\n%a = arith.constant 2 : index", "found '%a' defined twice");
  expect_refused("%a = arith.constant 99999999999999999999 : index", "allowed: a 64-bit integer");
  expect_refused("sdscbundle.sdsc_execute () {\"symbol_ids\"=[]}", "found an execute without sdsc_filename");
  expect_refused("%a = affine.apply affine_map<(d0) -> (d0 floordiv 2)>(%a)",
                 "found 'floordiv', allowed: sums and multiples");
  expect_refused("%a = affine.apply affine_map<(d0) -> (d0 * d0)>(%a)", "a product of two unknowns");
  expect_refused(
      "%c = arith.constant 1 : index\n%z = arith.constant 0 : index\nscf.for %i = %z to %c step %z {}",
      "found a step of 0, allowed: at least 1");
  expect_refused("%m = arith.constant 9223372036854775807 : index\n%n = arith.addi %m, %m : index",
                 "leaves 64 bits");
}

TEST(Bundle, ValuesOfALoopEndWithIt) {
  expect_refused(
      "%z = arith.constant 0 : index\n%o = arith.constant 1 : index\n"
      "scf.for %i = %z to %o step %o {\n%v = arith.addi %i, %o : index\n}\n"
      "%w = arith.addi %v, %o : index",
      "line 7: found '%v', allowed: a value defined above");
}

TEST(Bundle, LoopsHaveLimits) {
  expect_refused(
      "%z = arith.constant 0 : index\n%o = arith.constant 1 : index\n%n = arith.constant 2000000 : index\n"
      "scf.for %i = %z to %n step %o {}",
      "found a loop from 0 to 2000000, allowed: 0 to 1048576 rounds");
  std::string nest = "%z = arith.constant 0 : index\n%o = arith.constant 1 : index\n";
  for (int i = 0; i < 17; ++i) {
    nest += "scf.for %i" + std::to_string(i) + " = %z to %o step %o {\n";
  }
  expect_refused(nest, "found a deeper loop, allowed: at most 16 nested");
}

}  // namespace
}  // namespace spyre::program
