#include "spyre/runtime/profile_facts.h"

#include <gtest/gtest.h>

#include "spyre/runtime/runtime.h"
#include "spyre/runtime/test_kernel.h"

namespace spyre {
namespace {

class ProfileFacts : public testing::Test {
 protected:
  ~ProfileFacts() override { (void)ActivityLog::instance().stop(); }

  void launch_once(const JobPlanRef& plan) {
    ASSERT_OK(launch(plan, {x_, y_}, card_.streams().default_stream(), Blocking::kYes));
  }
  JobPlanRef prepared(const TestKernel& kernel) {
    directories_.push_back(std::make_unique<KernelDirectory>(kernel));
    return prepare_kernel(card_, directories_.back()->path()).value();
  }
  Json facts() {
    return profile_facts("run", ActivityLog::instance().stop(), [](const ProgramRun&) {
      return KernelOrigins{.by_file = {{"sdsc_0.json", {.aten = "aten.neg", .source = "model.py:3"}}},
                           .modules = "layers.0",
                           .artifact = ""};
    });
  }

  Runtime runtime_{toy_card()};
  Card& card_ = *runtime_.card(0).value();
  LaunchTensor x_ = tensor_of(card_, eighths(512)), y_ = tensor_of(card_, std::vector<float>(512));
  std::vector<std::unique_ptr<KernelDirectory>> directories_;
};

std::vector<Json> of_kind(const Json& facts, const std::string& kind) {
  std::vector<Json> items;
  for (const Json& item : facts["items"]) {
    if (item["kind"] == kind) items.push_back(item);
  }
  return items;
}

double sum_of(const Json& object) {
  double sum = 0;
  for (const auto& [name, value] : object.items())
    sum += (value.is_object() ? value["us"] : value).get<double>();
  return sum;
}

TEST_F(ProfileFacts, LaunchesOfOneKernelAreOneItemAndSumsAddUp) {
  const JobPlanRef neg = prepared(unary_kernel("neg", 8)), exp = prepared(unary_kernel("exp", 2));
  ActivityLog::instance().start();
  launch_once(neg);
  launch_once(exp);
  launch_once(neg);
  (void)values_of(card_, y_);
  const Json all = facts();
  const std::vector<Json> kernels = of_kind(all, "kernel");
  ASSERT_EQ(kernels.size(), 2u) << all["items"];
  EXPECT_EQ(kernels[0]["count"], 2);
  EXPECT_EQ(kernels[0]["read_bytes"], 2 * 8 * 128);
  EXPECT_EQ(kernels[0]["aten"], "aten.neg");
  EXPECT_EQ(kernels[0]["source"], "model.py:3");
  EXPECT_EQ(kernels[0]["modules"], "layers.0");
  const std::vector<Json> copies = of_kind(all, "copy");
  ASSERT_FALSE(copies.empty());
  EXPECT_EQ(copies.back()["read_bytes"], 1024);
  const double total = all["totals"]["total_us"];
  EXPECT_GT(total, 0);
  EXPECT_NEAR(sum_of(all["bound"]["us"]), total, 1e-9 * total);
  EXPECT_NEAR(sum_of(all["waterfall"]), total, 1e-9 * total);
  EXPECT_EQ(all["totals"]["launches"], 3);
}

TEST_F(ProfileFacts, TheLongestKernelsAreThereWhole) {
  const JobPlanRef small = prepared(unary_kernel("neg", 1)), large = prepared(unary_kernel("neg", 8));
  ActivityLog::instance().start();
  launch_once(small);
  launch_once(large);
  const Json all = facts();
  ASSERT_EQ(all["programs"].size(), 2u);
  const std::vector<Json> kernels = of_kind(all, "kernel");
  ASSERT_EQ(kernels.size(), 2u);
  EXPECT_EQ(kernels[1]["program"], 0);
  EXPECT_EQ(kernels[0]["program"], 1);
  const Json& longest = all["programs"][0];
  EXPECT_EQ(longest["kind"], "program");
  EXPECT_FALSE(longest["rows"].empty());
  EXPECT_NEAR(longest["totals"]["kernel_us"].get<double>(), kernels[1]["us"].get<double>(), 1e-9);
}

TEST_F(ProfileFacts, ARowForEachStreamWithoutOverlap) {
  const JobPlanRef neg = prepared(unary_kernel("neg", 8));
  ActivityLog::instance().start();
  for (int i = 0; i < 5; ++i) launch_once(neg);
  const StreamRef other = card_.streams().next(0);
  ASSERT_OK(launch(neg, {x_, y_}, other, Blocking::kYes));
  const Json all = facts();
  ASSERT_EQ(all["rows"].size(), 2u);
  EXPECT_EQ(all["rows"][0]["name"], "stream 0");
  for (const Json& row : all["rows"]) {
    const Json& slices = row["slices"];
    int64_t at = 0;
    size_t kernels = 0;
    for (size_t i = 0; i < slices.size(); i += 4) {
      EXPECT_GE(slices[i + 2].get<int64_t>(), at);
      at = slices[i + 2].get<int64_t>() + slices[i + 3].get<int64_t>();
      kernels += all["items"][slices[i + 1].get<size_t>()]["kind"] == "kernel";
    }
    EXPECT_EQ(kernels, row["name"] == "stream 0" ? 5u : 1u);
  }
}

TEST_F(ProfileFacts, NothingTakesNoTime) {
  ActivityLog::instance().start();
  const Json all = facts();
  EXPECT_EQ(all["totals"]["total_us"], 0.0);
  EXPECT_TRUE(all["items"].empty());
}

}  // namespace
}  // namespace spyre
