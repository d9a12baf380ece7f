#include "spyre/runtime/launch.h"

#include <gmock/gmock.h>

#include <thread>

#include "spyre/base/json.h"
#include "spyre/device/lx.h"
#include "spyre/device/timing/simulate.h"
#include "spyre/runtime/metrics.h"
#include "spyre/runtime/runtime.h"
#include "spyre/runtime/test_kernel.h"

namespace spyre {
namespace {

using testing::Each;
using testing::Eq;
using testing::HasSubstr;

/// Past every tensor of these tests, inside the card's memory.
constexpr int64_t kFarAway = 1 << 16;

class Launch : public testing::Test {
 protected:
  Card& card(int index = 0) { return *runtime_.card(index).value(); }
  StreamRef stream() { return card().streams().default_stream(); }
  JobPlanRef prepare(const TestKernel& kernel, int device = 0) {
    directories_.push_back(std::make_unique<KernelDirectory>(kernel));
    auto plan = prepare_kernel(card(device), directories_.back()->path());
    EXPECT_OK(plan);
    return std::move(plan).value();
  }
  LaunchTensor zeros(size_t n = 128, int device = 0) {
    return tensor_of(card(device), std::vector<float>(n, 0.0f));
  }
  Status run(const JobPlanRef& plan, std::vector<LaunchTensor> tensors, Blocking blocking = Blocking::kYes) {
    return launch(plan, std::move(tensors), plan->card().streams().default_stream(), blocking);
  }

