#include "tests/checker/checked_bundle.h"

namespace spyre {
namespace {

class CheckedCorpus : public ::testing::TestWithParam<std::string> {};

// The other half of every detector: on right programs it is silent. The checker never looks at values, and
// tests/artifacts judges those, so nothing is computed here.
TEST_P(CheckedCorpus, CorrectBundlesAreSilent) {
  const Kernel kernel = corpus_kernel(GetParam());
  const Outcome outcome = run_bundle(kernel, write_bundle(kernel).value().files,
                                     [](const exec::BoundOp&, exec::CardMemory&) { return Status(); });
  EXPECT_EQ(outcome.by, Outcome::By::kNobody) << outcome.to_string();
}

INSTANTIATE_TEST_SUITE_P(Corpus, CheckedCorpus, ::testing::ValuesIn(corpus_names()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace spyre
