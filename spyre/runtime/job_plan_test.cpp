#include "spyre/runtime/job_plan.h"

#include <gmock/gmock.h>

#include "spyre/base/json.h"
#include "spyre/runtime/runtime.h"
#include "spyre/runtime/test_kernel.h"

namespace spyre {
namespace {

using testing::HasSubstr;

class PrepareKernel : public testing::Test {
 protected:
  Card& card() { return *runtime_.card(0).value(); }
  std::string error_of(const std::filesystem::path& path) {
    const auto plan = prepare_kernel(card(), path);
    return plan.ok() ? "prepared without error" : plan.error().message;
  }

 private:
  Runtime runtime_{toy_card(), Fence::kStrict};
};

TEST_F(PrepareKernel, TakesOneProgramRegionAndFillsItInStreamOrder) {
  const TestKernel kernel = unary_kernel("neg");
  const KernelDirectory directory(kernel);
  const auto size = static_cast<int64_t>(kernel.image().size());
  Gate gate;
  ASSERT_OK(card().streams().default_stream()->enqueue(gate.work()));
  {
    const auto plan = prepare_kernel(card(), directory.path());  // returns although the stream is held
    ASSERT_OK(plan);
    EXPECT_EQ(plan.value()->job_allocation_size(), Bytes(size));
    EXPECT_EQ(plan.value()->pinned_buffers(), 1u);
    EXPECT_EQ(plan.value()->steps().size(), 3u);
    EXPECT_EQ(card().allocator().info().programs, round_up(Bytes(size), kAllocationGranularity));
    EXPECT_EQ(card().allocator().stats().allocation.current, 0) << "programs are no tensors";
    gate.open();
    ASSERT_OK(card().synchronize());
  }
  EXPECT_EQ(card().allocator().info().programs, Bytes(0));
}

TEST_F(PrepareKernel, NamesStepsAfterTheirDirectory) {
  const KernelDirectory directory(unary_kernel("neg"));
  const auto plan = prepare_kernel(card(), directory.path()).value();
  EXPECT_EQ(plan->step_name(2), "kernel/spyreCodeDir/bundle.mlir#2");
  const auto slashed = prepare_kernel(card(), directory.path().string() + "/").value();
  EXPECT_EQ(slashed->step_name(2), "kernel/spyreCodeDir/bundle.mlir#2");
  const auto named = prepare_kernel(card(), directory.path(), {.kernel_name = "mine"}).value();
  EXPECT_EQ(named->step_name(0), "mine#0");
}

TEST_F(PrepareKernel, AStepKeepsTheNameItsCommandGives) {
  const TestKernel kernel = unary_kernel("neg");
  Json plan = kernel.plan();
  plan["JobExecPlan"][2]["properties"]["name"] = "fused_neg";
  const KernelDirectory directory(plan, kernel.image());
  EXPECT_EQ(prepare_kernel(card(), directory.path()).value()->step_name(2), "fused_neg");
}

TEST_F(PrepareKernel, NamesWhatIsMissing) {
  EXPECT_EQ(error_of("/no/such/kernel"), "SpyreCode directory /no/such/kernel does not exist");
  const KernelDirectory directory(unary_kernel("neg"));
  std::filesystem::remove(directory.path() / "init_binary.bin");
  EXPECT_THAT(error_of(directory.path()), HasSubstr("init_binary.bin"));
  std::filesystem::remove(directory.path() / "spyrecode.json");
  EXPECT_THAT(error_of(directory.path()), HasSubstr("spyrecode.json"));
  ASSERT_OK(write_text(directory.path() / "spyrecode.json", "{\"JobPrep"));
  EXPECT_EQ(prepare_kernel(card(), directory.path()).error().kind, ErrorKind::kParse);
}

TEST_F(PrepareKernel, ABinaryHasTheSizeThePlanSays) {
  const TestKernel kernel = unary_kernel("neg");
  const KernelDirectory directory(kernel.plan(), kernel.image() + "x");
  EXPECT_THAT(error_of(directory.path()), HasSubstr("init_binary.bin: found"));
  EXPECT_EQ(card().allocator().info().programs, Bytes(0));
}

TEST_F(PrepareKernel, AProgramLargerThanItsSegmentDoesNotFit) {
  const TestKernel kernel = unary_kernel("neg");
  Json plan = kernel.plan();
  plan["JobPreparationPlan"][0]["properties"]["size"] = std::to_string(2 << 20);
  const KernelDirectory directory(plan, kernel.image());
  EXPECT_EQ(prepare_kernel(card(), directory.path()).error().kind, ErrorKind::kOutOfMemory);
}

TEST_F(PrepareKernel, ALaunchSpecOfANewerVersionIsRefused) {
  const KernelDirectory directory(unary_kernel("neg"));
  ASSERT_OK(write_text(directory.path() / "launch_spec.json", R"({"version": 2, "args": []})"));
  EXPECT_EQ(prepare_kernel(card(), directory.path()).error().kind, ErrorKind::kUnsupported);
}

}  // namespace
}  // namespace spyre