 private:
  ScopedEnvironment world_{"AIU_WORLD_SIZE", "2"};
  Runtime runtime_{toy_card(), Fence::kStrict};
  std::vector<std::unique_ptr<KernelDirectory>> directories_;
};

TEST_F(Launch, ComputesOnTheCard) {
  const JobPlanRef plan = prepare(unary_kernel("neg"));
  const LaunchTensor x = tensor_of(card(), eighths(128)), y = zeros();
  ASSERT_OK(run(plan, {x, y}));
  EXPECT_EQ(values_of(card(), y), eighths(128, -1));
  EXPECT_EQ(values_of(card(), x), eighths(128));
}

TEST_F(Launch, EachLaunchBindsItsOwnTensors) {
  const JobPlanRef plan = prepare(unary_kernel("neg"));
  const LaunchTensor a = tensor_of(card(), eighths(128)), b = zeros(), c = zeros();
  ASSERT_OK(run(plan, {a, b}));
  ASSERT_OK(run(plan, {b, c}));
  EXPECT_EQ(values_of(card(), c), eighths(128));
}

TEST_F(Launch, QueuedLaunchesRunInTheOrderGiven) {
  // x -> neg -> y -> abs -> x -> neg -> y: any other order leaves another sign somewhere.
  const JobPlanRef neg = prepare(unary_kernel("neg")), abs = prepare(unary_kernel("abs"));
  const LaunchTensor x = tensor_of(card(), eighths(128)), y = zeros();
  Gate gate;
  ASSERT_OK(stream()->enqueue(gate.work()));
  ASSERT_OK(run(neg, {x, y}, Blocking::kNo));
  ASSERT_OK(run(abs, {y, x}, Blocking::kNo));
  ASSERT_OK(run(neg, {x, y}, Blocking::kNo));
  gate.open();
  ASSERT_OK(stream()->synchronize());
  EXPECT_EQ(values_of(card(), x), eighths(128));
  EXPECT_EQ(values_of(card(), y), eighths(128, -1));
}

TEST_F(Launch, AQueuedLaunchKeepsItsPlanAndTensorsAlive) {
  const LaunchTensor y = zeros();
  Gate gate;
  ASSERT_OK(stream()->enqueue(gate.work()));
  {
    const JobPlanRef plan = prepare(unary_kernel("neg"));
    // The tensor's bytes come by another stream, this one being held.
    LaunchTensor x = {card().allocate(Bytes(256)).value(), {}};
    const std::vector<std::byte> ones(256, std::byte{0});
    ASSERT_OK(copy_in(card().streams().next(0), MemoryView::whole(x.memory), ones, Blocking::kYes));
    ASSERT_OK(run(plan, {x, y}, Blocking::kNo));
  }
  gate.open();
  ASSERT_OK(card().synchronize());
  EXPECT_THAT(values_of(card(), y), Each(Eq(0.0f)));
}

TEST_F(Launch, AnArgumentWithoutMemoryIsRefusedBeforeAnythingRuns) {
  const JobPlanRef plan = prepare(unary_kernel("neg"));
  const LaunchTensor x = tensor_of(card(), eighths(128));
  for (const Blocking blocking : {Blocking::kYes, Blocking::kNo}) {
    const Status status = run(plan, {x, LaunchTensor{}}, blocking);
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().kind, ErrorKind::kInvalidArgument);
    EXPECT_THAT(status.error().message, HasSubstr("argument 1 has no memory"));
  }
  EXPECT_OK(stream()->synchronize());
  EXPECT_EQ(values_of(card(), x), eighths(128));
}

TEST_F(Launch, OnAnotherStreamItWaitsForTheProgram) {
  Gate gate;
  ASSERT_OK(stream()->enqueue(gate.work()));
  const JobPlanRef plan = prepare(unary_kernel("neg"));  // its copy waits behind the gate
  const StreamRef other = card().streams().next(0);
  const MemoryRef x = card().allocate(Bytes(256)).value(), y = card().allocate(Bytes(256)).value();
  ASSERT_OK(launch(plan, {{x, {}}, {y, {}}}, other, Blocking::kNo));
  EXPECT_FALSE(other->query().value());
  gate.open();
  EXPECT_OK(other->synchronize());
}

TEST_F(Launch, StreamsOfOneCardShareItsCoresAndOnePlan) {
  const JobPlanRef plan = prepare(unary_kernel("neg")), other = prepare(unary_kernel("abs"));
  const LaunchTensor x = tensor_of(card(), eighths(128, -1));
  std::vector<LaunchTensor> outs;
  for (int i = 0; i < 24; ++i) {
    outs.push_back(zeros());
  }
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      const StreamRef mine = card().streams().next(0);
      for (int i = t; i < 24; i += 4) {
        EXPECT_OK(launch(i % 2 == 0 ? plan : other, {x, outs[static_cast<size_t>(i)]}, mine,
                         i % 3 == 0 ? Blocking::kYes : Blocking::kNo));
      }
      EXPECT_OK(mine->synchronize());
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  for (const LaunchTensor& out : outs) {
    EXPECT_EQ(values_of(card(), out), eighths(128));
  }
}

TEST_F(Launch, TheBundlesPoolIsNobodyElses) {
  TestKernel kernel = unary_kernel("neg");
  kernel.files["bundle.mlir"] = bundle_of("    %pool = sdscbundle.device_mem_allocate 256 bytes : index\n" +
                                          execute_text("%x, %pool") + execute_text("%pool, %y"));
  const JobPlanRef plan = prepare(kernel);
  const LaunchTensor x = tensor_of(card(), eighths(128)), y = zeros();
  ASSERT_OK(run(plan, {x, y}));
  EXPECT_EQ(values_of(card(), y), eighths(128));
  EXPECT_EQ(card().allocator().stats().allocation.current, 2) << "only the tensors";
}

TEST_F(Launch, ExtentsComeFromTheShapesOfTheTensors) {
  TestKernel kernel = unary_kernel("neg", 8);
  artifacts::OpSpec op = unary_op("neg", 8);
  op.extent_symbols = {{"mb", -1}};
  kernel.files["sdsc_0.json"] = artifacts::write_sdsc(op).dump();
  kernel.files["bundle.mlir"] = bundle_of(
      "    %n = sdscbundle.input_arg_extract value from %sym_0_0_base : !sdscbundle.input_arg<index, "
      "granularity=2, max_value=8> -> index\n" +
          execute_text("%n, %x, %y", "sdsc_0.json", "-1, -2, -3"),
      ", %sym_0_0_base: !sdscbundle.input_arg<index, granularity=2, max_value=8>");
  kernel.parameters.push_back({{"kind", "dimension"},
                               {"arg_index", 0},
                               {"dim_index", 0},
                               {"symbol", "s0"},
                               {"granularity", 2},
                               {"max_value", 8}});
  const JobPlanRef plan = prepare(kernel);
  LaunchTensor x = tensor_of(card(), eighths(8 * 64), {4, 64});
  const LaunchTensor y = zeros(8 * 64);
  ASSERT_OK(run(plan, {x, y}));
  const std::vector<float> out = values_of(card(), y);
  EXPECT_EQ(out[4 * 64 - 1], -eighths(8 * 64)[4 * 64 - 1]);
  EXPECT_EQ(out[4 * 64 + 1], 0.0f) << "rows past the launch's extent stay";

  x.shape = {3, 64};
  EXPECT_THAT(run(plan, {x, y}).error().message,
              HasSubstr("s0, dimension 0 of argument 0: found 3, allowed: multiples of 2 up to 8"));
  x.shape = {10, 64};
  EXPECT_THAT(run(plan, {x, y}).error().message, HasSubstr("found 10"));
  x.shape = {};
  EXPECT_THAT(run(plan, {x, y}).error().message, HasSubstr("has 0 dimensions"));
  EXPECT_OK(stream()->synchronize());  // refusals do not poison
}

TEST_F(Launch, BakedAddressesSeeEachTensorInASegmentOfItsOwn) {
  artifacts::OpSpec op = unary_op("neg", 2);
  op.symbolic = false;
  op.tensors[0].base = 0;
  op.tensors[1].base = toy_card().segment_bytes.count();
  TestKernel kernel{.files = {{"sdsc_0.json", artifacts::write_sdsc(op).dump()}}, .correction = 0};
  const JobPlanRef plan = prepare(kernel);
  EXPECT_EQ(plan->steps().size(), 1u);
  const LaunchTensor x = tensor_of(card(), eighths(128)), y = zeros();
  ASSERT_OK(run(plan, {x, y}));
  EXPECT_EQ(values_of(card(), y), eighths(128, -1));
}

TEST_F(Launch, TensorsOfAGappedNumberingAreFoundByTheLaunchSpec) {
  TestKernel kernel = unary_kernel("neg");
  kernel.parameters = {kernel_parameter(3), kernel_parameter(7)};
  const KernelDirectory directory(kernel);
  ASSERT_OK(write_text(directory.path() / "launch_spec.json",
                       R"({"version": 1, "args": [{"arg_index": 7}, {"arg_index": 3}]})"));
  const JobPlanRef plan = prepare_kernel(card(), directory.path()).value();
  const LaunchTensor x = tensor_of(card(), eighths(128)), y = zeros();
  ASSERT_OK(run(plan, {x, y}));
  EXPECT_EQ(values_of(card(), y), eighths(128, -1));
}

TEST_F(Launch, WithoutParametersTheBlobIsTheAddresses) {
  const TestKernel kernel = unary_kernel("neg");
  Json plan = kernel.plan();
  plan["JobExecPlan"][0]["properties"]["hcm"]["vdci"] = Json::object();
  const KernelDirectory directory(plan, kernel.image());
  const JobPlanRef prepared = prepare_kernel(card(), directory.path()).value();
  const LaunchTensor x = tensor_of(card(), eighths(128)), y = zeros();
  ASSERT_OK(run(prepared, {x, y}));
  EXPECT_EQ(values_of(card(), y), eighths(128, -1));
  EXPECT_THAT(run(prepared, std::vector<LaunchTensor>(17, x)).error().message, HasSubstr("allowed: 16"));
}

// ---- refused before anything is queued

TEST_F(Launch, AWrongNumberOfTensorsIsRefused) {
  const JobPlanRef plan = prepare(unary_kernel("neg"));
  EXPECT_THAT(run(plan, {zeros()}).error().message, HasSubstr("found 1 arguments, allowed: at least 2"));
  const TestKernel kernel = unary_kernel("neg");
  Json strict = kernel.plan();
  strict["JobExecPlan"][0]["properties"]["ishape"][0] = "2";
  const KernelDirectory directory(strict, kernel.image());
  const JobPlanRef counted = prepare_kernel(card(), directory.path()).value();
  EXPECT_THAT(run(counted, {zeros(), zeros(), zeros()}).error().message,
              HasSubstr("found 3 arguments, allowed: 2"));
}

TEST_F(Launch, AHostComputeOfABufferIsRefused) {
  const TestKernel kernel = unary_kernel("neg");
  Json plan = kernel.plan();
  Json second = plan["JobExecPlan"][0];
  second["properties"]["ihandle"] = "correction0";
  second["properties"]["ohandle"] = "correction1";
  plan["JobExecPlan"].insert(plan["JobExecPlan"].begin() + 1, second);
  const KernelDirectory directory(plan, kernel.image());
  const JobPlanRef prepared = prepare_kernel(card(), directory.path()).value();
  EXPECT_EQ(run(prepared, {zeros(), zeros()}).error().kind, ErrorKind::kUnsupported);
}

TEST_F(Launch, AProgramThatNeverReachedTheCardIsNotRun) {
  const JobPlanRef bad = prepare(stray_kernel(kFarAway));
  const LaunchTensor x = zeros(), y = zeros();
  Gate gate;
  ASSERT_OK(stream()->enqueue(gate.work()));
  ASSERT_OK(run(bad, {x, y}, Blocking::kNo));
  const JobPlanRef late = prepare(unary_kernel("neg"));  // queued behind the fault: its copy is dropped
  gate.open();
  EXPECT_FALSE(stream()->synchronize().ok());
  ASSERT_OK(stream()->reset());
  const Status refused = run(late, {x, y});
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().notes, testing::Contains(HasSubstr("was never loaded")));
  EXPECT_OK(stream()->synchronize());
}

