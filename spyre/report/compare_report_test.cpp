#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "spyre/base/json.h"
#include "spyre/report/compare_facts.h"
#include "spyre/report/compare_page.h"

namespace spyre::report {
namespace {

using testing::HasSubstr;

/// One module of one operator, which is wrong.
Json one_operator() {
  return Json::parse(R"({
    "facts": "spyre-compare", "version": 1, "model": "Net", "reference": "cpu-fp32", "mode": "eager", "ok": false,
    "answer": "first operator out of bound: aten.silu.default </script> in mlp", "held_bytes": 4096, "weights": [],
    "modules": [{"path": "mlp", "kind": "MLP", "shape": [2, 3], "dtype": "float16", "accumulated": 0.5, "rounding": 0.001,
                 "bound": 0.02, "own": null, "own_bound": null, "out": true, "first": 0, "last": 1}],
    "operators": [{"operator": "aten.silu.default", "module": "mlp", "kernel": "", "source": "net.py:7", "shape": [2, 3],
                   "dtype": "float16", "judged": true, "out": true, "error": null, "bound": 0.01, "index": [1, 2],
                   "card": null, "reference": 3.5, "accumulated": 0.5, "rounding": 0.001, "note": ""}],
    "notes": []})");
}

TEST(ComparePage, CarriesItsFactsAndEndsNoScript) {
  const Json facts = one_operator();
  ASSERT_TRUE(check_comparison(facts, "test").ok());
  const std::string page = compare_page(facts);
  EXPECT_THAT(page, HasSubstr("<title>Net: which layer lost the digits</title>"));
  EXPECT_THAT(page, HasSubstr(R"("source":"net.py:7")"));
  EXPECT_THAT(page, HasSubstr(R"(aten.silu.default \u003c/script>)"));
}

TEST(CompareFacts, RefuseWhatIsSomethingElse) {
  Json facts = one_operator();
  facts["operators"][0]["bound"] = "wide";
  EXPECT_THAT(check_comparison(facts, "kept.json").error().message, HasSubstr("operators[0].bound"));
  facts = one_operator();
  facts["version"] = 2;
  EXPECT_THAT(check_comparison(facts, "kept.json").error().message, HasSubstr("of version 1"));
}

}  // namespace
}  // namespace spyre::report
