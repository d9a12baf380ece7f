// What the runtime itself costs: allocate and free, give work to a stream and wait, and the path without a
// thread switch. `runtime_bench --benchmark_repetitions=9 --benchmark_report_aggregates_only=true` gives
// median and spread.

#include <benchmark/benchmark.h>

#include <vector>

#include "spyre/runtime/runtime.h"

namespace spyre {
namespace {

Card& card() {
  return *Runtime::instance().card(0).value();
}

Status nothing() {
  return {};
}

/// A card that already holds `live` tensors, with holes between them, as a model in use leaves it.
std::vector<MemoryRef> fragmented(int64_t live) {
  std::vector<MemoryRef> kept;
  for (int64_t i = 0; i < 2 * live; ++i) {
    MemoryRef memory = card().allocate(kibibytes(4 + i % 7)).value();
    if (i % 2 == 0) {
      kept.push_back(std::move(memory));
    }
  }
  return kept;
}

void AllocateAndFree(benchmark::State& state) {
  const auto kept = fragmented(state.range(1));
  const Bytes size(state.range(0));
  for (auto _ : state) {
    benchmark::DoNotOptimize(card().allocate(size).value());
  }
}
BENCHMARK(AllocateAndFree)
    ->ArgNames({"bytes", "live"})
    ->Args({4096, 0})
    ->Args({4096, 10000})
    ->Args({int64_t{16} << 30, 0});

void EnqueueAndSynchronize(benchmark::State& state) {
  const StreamRef stream = card().streams().next(0);
  for (auto _ : state) {
    (void)stream->enqueue(nothing);
    (void)stream->synchronize();
  }
}
BENCHMARK(EnqueueAndSynchronize)->UseRealTime();

void EnqueueBurst(benchmark::State& state) {
  const StreamRef stream = card().streams().next(0);
  for (auto _ : state) {
    for (int i = 0; i < 1000; ++i) {
      (void)stream->enqueue(nothing);
    }
    (void)stream->synchronize();
  }
  state.SetItemsProcessed(state.iterations() * 1000);
}
BENCHMARK(EnqueueBurst)->UseRealTime();

void RunInline(benchmark::State& state) {
  const StreamRef stream = card().streams().next(0);
  for (auto _ : state) {
    (void)stream->run_now_or_enqueue(nothing);
  }
}
BENCHMARK(RunInline);

void RecordAndQueryEvent(benchmark::State& state) {
  const StreamRef stream = card().streams().next(0);
  Event event;
  for (auto _ : state) {
    (void)event.record(stream);
    benchmark::DoNotOptimize(event.query());
  }
}
BENCHMARK(RecordAndQueryEvent);

void BlockingCopyIn(benchmark::State& state) {
  const StreamRef stream = card().streams().default_stream();
  const MemoryRef memory = card().allocate(Bytes(state.range(0))).value();
  const std::vector<std::byte> host(static_cast<size_t>(state.range(0)), std::byte{1});
  for (auto _ : state) {
    (void)copy_in(stream, MemoryView::whole(memory), host, Blocking::kYes);
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(BlockingCopyIn)->ArgName("bytes")->Arg(128)->Arg(1 << 20)->Arg(64 << 20);

}  // namespace
}  // namespace spyre

BENCHMARK_MAIN();