TEST_F(Launch, AKernelThatWantsItsPoolIsPassedOne) {
  TestKernel kernel = unary_kernel("neg");
  kernel.parameters = {{{"kind", "pool"}}, kernel_parameter(0)};
  const JobPlanRef plan = prepare(kernel);
  EXPECT_THAT(run(plan, {}).error().message, HasSubstr("takes its pool as first argument"));
  EXPECT_THAT(run(plan, {zeros()}).error().message, HasSubstr("allowed: at least 2"));
  const LaunchTensor x = tensor_of(card(), eighths(128)), y = zeros();
  ASSERT_OK(run(plan, {x, y}));  // the pool's address is the first parameter: %x
  EXPECT_EQ(values_of(card(), y), eighths(128, -1));
}

TEST_F(Launch, TensorsAndStreamsAreOfTheKernelsCard) {
  const JobPlanRef plan = prepare(unary_kernel("neg"));
  EXPECT_THAT(run(plan, {zeros(), zeros(128, 1)}).error().message,
              HasSubstr("argument 1 is on device 1, the kernel on device 0"));
  EXPECT_THAT(
      launch(plan, {zeros(), zeros()}, card(1).streams().default_stream(), Blocking::kYes).error().message,
      HasSubstr("stream 0 is of device 1"));
}

