#include <gmock/gmock.h>

#include <thread>

#include "spyre/base/json.h"
#include "spyre/passes/bundle/cut_bundles.h"
#include "tests/lx/card_run.h"

// A graph in one bundle, in many, on a card of one's own or on a shared one that wipes LX between bundles.
namespace spyre {
namespace {

using lx_test::LoadedKernel;
using testing::Contains;
using testing::HasSubstr;

CompiledGraph compiled(const std::string& name, CompileOptions options) {
  options.cores = 4;
  return compile(lx_test::graph_at(SPYRE_GRAPH_CORPUS "/" + name + ".ir"), options).value();
}

CompileOptions cut(int64_t operations, bool across_bundles) {
  return {.bundle_ops = operations,
          .scratchpad = {.moves = lx::MoveSet::all().where(lx::Move::kCrossBundles, across_bundles)}};
}

constexpr ExecuteOptions kChecked{.check = true};

class Bundles : public ::testing::TestWithParam<std::string> {};

TEST_P(Bundles, ComputeTheSameHoweverTheGraphIsCutAndTheCardShared) {
  const CompiledGraph whole = compiled(GetParam(), {});
  const auto own = lx_test::make_card({.execution = kChecked});
  const LoadedKernel reference(*own, whole);
  const Status one = reference.launch();
  ASSERT_TRUE(one.ok()) << one.error().to_string();
  EXPECT_EQ(reference.programs(), 1u);
  for (const int64_t operations : {1, 3}) {
    for (const bool marks : {true, false}) {
      const CompiledGraph parts = compiled(GetParam(), cut(operations, marks));
      for (const bool wipes : {true, false}) {
        SCOPED_TRACE(testing::Message()
                     << operations << " operations a bundle, marks " << marks << ", wiped " << wipes);
        const auto card =
            lx_test::make_card({.execution = kChecked, .wipes_lx = wipes, .keeps_non_terminal = marks});
        const LoadedKernel kernel(*card, parts);
        const Status done = kernel.launch();
        ASSERT_TRUE(done.ok()) << done.error().to_string();
        EXPECT_EQ(kernel.outputs(), reference.outputs());
        EXPECT_EQ(kernel.programs(), static_cast<size_t>(bundle_count(parts.graph)));
        EXPECT_TRUE(operations > 1 || kernel.programs() > 1);
        if (marks) {
          EXPECT_EQ(kernel.traffic(), reference.traffic()) << "one plan spans all bundles";
        } else {
          EXPECT_GE(kernel.traffic().hbm_read, reference.traffic().hbm_read);
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Corpus, Bundles, ::testing::ValuesIn(lx_test::names_in(SPYRE_GRAPH_CORPUS)),
                         [](const auto& test) { return test.param; });

// A plan that leaves data in LX, on a card that does not keep it.
TEST(Bundles, DataLeftInAWipedScratchpadIsFoundByTheChecker) {
  const CompiledGraph whole = compiled("softmax_columns", {});
  CompiledGraph parts = compiled("softmax_columns", cut(2, true));
  std::string& code = parts.bundle.files.at("spyreCodeDir/spyrecode.json");
  ASSERT_THAT(code, HasSubstr("non_terminal"));

  const auto own = lx_test::make_card({});
  const LoadedKernel reference(*own, whole);
  ASSERT_TRUE(reference.launch().ok());

  // A runtime without support for the mark; then an artifact that has lost it.
  for (const bool supported : {false, true}) {
    if (supported) {
      Json plan = parse_json(code, "spyrecode.json").value();
      for (Json& step : plan["JobExecPlan"]) step["properties"].erase("non_terminal");
      code = plan.dump();
    }
    const CardOptions shared{.wipes_lx = true, .keeps_non_terminal = supported};
    const auto card = lx_test::make_card(shared);
    const LoadedKernel kernel(*card, parts);
    ASSERT_TRUE(kernel.launch().ok()) << "nobody looks";
    EXPECT_NE(kernel.outputs(), reference.outputs()) << "and what comes out is wrong";
    card->set_execution(kChecked);
    const Status found = kernel.launch();
    ASSERT_FALSE(found.ok());
    EXPECT_EQ(found.error().kind, ErrorKind::kDeviceFault);
    EXPECT_THAT(found.error().notes, Contains(HasSubstr("uninitialised")));
  }

  // On a card of one's own the bytes are still there, but nobody promises it: another launch might have run.
  const auto lucky = lx_test::make_card({});
  const LoadedKernel kernel(*lucky, parts);
  ASSERT_TRUE(kernel.launch().ok());
  EXPECT_EQ(kernel.outputs(), reference.outputs());
  lucky->set_execution(kChecked);
  EXPECT_FALSE(kernel.launch().ok());
}

// Two streams that both keep data in LX across bundles. The cores stay with a launch after a non-terminal
// bundle, so each finds its own.
TEST(Bundles, StreamsNeverMeetEachOthersScratchpads) {
  const std::vector<std::string> graphs = {"softmax_columns", "rms_norm_small", "softmax"};
  for (const bool wipes : {false, true}) {
    const auto card = lx_test::make_card({.wipes_lx = wipes});
    std::vector<std::thread> threads;
    for (const std::string& name : graphs) {
      threads.emplace_back([&, name] {
        const CompiledGraph parts = compiled(name, cut(1, true)), whole = compiled(name, {});
        const LoadedKernel kernel(*card, parts), reference(*card, whole);
        const StreamRef stream = card->streams().next(0);
        ASSERT_TRUE(reference.launch(stream).ok());
        const auto expected = reference.outputs();
        for (int i = 0; i < 20; ++i) {
          ASSERT_TRUE(kernel.launch(stream).ok());
          ASSERT_EQ(kernel.outputs(), expected) << name << ", launch " << i;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
}

}  // namespace
}  // namespace spyre
