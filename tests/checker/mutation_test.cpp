// Artifacts broken in one place each. Every break must be caught, and by whom is part of the expectation: the
// reader (before anything runs), a fault (the card stops) or the checker (the program runs to its end and
// would give wrong numbers).
#include <fmt/format.h>

#include <functional>
#include <optional>

#include "spyre/base/json.h"
#include "tests/checker/checked_bundle.h"

namespace spyre {
namespace {

using By = Outcome::By;
using exec::Rule;
using Files = program::ProgramFiles;

/// One artifact, opened for a change and written back when this goes.
class Sdsc {
 public:
  Sdsc(Files& files, std::string name)
      : files_(files), name_(std::move(name)), json_(Json::parse(files_.at(name_))) {}
  ~Sdsc() { files_[name_] = json_.dump(); }

  Json& root() { return json_.begin().value(); }
  Json& dsc() { return root()["dscs_"][0].begin().value(); }
  Json& node(int tensor) { return dsc()["scheduleTree_"][tensor]; }
  Json& start(int tensor, int core) {
    return node(tensor)["startAddressCoreCorelet_"]["data_"][fmt::format("[{}, 0, 0]", core)];
  }
  Json& tensor(int tensor) { return dsc()["labeledDs_"][tensor]; }

 private:
  Files& files_;
  std::string name_;
  Json json_;
};

void replace(Files& files, const std::string& file, const std::string& from, const std::string& to) {
  std::string& text = files.at(file);
  const size_t at = text.find(from);
  ASSERT_NE(at, std::string::npos) << file << " has no " << from;
  text.replace(at, from.size(), to);
}

/// Swaps two lines of the bundle, found by a part of each.
void swap_lines(Files& files, const std::string& a, const std::string& b) {
  std::string& text = files.at("bundle.mlir");
  const auto line = [&](const std::string& part) {
    const size_t at = text.find(part);
    const size_t begin = text.rfind('\n', at) + 1;
    return std::pair(begin, text.find('\n', at) + 1 - begin);
  };
  const auto [first, first_size] = line(a);
  const auto [second, second_size] = line(b);
  ASSERT_LT(first, second);
  const std::string upper = text.substr(first, first_size), lower = text.substr(second, second_size);
  text.replace(second, second_size, upper);
  text.replace(first, first_size, lower);
}

void drop_line(Files& files, const std::string& part) {
  std::string& text = files.at("bundle.mlir");
  const size_t at = text.find(part);
  ASSERT_NE(at, std::string::npos);
  const size_t begin = text.rfind('\n', at) + 1;
  text.erase(begin, text.find('\n', at) + 1 - begin);
}

struct Mutation {
  std::string name;
  std::string kernel;
  std::function<void(Files&)> apply;
  By by;
  std::optional<Rule> rule = {};  ///< where the checker is to say it
  std::string message = {};       ///< part of a refusal or fault
};
void PrintTo(const Mutation& mutation, std::ostream* out) {
  *out << mutation.name << " in " << mutation.kernel;
}

const std::vector<Mutation>& mutations() {
  static const std::vector<Mutation> kMutations = {
      // ---- addresses
      {"WrongCoreAddress", "abs",
       [](Files& f) {
         Sdsc s(f, "sdsc_0.json");
         s.start(1, 1) = s.start(1, 0);
       },
       By::kChecker, Rule::kCoreStart},
      {"SwappedCoreAddresses", "softmax",
       [](Files& f) {
         Sdsc s(f, "sdsc_4.json");
         std::swap(s.start(2, 0), s.start(2, 1));
       },
       By::kChecker, Rule::kCoreStart},
      {"SwappedSymbolBinding", "softmax",
       [](Files& f) { replace(f, "bundle.mlir", "(%arg_1, %arg_1_core_256)", "(%arg_0, %arg_0_core_256)"); },
       By::kChecker, Rule::kReadOnly},
      {"MisalignedAddress",
       "softmax",
       [](Files& f) {
         replace(f, "bundle.mlir", "%pool_offset_256 = arith.constant 256",
                 "%pool_offset_256 = arith.constant 264");
       },
       By::kFault,
       {},
       "is no multiple of 128"},
      {"MisalignedLxAddress",
       "softmax",
       [](Files& f) {
         Sdsc s(f, "sdsc_3.json");
         s.start(1, 0) = "520";
         s.start(1, 1) = "520";
       },
       By::kReader,
       {},
       "128"},
      {"LxAddressBeyondTheScratchpad",
       "softmax",
       [](Files& f) {
         Sdsc s(f, "sdsc_3.json");
         s.start(1, 0) = s.start(1, 1) = "2097152";
       },
       By::kReader,
       {},
       "sdsc_3.json"},
      {"LxBuffersOverlap", "softmax",
       [](Files& f) {
         {
           Sdsc s(f, "sdsc_3.json");
           s.start(1, 0) = s.start(1, 1) = "384";
         }
         {
           Sdsc s(f, "sdsc_4.json");
           s.start(1, 0) = s.start(1, 1) = "384";
         }
       },
       By::kChecker, Rule::kClobbered},
      {"LxConsumerLooksElsewhere", "softmax",
       [](Files& f) {
         Sdsc s(f, "sdsc_4.json");
         s.start(1, 0) = s.start(1, 1) = "1024";
       },
       By::kChecker, Rule::kUninitialised},
      {"PoolOffsetsOverlap", "layernorm",
       [](Files& f) {
         replace(f, "bundle.mlir", "%pool_offset_512 = arith.constant 512",
                 "%pool_offset_512 = arith.constant 256");
       },
       By::kChecker, Rule::kClobbered},
      {"ShrunkPool", "softmax",
       [](Files& f) { replace(f, "bundle.mlir", "allocate 512 bytes", "allocate 256 bytes"); }, By::kChecker,
       Rule::kOutOfBounds},
      // ---- steps
      {"MissingExecute", "softmax", [](Files& f) { drop_line(f, "sdsc_3.json"); }, By::kChecker,
       Rule::kUninitialised},
      {"MissingLastExecute", "softmax", [](Files& f) { drop_line(f, "sdsc_4.json"); }, By::kChecker,
       Rule::kNotWritten},
      {"ReorderedExecutes", "softmax", [](Files& f) { swap_lines(f, "sdsc_0.json", "sdsc_1.json"); },
       By::kChecker, Rule::kUninitialised},
      {"RepeatedExecuteTooEarly", "softmax", [](Files& f) { swap_lines(f, "sdsc_1.json", "sdsc_2.json"); },
       By::kChecker, Rule::kUninitialised},
      {"LoopBoundTooLarge", "loop",
       [](Files& f) {
         replace(f, "bundle.mlir", "%loop_bound_0 = arith.constant 4", "%loop_bound_0 = arith.constant 5");
       },
       By::kChecker, Rule::kOutOfBounds},
      {"LoopBoundTooSmall", "loop",
       [](Files& f) {
         replace(f, "bundle.mlir", "%loop_bound_0 = arith.constant 4", "%loop_bound_0 = arith.constant 3");
       },
       By::kChecker, Rule::kNotWritten},
      {"LoopAdvancesTooLittle", "loop", [](Files& f) { replace(f, "bundle.mlir", "256*d0", "128*d0"); },
       By::kChecker, Rule::kNotWritten},
      // ---- padding
      {"DroppedMask", "softmax",
       [](Files& f) {
         Sdsc s(f, "sdsc_3.json");
         s.dsc()["coordinateMasking_"] = Json::object();
         s.dsc()["maskingConstId_"] = -1;
         Sdsc e(f, "sdsc_2.json");
         e.dsc()["coordinateMasking_"] = Json::object();
         e.dsc()["maskingConstId_"] = -1;
       },
       By::kChecker, Rule::kPadding},
      {"DroppedMaskOfAMaximum", "softmax",
       [](Files& f) {
         Sdsc s(f, "sdsc_0.json");
         s.dsc()["coordinateMasking_"] = Json::object();
         s.dsc()["maskingConstId_"] = -1;
       },
       By::kChecker, Rule::kPadding},
      {"ShortMask", "softmax",
       [](Files& f) {
         Sdsc s(f, "sdsc_0.json");
         s.dsc()["coordinateMasking_"]["out"][0] = {100, 27};
       },
       By::kChecker, Rule::kPadding},
      {"WrongMaskValue", "softmax",
       [](Files& f) {
         Sdsc s(f, "sdsc_0.json");
         s.dsc()["constantInfo_"]["0"]["data_"]["data_"]["[0, 0, 0]"][0] = "0";
       },
       By::kChecker, Rule::kPadding},
      {"WrongConstantId",
       "softmax",
       [](Files& f) {
         Sdsc s(f, "sdsc_0.json");
         s.dsc()["maskingConstId_"] = 3;
       },
       By::kReader,
       {},
       "maskingConstId_"},
      // ---- layout
      {"WrongGap", "slice",
       [](Files& f) {
         Sdsc s(f, "sdsc_0.json");
         for (auto& [dim, gap] : s.node(0)["backGapCore_"].items()) {
           gap["-1"] = "3";  // rows of 5: no way to cut the 6 that are there
         }
       },
       By::kChecker, Rule::kLayout},
      {"WrongScale", "softmax",
       [](Files& f) {
         Sdsc s(f, "sdsc_1.json");
         s.tensor(0)["scale_"][0] = -1;
       },
       By::kChecker, Rule::kCoreStart},
      {"WrongStick",
       "softmax",
       [](Files& f) {
         Sdsc s(f, "sdsc_1.json");
         for (auto& [name, layout] : s.dsc()["primaryDsInfo_"].items()) {
           layout["stickDimOrder_"] = Json::array({"mb"});
         }
       },
       By::kReader,
       {},
       "stick"},
      {"WrongDimOrder", "softmax",
       [](Files& f) {
         Sdsc s(f, "sdsc_1.json");
         s.node(0)["layoutDimOrder_"] = {"out", "mb"};
       },
       By::kChecker, Rule::kLayout},
      {"WrongExtent",
       "softmax",
       [](Files& f) {
         Sdsc s(f, "sdsc_1.json");
         s.dsc()["N_"]["mb_"] = 2;
       },
       By::kReader,
       {},
       "mb"},
      {"WrongExtentEverywhere", "softmax",
       [](Files& f) {
         Sdsc s(f, "sdsc_4.json");
         s.dsc()["N_"]["mb_"] = 2;
         for (const char* stage : {"ss_", "el_"}) {
           s.dsc()["dataStageParam_"]["0"][stage]["mb_"] = 1;
         }
       },
       By::kChecker, Rule::kLayout},
      {"WrongFormat",
       "softmax",
       [](Files& f) {
         Sdsc s(f, "sdsc_1.json");
         s.tensor(0)["dataFormat_"] = "IEEE_FP32";
       },
       By::kReader,
       {},
       "IEEE_FP32"},
      // ---- division of work
      {"WrongSplitCount",
       "softmax",
       [](Files& f) {
         Sdsc s(f, "sdsc_2.json");
         s.root()["numWkSlicesPerDim_"]["mb"] = 4;
       },
       By::kReader,
       {},
       "numWkSlicesPerDim_"},
      {"ConsumerSplitsOtherwise", "shuffle",
       [](Files& f) {
         drop_line(f, "sdsc_1.json");
         Sdsc s(f, "sdsc_2.json");
         s.start(0, 0) = s.start(0, 1) = "0";
       },
       By::kChecker, Rule::kLayout},
      {"ExchangedSlices", "softmax",
       [](Files& f) {
         Sdsc s(f, "sdsc_2.json");
         std::swap(s.root()["coreIdToWkSlice_"]["0"], s.root()["coreIdToWkSlice_"]["1"]);
       },
       By::kChecker, Rule::kNotHeld},
      {"DuplicatedCoreId",
       "softmax",
       [](Files& f) {
         Sdsc s(f, "sdsc_2.json");
         s.dsc()["coreIdsUsed_"] = {0, 0};
       },
       By::kReader,
       {},
       "core"},
      {"DuplicatedSlice",
       "softmax",
       [](Files& f) {
         Sdsc s(f, "sdsc_4.json");
         s.root()["coreIdToWkSlice_"]["1"] = s.root()["coreIdToWkSlice_"]["0"];
       },
       By::kReader,
       {},
       "slice of another core"},
      {"TwoCoresWriteOneStick", "softmax",
       [](Files& f) {
         Sdsc s(f, "sdsc_4.json");
         s.start(2, 1) = s.start(2, 0);
       },
       By::kChecker, Rule::kSharedStick},
  };
  return kMutations;
}

class MutatedArtifact : public ::testing::TestWithParam<Mutation> {};

TEST_P(MutatedArtifact, IsCaught) {
  const Mutation& mutation = GetParam();
  const Kernel kernel = corpus_kernel(mutation.kernel);
  Files files = write_bundle(kernel).value().files;
  const Files before = files;
  mutation.apply(files);
  ASSERT_NE(files, before);
  const Outcome outcome = run_bundle(kernel, files);
  EXPECT_EQ(outcome.by, mutation.by) << outcome.to_string();
  if (mutation.rule) {
    EXPECT_TRUE(outcome.found(*mutation.rule)) << exec::to_string(*mutation.rule) << " expected, found:\n"
                                               << outcome.to_string();
  } else {
    EXPECT_NE(outcome.message.find(mutation.message), std::string::npos) << outcome.to_string();
  }
}

TEST(MutatedArtifacts, AreTwentyAndMore) {
  EXPECT_GE(mutations().size(), 20u);
}

INSTANTIATE_TEST_SUITE_P(Mutations, MutatedArtifact, ::testing::ValuesIn(mutations()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace spyre