TEST_F(Launch, FreedMemoryIsRefused) {
  const JobPlanRef plan = prepare(unary_kernel("neg"));
  const LaunchTensor x = zeros(), y = zeros();
  y.memory->release();
  EXPECT_EQ(run(plan, {x, y}).error().kind, ErrorKind::kUseAfterFree);
}

// ---- faults

TEST_F(Launch, AStrayProgramFaultsWithCoreAddressAndInstruction) {
  const JobPlanRef plan = prepare(stray_kernel(kFarAway));
  const LaunchTensor x = zeros(), y = zeros();
  const Status fault = run(plan, {x, y});
  ASSERT_FALSE(fault.ok());
  EXPECT_EQ(fault.error().kind, ErrorKind::kDeviceFault);
  const std::string address = fmt::format("{:#x}", x.memory->address().value() + kFarAway);
  EXPECT_THAT(fault.error().message, HasSubstr("core 0, address " + address));
  EXPECT_THAT(fault.error().message, HasSubstr("sdsc_0.json (neg), instruction 0"));
  EXPECT_THAT(fault.error().notes, testing::Contains(HasSubstr("bundle.mlir#2 on stream 0 of device 0")));
}

TEST_F(Launch, AFaultPoisonsItsStreamUntilReset) {
  const JobPlanRef bad = prepare(stray_kernel(kFarAway)), good = prepare(unary_kernel("neg"));
  const LaunchTensor x = tensor_of(card(), eighths(128)), y = zeros();
  ASSERT_OK(run(bad, {x, y}, Blocking::kNo));
  EXPECT_EQ(stream()->synchronize().error().kind, ErrorKind::kDeviceFault);
  EXPECT_EQ(run(good, {x, y}).error().kind, ErrorKind::kDeviceFault) << "the stream answers its first error";
  ASSERT_OK(stream()->reset());
  ASSERT_OK(run(good, {x, y}));
  EXPECT_EQ(values_of(card(), y), eighths(128, -1));
}

TEST_F(Launch, AFaultStaysOnItsStreamAndCard) {
  const JobPlanRef bad = prepare(stray_kernel(kFarAway));
  const JobPlanRef here = prepare(unary_kernel("neg")), there = prepare(unary_kernel("neg"), 1);
  const LaunchTensor x = tensor_of(card(), eighths(128)), y = zeros();
  const LaunchTensor x1 = tensor_of(card(1), eighths(128)), y1 = zeros(128, 1);
  EXPECT_FALSE(run(bad, {x, y}).ok());
  EXPECT_OK(launch(here, {x, y}, card().streams().next(0), Blocking::kYes));
  EXPECT_OK(run(there, {x1, y1}));
  EXPECT_EQ(values_of(card(1), y1), eighths(128, -1));
  EXPECT_OK(card(1).synchronize());
  EXPECT_FALSE(card().synchronize().ok());
}

TEST_F(Launch, AFaultLeavesAllOtherDataAsItWas) {
  // X reaches 64 elements further than it may: into its neighbour, were that mapped. And the stray write
  // would land in the next one.
  const LaunchTensor x = zeros(), neighbour = tensor_of(card(), eighths(128)), y = zeros();
  TestKernel kernel = unary_kernel("neg");
  kernel.files["bundle.mlir"] = bundle_of(
      "    %o = arith.constant 256 : index\n    %z = arith.addi %x, %o : index\n" + execute_text("%y, %z"));
  const JobPlanRef plan = prepare(kernel);
  ASSERT_EQ(neighbour.memory->address(), x.memory->address() + Bytes(256));
  const Status fault = run(plan, {x, y});
  EXPECT_THAT(fault.error().message, HasSubstr("writing the result"));
  EXPECT_EQ(values_of(card(), neighbour), eighths(128));
}

