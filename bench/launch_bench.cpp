// What a launch costs above the program's own run: the smallest bundle (|x| of a 4 x 64 tensor), prepared
// once, launched by a caller who waits, queued in a burst, and, as the yardstick, run on the device alone.
// `launch_bench --benchmark_repetitions=9 --benchmark_report_aggregates_only=true` gives median and spread.

#include <benchmark/benchmark.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "spyre/codegen/superdsc/save_bundle.h"
#include "spyre/opspec/text.h"
#include "spyre/program/image.h"
#include "spyre/runtime/launch.h"
#include "spyre/runtime/runtime.h"

namespace spyre {
namespace {

constexpr const char* kAbs = R"(
kernel abs {
  argument 0 { role=input dtype=float16 shape=[4, 64] device_size=[1, 4, 64] stride_map=[64, 64, 1] }
  argument 1 { role=output dtype=float16 shape=[4, 64] device_size=[1, 4, 64] stride_map=[64, 64, 1] }
  op abs {
    iteration_space={c0: (4, 2), c1: (64, 1)}
    core_id_to_work_slice={c0: Mod(core_id, 2), c1: 0}
    in X { device_size=[1, 4, 64] coords=[floor(c1/64), c0, Mod(c1, 64)] hbm=0 }
    out Y { device_size=[1, 4, 64] coords=[floor(c1/64), c0, Mod(c1, 64)] hbm=1 }
  }
})";
constexpr size_t kBytes = 4 * 64 * 2;

void require(const Status& status) {
  if (!status.ok()) {
    std::fprintf(stderr, "%s\n", status.error().to_string().c_str());
    std::exit(1);
  }
}

/// The kernel on a card, checked: -1 comes out as 1.
struct Prepared {
  std::filesystem::path directory =
      std::filesystem::temp_directory_path() / ("spyre_launch_bench_" + std::to_string(getpid()));
  Runtime runtime{spyre_card()};
  Card& card = *runtime.card(0).value();
  StreamRef stream = card.streams().default_stream();
  Bundle bundle = write_bundle(parse_kernel(kAbs, "abs").value()).value();
  MemoryRef x = card.allocate(Bytes(kBytes)).value(), y = card.allocate(Bytes(kBytes)).value();
  JobPlanRef plan;
  LoadedProgramRef program;

  Prepared() {
    require(save_bundle(bundle, directory));
    plan = prepare_kernel(card, directory / "spyreCodeDir").value();
    std::filesystem::remove_all(directory);
    std::vector<uint16_t> host(kBytes / 2, 0xBE00);  // -1 in the card's format
    require(copy_in(stream, MemoryView::whole(x), std::as_bytes(std::span(host)), Blocking::kYes));
    require(launch(plan, tensors(), stream, Blocking::kYes));
    require(copy_out(stream, MemoryView::whole(y), std::as_writable_bytes(std::span(host)), Blocking::kYes));
    for (const uint16_t bits : host) {
      if (bits != 0x3E00) {
        require(Error(ErrorKind::kInvalidArgument, "the kernel computed something else than |x|"));
      }
    }
    program = plan->last_programs().front();
  }

  std::vector<LaunchTensor> tensors() const { return {{x, {4, 64}}, {y, {4, 64}}}; }
};

Prepared& prepared() {
  static Prepared* const it = new Prepared();
  return *it;
}

ExecuteOptions options_of(const benchmark::State& state) {
  return {.executor = Executor::kFast, .count = state.range(0) != 0};
}

void ExecuteOnTheDeviceAlone(benchmark::State& state) {
  Prepared& p = prepared();
  const HostWindow x = p.card.device().open({p.x->address(), Bytes(kBytes)}).value();
  const HostWindow y = p.card.device().open({p.y->address(), Bytes(kBytes)}).value();
  ExecuteRequest request;
  request.program = p.program.get();
  request.values.parameters = {p.x->address().value(), p.y->address().value()};
  request.memory = {{p.x->address(), x.bytes()}, {p.y->address(), y.bytes()}};
  request.options = options_of(state);
  for (auto _ : state) {
    benchmark::DoNotOptimize(p.card.device().execute(request));
  }
}
BENCHMARK(ExecuteOnTheDeviceAlone)->ArgName("counters")->Arg(1)->Arg(0);

void LaunchAndWait(benchmark::State& state) {
  Prepared& p = prepared();
  p.card.set_execution(options_of(state));
  for (auto _ : state) {
    require(launch(p.plan, p.tensors(), p.stream, Blocking::kYes));
  }
}
BENCHMARK(LaunchAndWait)->ArgName("counters")->Arg(1)->Arg(0)->UseRealTime();

void LaunchThenSynchronize(benchmark::State& state) {
  Prepared& p = prepared();
  p.card.set_execution(options_of(state));
  for (auto _ : state) {
    require(launch(p.plan, p.tensors(), p.stream, Blocking::kNo));
    require(p.stream->synchronize());
  }
}
BENCHMARK(LaunchThenSynchronize)->ArgName("counters")->Arg(0)->UseRealTime();

void LaunchInABurst(benchmark::State& state) {
  Prepared& p = prepared();
  p.card.set_execution(options_of(state));
  for (auto _ : state) {
    for (int i = 0; i < 100; ++i) {
      require(launch(p.plan, p.tensors(), p.stream, Blocking::kNo));
    }
    require(p.stream->synchronize());
  }
  state.SetItemsProcessed(state.iterations() * 100);
}
BENCHMARK(LaunchInABurst)->ArgName("counters")->Arg(0)->UseRealTime();

}  // namespace
}  // namespace spyre

BENCHMARK_MAIN();
