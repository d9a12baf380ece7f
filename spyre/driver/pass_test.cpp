#include "spyre/driver/pass.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <set>

#include "spyre/base/file.h"
#include "spyre/base/json.h"

namespace spyre {
namespace {

using testing::HasSubstr;

std::vector<Pass> swapped(size_t first) {
  std::vector<Pass> order(passes().begin(), passes().end());
  std::swap(order[first], order[first + 1]);
  return order;
}

size_t position(std::string_view name) {
  return static_cast<size_t>(find_pass(name) - passes().data());
}

TEST(Passes, NeighboursThatMustNotBeSwappedAreRefused) {
  EXPECT_TRUE(check_order(passes()).ok());
  // These do not care: positions that count are no products, dead code is dead before and after selection and however
  // long loops are, and a bundle is a number of nodes.
  const std::set<std::string_view> free = {"index-by-views", "cut-extents", "eliminate-dead-code",
                                           "divide-work", "cut-bundles"};
  for (size_t i = 0; i + 1 < passes().size(); ++i) {
    EXPECT_EQ(check_order(swapped(i)).ok(), free.contains(passes()[i].name))
        << passes()[i].name << " after " << passes()[i + 1].name;
  }
}

TEST(Passes, RefusalsSayWhy) {
  Error error = check_order(swapped(position("assign-layouts"))).error();
  EXPECT_EQ(error.to_string(),
            "'cut-loops' comes too early: it needs that every buffer has a device layout\n"
            "  note 'assign-layouts' gives that");
  error = check_order(swapped(position("align-divisions"))).error();
  EXPECT_EQ(error.to_string(),
            "'align-divisions' comes too late: divisions are those that suit the scratchpads best already\n"
            "  note 'co-optimize' gives that");
}

TEST(Passes, NothingIsGivenTwiceOrNeededInVain) {
  std::set<Fact> given;
  for (const Pass& pass : passes()) {
    for (const Fact fact : pass.gives) EXPECT_TRUE(given.insert(fact).second) << to_string(fact);
    EXPECT_FALSE(pass.summary.empty()) << pass.name;
  }
  EXPECT_EQ(given.size(), static_cast<size_t>(Fact::kPlaces) + 1);
}

TEST(Passes, AGraphThatIsNotReadyIsRefused) {
  AnyGraph graph = parse_graph(R"(graph g {
    input x : float16[4, 64]
    buffer y : float16[4, 64]
    node y (p0: 4, p1: 64) { v0 = load x[64*p0 + p1] v1 = exp v0 v2 = neg v1 store y[64*p0 + p1] v2 }
    return y
  })")
                       .value();
  EXPECT_THAT(
      run_pass(*find_pass("assign-layouts"), graph, {}).error().to_string(),
      HasSubstr(
          "graph 'g' is not ready for 'assign-layouts', which needs that every node is one operation of "
          "the card: it is as captured\n  note 'select-ops' gives that"));
  ASSERT_TRUE(run_pass(*find_pass("select-ops"), graph, {}).ok());
  EXPECT_THAT(run_pass(*find_pass("divide-work"), graph, {}).error().message,
              HasSubstr("which needs that every buffer has a device layout: buffer 'x' has none"));
}

// Text carries all that passes decide: each pass alone, on text, does what it does in the pipeline.
TEST(Passes, EachRunsAloneOnTheTextThatTheOnesBeforeItLeft) {
  const CompileOptions options{.cores = 4};
  for (const char* name : {"softmax", "attention_small", "fp16_and_floats", "masked_floats"}) {
    const auto path = std::filesystem::path(SPYRE_GRAPH_CORPUS) / (std::string(name) + ".ir");
    const std::string text = read_text(path).value();
    std::vector<std::pair<std::string, std::string>> shown;
    PassLog log([&](std::string_view pass, const AnyGraph& after, bool) {
      shown.emplace_back(pass, to_text(after));
    });
    ASSERT_TRUE(compile(parse_graph(text).value(), options, log).ok());
    std::string before = text;
    for (const auto& [pass, after] : shown) {
      AnyGraph graph = parse_for(*find_pass(pass), before).value();
      const Status done = run_pass(*find_pass(pass), graph, options);
      ASSERT_TRUE(done.ok()) << name << ", " << pass << ": " << done.error().to_string();
      EXPECT_EQ(to_text(graph), after) << name << ", " << pass;
      before = after;
    }
    EXPECT_EQ(shown.size(), passes().size());
  }
}

}  // namespace
}  // namespace spyre