TEST_F(Launch, AnImageThatIsNoProgramFaultsWhenItIsFetched) {
  const TestKernel kernel = unary_kernel("neg");
  std::string image = kernel.image();
  image[128] = 'X';
  const KernelDirectory directory(kernel.plan(), image);
  const JobPlanRef plan = prepare_kernel(card(), directory.path()).value();
  const Status fault = run(plan, {zeros(), zeros()});
  ASSERT_FALSE(fault.ok());
  EXPECT_EQ(fault.error().kind, ErrorKind::kDeviceFault);
  EXPECT_THAT(fault.error().message, HasSubstr("instruction fetch: program image: magic"));
  EXPECT_FALSE(stream()->query().ok());
  EXPECT_OK(card().reset());
}

TEST_F(Launch, AProgramWithoutRoomForItsParametersFaults) {
  TestKernel kernel = unary_kernel("neg");
  kernel.correction = 0;  // the plan computes no correction, the program wants two addresses
  const JobPlanRef plan = prepare(kernel);
  EXPECT_THAT(run(plan, {zeros(), zeros()}).error().message, HasSubstr("in front of the program"));
}

TEST_F(Launch, ResetOfACardRecoversItsStreamsAndKeepsItsMemory) {
  const JobPlanRef bad = prepare(stray_kernel(kFarAway)), good = prepare(unary_kernel("neg"));
  const LaunchTensor x = tensor_of(card(), eighths(128)), y = zeros();
  EXPECT_FALSE(run(bad, {x, y}).ok());
  card().device().lx(0).value()[0] = std::byte{1};
  ASSERT_OK(card().reset());
  EXPECT_EQ(card().device().lx(0).value()[0], std::byte{0xFF}) << "poison again";
  EXPECT_EQ(values_of(card(), x), eighths(128));
  EXPECT_OK(run(good, {x, y}));
}

TEST_F(Launch, APoolTheCardHasNoRoomForIsOutOfMemoryAndPoisonsNothing) {
  TestKernel kernel = unary_kernel("neg");
  kernel.files["bundle.mlir"] =
      bundle_of("    %pool = sdscbundle.device_mem_allocate 2097152 bytes : index\n" +
                execute_text("%x, %pool") + execute_text("%pool, %y"));
  const JobPlanRef plan = prepare(kernel);
  EXPECT_EQ(run(plan, {zeros(), zeros()}).error().kind, ErrorKind::kOutOfMemory);
  EXPECT_OK(stream()->synchronize());
}

// ---- counters and the cache

TEST_F(Launch, CountsWhatItMoved) {
  const JobPlanRef plan = prepare(unary_kernel("neg"));
  const LaunchTensor x = zeros(), y = zeros();
  ASSERT_OK(stream()->synchronize());
  reset_metrics();
  ASSERT_OK(run(plan, {x, y}));
  ASSERT_OK(run(plan, {x, y}));
  const exec::Traffic once = plan->last_run_counts().total().traffic;
  EXPECT_EQ(once, (exec::Traffic{.hbm_read = 256, .hbm_written = 256}));
  EXPECT_EQ(metric(Metric::kLaunches), 2);
  EXPECT_EQ(metric(Metric::kExecutes), 2);
  EXPECT_EQ(metric(Metric::kHbmBytesRead), 512);
  EXPECT_EQ(metric(Metric::kHbmBytesWritten), 512);
  EXPECT_EQ(metric(Metric::kVectorElements), 256);
  EXPECT_EQ(metric(Metric::kBytesToDevice), 256) << "two corrections of one stick";
  EXPECT_EQ(metric(Metric::kWorkInline), 2) << "an idle stream runs for who waits";
}

TEST_F(Launch, CountersCanBeSwitchedOff) {
  const JobPlanRef plan = prepare(unary_kernel("neg"));
  const LaunchTensor x = tensor_of(card(), eighths(128)), y = zeros();
  card().set_execution({.count = false});
  reset_metrics();
  ASSERT_OK(run(plan, {x, y}));
  EXPECT_EQ(values_of(card(), y), eighths(128, -1));
  EXPECT_EQ(plan->last_run_counts(), exec::RunCounts());
  EXPECT_EQ(metric(Metric::kLaunches), 1);
  EXPECT_EQ(metric(Metric::kHbmBytesRead), 0);
}

TEST_F(Launch, BothExecutorsAgree) {
  const JobPlanRef plan = prepare(unary_kernel("neg"));
  const LaunchTensor x = tensor_of(card(), eighths(128)), fast = zeros(), slow = zeros();
  ASSERT_OK(run(plan, {x, fast}));
  const exec::RunCounts counts = plan->last_run_counts();
  card().set_execution({.executor = Executor::kInterpreter});
  ASSERT_OK(run(plan, {x, slow}));
  EXPECT_EQ(values_of(card(), fast), values_of(card(), slow));
  EXPECT_EQ(plan->last_run_counts(), counts);
}

