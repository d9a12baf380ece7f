#include "spyre/lx/plan.h"

#include <gmock/gmock.h>

#include "spyre/base/json.h"

namespace spyre::lx {
namespace {

Plan two_buffers() {
  Plan plan{.capacity = Bytes(1024), .solver = "greedy", .optimal = true, .nodes = {"p", "q", "r"}};
  plan.entries = {{.buffer = "a", .per_core = Bytes(256), .address = Bytes(128), .saves = Bytes(700)},
                  {.buffer = "b", .per_core = Bytes(512), .reason = "capacity", .saves = Bytes(900)}};
  return plan;
}

TEST(Plan, AddsUpWhatIsPlaced) {
  const Plan plan = two_buffers();
  EXPECT_EQ(plan.saved(), Bytes(700));
  EXPECT_EQ(plan.peak(), Bytes(384));
  EXPECT_EQ(plan.most_saved(), plan.saved()) << "proven best";
}

TEST(Plan, JsonSpeaksOfNodesByName) {
  Plan plan = two_buffers();
  plan.entries[0].made_by = {0};
  plan.entries[0].read_by = {1, 2};
  plan.entries[0].evicted_after = 1;
  plan.entries[0].copied_out = true;
  plan.entries[0].pays = Bytes(256);
  const Json facts = plan.to_json();
  EXPECT_EQ(facts["saved"], 700);
  EXPECT_EQ(facts["buffers"][0]["place"], "lx");
  EXPECT_EQ(facts["buffers"][0]["read_by"], Json({"q", "r"}));
  EXPECT_EQ(facts["buffers"][0]["evicted_after"], "q");
  EXPECT_EQ(facts["buffers"][0]["remark"], "copied out, evicted after q, costs 256 B, saves 700 B");
  EXPECT_EQ(facts["buffers"][1]["place"], "hbm");
  EXPECT_EQ(facts["buffers"][1]["remark"], "capacity");
}

}  // namespace
}  // namespace spyre::lx
