// Reading is total: whatever the bytes, an answer comes back.
#include "spyre/program/read_program.h"
#include "spyre/base/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "spyre/program/launch_spec.h"
#include "spyre/program/lower.h"
#include "spyre/program/test_artifact.h"

namespace spyre::program {
namespace {

using spyre::testing_artifacts::index_tensor;
using spyre::testing_artifacts::indexed_rows;
using spyre::testing_artifacts::OpSpec;

using spyre::testing_artifacts::TensorSpec;
using spyre::testing_artifacts::write_sdsc;
using ::testing::HasSubstr;

TEST(ReadProgram, SaysWhatIsMissing) {
  EXPECT_THAT(read_program({}).error().message,
              HasSubstr("found neither bundle.mlir nor an sdsc file among 0 files"));
  const auto program = read_program({{"bundle.mlir",
                                      "func.func @b() { sdscbundle.sdsc_execute () "
                                      "{sdsc_filename=\"sdsc_7.json\", symbol_ids=[]} return }"}});
  ASSERT_FALSE(program.ok());
  EXPECT_EQ(program.error().message,
            "bundle.mlir: sdsc_filename: found 'sdsc_7.json', allowed: the files of the bundle");
  EXPECT_THAT(read_program({{"sdsc_0.json", "{}"}, {"sdsc_1.json", "{}"}}).error().message,
              HasSubstr("found 'sdsc_0.json' and 'sdsc_1.json' without it"));
}

TEST(ReadProgram, NewerLaunchSpecsAreRefused) {
  const auto spec = read_launch_spec(Json::parse(R"({"version": 2, "args": []})"), "launch_spec.json");
  ASSERT_FALSE(spec.ok());
  EXPECT_EQ(spec.error().message,
            "launch_spec.json: version: found 2, allowed: 1; a newer front end wrote this");
}

TEST(ReadProgram, DeepJsonIsRefusedNotFollowed) {
  const std::string deep = std::string(100000, '[') + std::string(100000, ']');
  EXPECT_THAT(read_program({{"sdsc_0.json", deep}}).error().message, HasSubstr("nested more than 64 deep"));
}

/// The corpus that mutations start from.
std::vector<ProgramFiles> corpus() {
  std::vector<ProgramFiles> out;
  out.push_back(load_program_files(SPYRE_CORPUS "/abs_seed").value());
  OpSpec sum{
      .function = "sum",
      .dims = {{"mb", 4, 2}, {"out", 128}},
      .tensors = {{.order = {"mb", "out"}}, {.order = {"mb", "out"}, .scale = {{"out", -2}}, .base = 4096}},
      .mask = {{"out", {100, 28}}},
      .accumulator_listed = true,
      .symbolic = true};
  out.push_back({{"sdsc_0.json", write_sdsc(sum).dump(1)},
                 {"bundle.mlir", R"(
#map_0 = affine_map<(d0)[s0] -> (s0 + 512*d0)>
module {
  func.func @sdsc_bundle(%arg_0_base_addr: !sdscbundle.input_arg<index>, %arg_1_base_addr: !sdscbundle.input_arg<index>) {
    %arg_0 = sdscbundle.input_arg_extract value from %arg_0_base_addr : !sdscbundle.input_arg<index> -> index
    %arg_1 = sdscbundle.input_arg_extract value from %arg_1_base_addr : !sdscbundle.input_arg<index> -> index
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %n = arith.constant 4 : index
    scf.for %i = %c0 to %n step %c1 {
      %a = affine.apply #map_0(%i)[%arg_0]
      sdscbundle.sdsc_execute (%a, %a, %arg_1, %arg_1) {sdsc_filename="sdsc_0.json", "symbol_ids"=[-1, -2, -3, -4]}
    }
    return
  }
})"},
                 {"launch_spec.json", R"({"version": 1, "kernel_name": "k", "pool_size": 0, "args": [
    {"arg_index": 0, "role": "input", "shape": [4, "s0"], "dtype": "float16",
     "layout": {"device_size": [2, 4, 64], "device_dtype": "SEN169_FP16", "element_arrangement": "STANDARD"}}]})"}});
  OpSpec gather{.function = "identity",
                .dims = {{"mb", 32}, {"out", 64}},
                .tensors = {index_tensor(1), indexed_rows(), {.order = {"mb", "out"}}}};
  out.push_back({{"sdsc_0.json", write_sdsc(gather).dump()}});
  return out;
}

std::string mutated(std::string text, std::mt19937& random) {
  const auto pick = [&](size_t n) { return static_cast<size_t>(random() % std::max<size_t>(n, 1)); };
  static const char* const kTokens[] = {
      "-1", "0", "99999999999999999999", "\"",      "{", "}",  "[",  "]",   "null", "1e308", "\"{}\"",
      "%",  "#", "-9223372036854775808", "scf.for", "(", "\\", "mb", "out_"};
  const size_t rounds = 1 + pick(4);
  for (size_t i = 0; i < rounds && !text.empty(); ++i) {
    const size_t at = pick(text.size());
    switch (pick(6)) {
      case 0:
        text[at] = static_cast<char>(random());
        break;
      case 1:
        text.erase(at, 1 + pick(40));
        break;
      case 2:
        text.insert(at, kTokens[pick(std::size(kTokens))]);
        break;
      case 3:
        text.insert(at, text.substr(pick(text.size()), pick(200)));
        break;
      case 4: {  // another number in place of one
        const size_t digit = text.find_first_of("0123456789", at);
        if (digit != std::string::npos) {
          const size_t end = text.find_first_not_of("0123456789", digit);
          text.replace(digit, (end == std::string::npos ? text.size() : end) - digit,
                       std::to_string(random() % 5000));
        }
        break;
      }
      default:
        text.resize(at);
    }
  }
  return text;
}

TEST(ReadProgram, TablesAreAsLongAsTheirGapsSayElseAsTheirMemory) {
  const auto gap_of_rows = [](TensorSpec rows, const std::vector<int64_t>& device_size) {
    const OpSpec gather{.function = "identity",
                        .dims = {{"mb", 1}, {"out", 128}},
                        .tensors = {index_tensor(1), std::move(rows), {.order = {"mb", "out"}}}};
    DeviceProgram program = read_program({{"sdsc_0.json", write_sdsc(gather).dump()}}).value();
    refine_with_physical_size(program.ops[0], 1, device_size);
    const TensorDim& dim = program.ops[0].tensors[1].dims[1];
    return dim.gap_declared ? std::optional(dim.gap) : std::nullopt;
  };
  EXPECT_EQ(gap_of_rows(indexed_rows(), {10, 2, 64}), 9);
  // The sticks lie elsewhere than the op lists them, so the rows may, too.
  EXPECT_EQ(gap_of_rows(indexed_rows(), {2, 1, 64}), std::nullopt);
  TensorSpec stated = indexed_rows();
  stated.gap = {{"mb", 4}};
  EXPECT_EQ(gap_of_rows(stated, {1, 2, 64}), 4);
}

TEST(ReadProgram, SurvivesRandomMutations) {
  constexpr uint32_t kSeed = 20261115;
  std::mt19937 random(kSeed);
  const std::vector<ProgramFiles> seeds = corpus();
  for (const ProgramFiles& seed : seeds) {
    const auto program = read_program(seed);
    ASSERT_TRUE(program.ok()) << program.error().to_string();
  }
  int accepted = 0, refused = 0;
  for (int round = 0; round < 4000; ++round) {
    SCOPED_TRACE(fmt::format("seed {} round {}", kSeed, round));
    ProgramFiles files = seeds[round % seeds.size()];
    auto file = files.begin();
    std::advance(file, random() % files.size());
    file->second = mutated(file->second, random);
    const auto program = read_program(files);
    ++(program.ok() ? accepted : refused);
    if (!program.ok()) {
      EXPECT_FALSE(program.error().message.empty());
    }
  }
  // Both happen, or the mutations are too blunt or too gentle to say anything.
  EXPECT_GT(accepted, 100);
  EXPECT_GT(refused, 1000);
}

}  // namespace
}  // namespace spyre::program