TEST_F(Launch, EqualImagesAreDecodedOnceForAllCards) {
  const JobPlanRef a = prepare(unary_kernel("neg")), b = prepare(unary_kernel("neg"), 1);
  ASSERT_OK(run(a, {zeros(), zeros()}));
  ASSERT_OK(run(a, {zeros(), zeros()}));
  ASSERT_OK(run(b, {zeros(128, 1), zeros(128, 1)}));
  EXPECT_EQ(card().programs().stats().misses, 1);
  EXPECT_EQ(card().programs().stats().hits, 3)
      << "each plan looks when it is prepared and when it first runs";
}

/// The kernels of what `work` launches, in the order they were given.
template <typename Work>
std::vector<Activity> kernels_of(Work work) {
  ActivityLog::instance().start();
  work();
  std::vector<Activity> kernels = ActivityLog::instance().stop().activities;
  std::erase_if(kernels, [](const Activity& activity) { return activity.kind != Activity::Kind::kKernel; });
  return kernels;
}

TEST_F(Launch, KernelsTakeTheTimeOfTheModelAfterTheirLaunch) {
  const JobPlanRef plan = prepare(unary_kernel("neg"));
  ASSERT_OK(card().synchronize());
  const LaunchTensor x = zeros(), y = zeros();
  const Nanos before = thread_time();
  const std::vector<Activity> kernels = kernels_of([&] {
    ASSERT_OK(run(plan, {x, y}, Blocking::kNo));
    ASSERT_OK(run(plan, {x, y}, Blocking::kNo));
    ASSERT_OK(card().synchronize());
  });
  ASSERT_EQ(kernels.size(), 2);
  const auto timeline =
      timing::simulate(kernels[0].run->program->program(), {.parameters = kernels[0].run->parameters},
                       card().machine(), fitted_rates(), timing::Detail::kTotals);
  EXPECT_NEAR(kernels[0].span.length().ns, timeline.value().kernel.ns, 1e-6);
  EXPECT_GT(timeline.value().kernel.ns, 0);
  // The thread does not wait between the two: the second is ready one launch later.
  EXPECT_NEAR(kernels[0].span.begin.ns, (before + timeline.value().launch).ns, 1e-6);
  EXPECT_NEAR(kernels[1].span.begin.ns, (before + timeline.value().launch * 2).ns, 1e-6);
}

TEST_F(Launch, KernelsOfTwoStreamsTakeTurnsOnTheCores) {
  const JobPlanRef a = prepare(unary_kernel("neg")), b = prepare(unary_kernel("neg"));
  const StreamRef one = card().streams().next(0), other = card().streams().next(0);
  const LaunchTensor x = zeros(), y = zeros(), z = zeros();
  const std::vector<Activity> kernels = kernels_of([&] {
    for (int i = 0; i < 5; ++i) {
      ASSERT_OK(launch(a, {x, y}, one, Blocking::kNo));
      ASSERT_OK(launch(b, {x, z}, other, Blocking::kNo));
    }
    ASSERT_OK(card().synchronize());
  });
  ASSERT_EQ(kernels.size(), 10);
  for (size_t i = 1; i < kernels.size(); ++i) {
    EXPECT_NE(kernels[i].stream, kernels[i - 1].stream);
    EXPECT_GE(kernels[i].span.begin, kernels[i - 1].span.end);
  }
}

TEST_F(Launch, AFaultTakesNoTime) {
  const JobPlanRef plan = prepare(stray_kernel(kFarAway));
  const LaunchTensor x = zeros(), y = zeros();
  const Nanos before = stream()->device_time();
  ASSERT_FALSE(run(plan, {x, y}).ok());
  EXPECT_EQ(stream()->device_time(), before);
}

TEST_F(Launch, ATransferIntoTheImageMakesItAnotherProgram) {
  // The plan overwrites the image with what an earlier launch left in a buffer: nothing, so no program
  // remains.
  const TestKernel kernel = unary_kernel("neg");
  Json plan = kernel.plan();
  const std::string entry = std::to_string(toy_card().program_base().count() + 128);
  plan["JobExecPlan"].push_back(command_of(
      "ComputeOnHost",
      {{"ihandle", ""}, {"ishape", {"0"}}, {"ohandle", "blank"}, {"size", "128"}, {"hcm", Json::object()}}));
  plan["JobExecPlan"].push_back(command_of(
      "DataTransfer", {{"dirn", "false"}, {"host_handle", "blank"}, {"dev_ptr", entry}, {"size", "128"}}));
  plan["JobExecPlan"].push_back(command_of("ComputeOnDevice", {{"job_bin_ptr", entry}}));
  const KernelDirectory directory(plan, kernel.image());
  const JobPlanRef prepared = prepare_kernel(card(), directory.path()).value();
  const LaunchTensor x = tensor_of(card(), eighths(128)), y = zeros();
  const Status fault = run(prepared, {x, y});
  EXPECT_EQ(values_of(card(), y), eighths(128, -1)) << "the first compute ran";
  ASSERT_FALSE(fault.ok());
  EXPECT_THAT(fault.error().message, HasSubstr("instruction fetch"));
}

