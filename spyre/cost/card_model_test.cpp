#include "spyre/cost/card_model.h"

#include <gtest/gtest.h>

namespace spyre {
namespace {

std::string refusal(std::string_view text) {
  const auto model = read_card_model(text, "card.json");
  return model.ok() ? "" : model.error().message;
}

TEST(CardModel, ChangesAPreset) {
  const CardModel model =
      read_card_model(R"({"name": "wide", "machine": {"cores": 64, "lx_per_core": 4194304},
                                              "times": {"memory": 2, "launch": 4}, "rates": {"ring": 7}})",
                      "card.json")
          .value();
  EXPECT_EQ(model.name, "wide");
  EXPECT_EQ(model.machine.cores, 64);
  EXPECT_EQ(model.machine.lx_per_core, mebibytes(4));
  EXPECT_EQ(model.machine.segments, spyre_card().segments);
  EXPECT_EQ(model.rates.hbm_one_way, 2 * fitted_rates().hbm_one_way);
  EXPECT_EQ(model.rates.turnaround, fitted_rates().turnaround / 2);
  EXPECT_EQ(model.rates.launch, fitted_rates().launch / 4);
  EXPECT_EQ(model.rates.mac_sustained, fitted_rates().mac_sustained);
  EXPECT_EQ(model.rates.ring, 7);
}

TEST(CardModel, NothingSaidIsTheSpyreCard) {
  const CardModel model = read_card_model("{}", "card.json").value();
  EXPECT_EQ(model.machine, spyre_card());
  EXPECT_EQ(model.rates.hbm_one_way, fitted_rates().hbm_one_way);
}

TEST(CardModel, SaysWhatItDoesNotKnow) {
  EXPECT_EQ(refusal(R"({"core": 3})"),
            "card.json: found the name 'core', allowed: like, name, machine, times, rates");
  EXPECT_EQ(refusal(R"({"machine": {"segments": 3}})"),
            "card.json: machine: found the name 'segments', allowed: cores, lx_per_core");
  EXPECT_EQ(refusal(R"({"times": {"memory": 0}})"),
            "card.json: times: memory: found 0, allowed: a number above 0");
  EXPECT_EQ(refusal(R"({"rates": {"ring": "fast"}})"),
            "card.json: rates: ring: found \"fast\", allowed: a number above 0");
  EXPECT_EQ(refusal(R"({"machine": {"cores": 2.5}})"),
            "card.json: machine: cores: found 2.5, allowed: a whole number");
  EXPECT_EQ(refusal(R"({"like": "gpu"})"), "card.json: like: found 'gpu', allowed: spyre, toy");
  EXPECT_EQ(refusal(R"({"name": 3})"), "card.json: name: found number, allowed: a string");
  EXPECT_EQ(refusal("[]"), "card.json: found array, allowed: an object");
  EXPECT_NE(refusal("{"), "");
}

}  // namespace
}  // namespace spyre