// ---- several bundles

/// Y = neg(X) twice over: the same program as two bundles of one job.
Json twice(const TestKernel& kernel, bool non_terminal) {
  Json plan = kernel.plan();
  Json& steps = plan["JobExecPlan"];
  steps.push_back(steps.back());
  if (non_terminal) steps[steps.size() - 2]["properties"]["non_terminal"] = "true";
  return plan;
}

TEST_F(Launch, EveryBundleOfAJobIsCounted) {
  const KernelDirectory directory(twice(unary_kernel("neg"), false), unary_kernel("neg").image());
  const JobPlanRef plan = prepare_kernel(card(), directory.path()).value();
  const LaunchTensor x = tensor_of(card(), eighths(128)), y = zeros();
  ASSERT_OK(stream()->synchronize());
  reset_metrics();
  ASSERT_OK(run(plan, {x, y}));
  EXPECT_EQ(metric(Metric::kLaunches), 2);
  EXPECT_EQ(plan->last_run_counts().ops.size(), 2u);
  EXPECT_EQ(plan->last_programs().size(), 2u);
  EXPECT_EQ(plan->last_run_counts().total().traffic, (exec::Traffic{.hbm_read = 512, .hbm_written = 512}));
}

/// A byte of core 0's scratchpad, after somebody wrote 1 there and `act` was done.
std::byte left_in_lx(Card& card, const std::function<void()>& act) {
  const std::span<std::byte> lx = card.device().lx(0).value();
  lx[5] = std::byte{1};
  act();
  return lx[5];
}

TEST(CoreTurn, ASharedCardIsWipedAfterEveryBundleThatIsNotNonTerminal) {
  for (const bool wipes : {true, false}) {
    Card card(0, fenced_toy(), {.wipes_lx = wipes});
    const TestKernel kernel = unary_kernel("neg");
    const std::string image = kernel.image().substr(static_cast<size_t>(kernel.correction));
    const auto program = LoadedProgram::load(std::as_bytes(std::span(image)), toy_card()).value();
    const LaunchTensor x = tensor_of(card, eighths(128)), y = tensor_of(card, eighths(128));
    const auto go = [&](CoreTurn& turn, ProgramEnd end) {
      const Memory::Access from = x.memory->open(Bytes(0), Bytes(256)).value();
      const Memory::Access to = y.memory->open(Bytes(0), Bytes(256)).value();
      EXPECT_OK(card.run(turn, *program, {x.memory->address().value(), y.memory->address().value()},
                         {{x.memory->address(), from.bytes()}, {y.memory->address(), to.bytes()}}, end));
    };
    CoreTurn turn(card);
    const std::byte after_all = wipes ? static_cast<std::byte>(kLxPoison >> 8) : std::byte{1};
    EXPECT_EQ(left_in_lx(card, [&] { go(turn, {.non_terminal = true, .last = false}); }), std::byte{1});
    EXPECT_EQ(left_in_lx(card, [&] { go(turn, {}); }), after_all);
    EXPECT_EQ(left_in_lx(card,
                         [&] {
                           CoreTurn broken_off(card);
                           go(broken_off, {.non_terminal = true, .last = false});
                         }),
              after_all)
        << "a launch that ends early leaves nothing to others";
  }
}

TEST_F(Launch, ResultsOfTheRegionReachTheHost) {
  const TestKernel kernel = unary_kernel("neg");
  Json plan = kernel.plan();
  plan["JobExecPlan"].push_back(
      command_of("DataTransfer", {{"dirn", "true"},
                                  {"host_handle", "back"},
                                  {"dev_ptr", std::to_string(toy_card().program_base().count())},
                                  {"size", "128"}}));
  const KernelDirectory directory(plan, kernel.image());
  const JobPlanRef prepared = prepare_kernel(card(), directory.path()).value();
  const LaunchTensor x = zeros(), y = zeros();
  reset_metrics();
  ASSERT_OK(run(prepared, {x, y}));
  EXPECT_EQ(metric(Metric::kBytesToHost), 128);
}

// ---- transfers out of tensors

/// A plan whose parameters are fetched from tensor 2 before it computes.
Json plan_with_a_table(const TestKernel& kernel) {
  Json plan = kernel.plan();
  Json& steps = plan["JobExecPlan"];
  const int64_t segment = toy_card().segment_bytes.count();
  steps[0] = command_of("DataTransfer", {{"dirn", "true"},
                                         {"host_handle", "correction0"},
                                         {"dev_ptr", std::to_string(2 * segment)},
                                         {"size", "128"}});
  return plan;
}

TEST_F(Launch, BytesOfATensorReachTheHost) {
  const TestKernel kernel = unary_kernel("neg");
  const KernelDirectory directory(plan_with_a_table(kernel), kernel.image());
  const JobPlanRef plan = prepare_kernel(card(), directory.path()).value();
  const LaunchTensor x = tensor_of(card(), eighths(128)), y = zeros(), table = zeros();
  ASSERT_OK(transfer(
      stream(), MemoryView::whole(table.memory), TransferDirection::kToDevice,
      [&](std::span<std::byte> device) -> Status {
        const int64_t addresses[] = {x.memory->address().value(), y.memory->address().value()};
        std::memcpy(device.data(), addresses, sizeof(addresses));
        return {};
      },
      Blocking::kYes));
  ASSERT_OK(run(plan, {x, y, table}));
  EXPECT_EQ(values_of(card(), y), eighths(128, -1)) << "the table said where x and y are";
  EXPECT_THAT(run(plan, {x, y}).error().message, HasSubstr("D2H tensor-segment lookup out of range"));
  EXPECT_THAT(run(plan, {x, y, LaunchTensor{}}).error().message, HasSubstr("argument 2 has no memory"));
  EXPECT_THAT(run(plan, {x, y, zeros(32)}).error().message,
              HasSubstr("D2H transfer out of bounds: found 128 bytes at 0, allowed: inside the 64 bytes"));
  EXPECT_OK(stream()->query());  // refused before anything was queued
}

TEST_F(Launch, APlanNeedNotCompute) {
  const TestKernel kernel = unary_kernel("neg");
  Json plan = plan_with_a_table(kernel);
  plan["JobExecPlan"] = Json::array({plan["JobExecPlan"][0]});
  const KernelDirectory directory(plan, kernel.image());
  const JobPlanRef prepared = prepare_kernel(card(), directory.path()).value();
  reset_metrics();
  ASSERT_OK(run(prepared, {zeros(), zeros(), zeros()}));
  EXPECT_EQ(metric(Metric::kBytesToHost), 128);
  EXPECT_EQ(metric(Metric::kLaunches), 0);
}

// ---- parameters that the caller states

SymbolicArg address_of_tensor(int64_t id) {
  return {.kind = SymbolicArg::Kind::kAddress, .tensor_id = id};
}

TEST_F(Launch, TheCallerMaySayWhatTheParametersAre) {
  const JobPlanRef plan = prepare(unary_kernel("neg"));
  const LaunchTensor x = tensor_of(card(), eighths(128)), y = zeros();
  const auto launch_with = [&](std::vector<SymbolicArg> symbolic) {
    return launch(plan, {y, x}, stream(), Blocking::kYes, std::move(symbolic));
  };
  ASSERT_OK(launch_with({address_of_tensor(1), address_of_tensor(0)}));
  EXPECT_EQ(values_of(card(), y), eighths(128, -1)) << "the first parameter is the second tensor";
  EXPECT_THAT(launch_with({address_of_tensor(1)}).error().message,
              HasSubstr("found 1 symbolic arguments, allowed: 2"));
  EXPECT_THAT(launch_with({address_of_tensor(1), address_of_tensor(5)}).error().message,
              HasSubstr("SymbolicArg[1].tensor_id=5 out of range [0, 2)"));
  EXPECT_THAT(launch_with({address_of_tensor(1), {.kind = SymbolicArg::Kind::kDimension, .dim_index = 3}})
                  .error()
                  .message,
              HasSubstr("SymbolicArg[1].dim_index=3 out of range"));
}

TEST_F(Launch, ExtentsThatTheCallerStates) {
  const std::vector<LaunchTensor> tensors = {tensor_of(card(), eighths(128), {2, 64})};
  const SymbolicArg rows{.kind = SymbolicArg::Kind::kDimension, .tensor_id = 0, .dim_index = 0};
  SymbolicArg stated = rows;
  stated.value = 7;
  const std::vector<SymbolicArg> args = {address_of_tensor(0), rows, stated};
  EXPECT_EQ(resolve(args, tensors).value(),
            (std::vector<int64_t>{tensors[0].memory->address().value(), 2, 7}));
}

}  // namespace
}  // namespace spyre
