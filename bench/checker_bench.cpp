// What the checker costs: the time of a launch under the interpreter, and of the checker alone, on a softmax
// of 1024 x 1024 (five ops, 32 cores, intermediates in LX) and a matmul of 512 x 512 x 512.
//
//   checker_bench [rounds]
//
// Both kernels are first checked: a finding, or a fault, ends the run.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "spyre/codegen/superdsc/bundle.h"
#include "spyre/device/exec/checked_run.h"
#include "spyre/device/exec/test_memory.h"
#include "spyre/opspec/text.h"
#include "spyre/program/read_program.h"

namespace spyre {
namespace {

constexpr std::string_view kFull = "device_size=[16, 1024, 64] coords=[floor(c1/64), c0, Mod(c1, 64)]";
constexpr std::string_view kRow = "device_size=[1, 1024, 64] coords=[0, c0, 0]";

std::string softmax() {
  const auto op = [](std::string_view name, bool reduces, const std::string& tensors) {
    return fmt::format(
        "op {} {{ {} iteration_space={{c0: (1024, 32), c1: (1024, 1)}}\n"
        "core_id_to_work_slice={{c0: Mod(core_id, 32), c1: 0}}\n{} }}\n",
        name, reduces ? "is_reduction=True" : "", tensors);
  };
  const auto full = [](std::string_view what, std::string_view at) {
    return fmt::format("{} {{ {} {} }}\n", what, kFull, at);
  };
  const auto row = [](std::string_view what, std::string_view at) {
    return fmt::format("{} {{ {} {} }}\n", what, kRow, at);
  };
  return "kernel softmax {\n"
         "argument 0 { role=input dtype=float16 shape=[1024, 1024] device_size=[16, 1024, 64] "
         "stride_map=[64, 1024, 1] }\n"
         "argument 1 { role=output dtype=float16 shape=[1024, 1024] device_size=[16, 1024, 64] "
         "stride_map=[64, 1024, 1] }\n" +
         op("max", true, full("in X", "hbm=0") + row("out M", "lx=131072")) +
         op("sub", false, full("in X", "hbm=0") + row("in M", "lx=131072") + full("out D", "lx=0")) +
         op("exp", false, full("in D", "lx=0") + full("out E", "lx=0")) +
         op("sum", true, full("in E", "lx=0") + row("out S", "lx=135168")) +
         op("realdiv", false, full("in E", "lx=0") + row("in S", "lx=135168") + full("out Y", "hbm=1")) +
         "}\n";
}

std::string matmul() {
  return R"(kernel matmul {
  argument 0 { role=input dtype=float16 shape=[512, 512] device_size=[8, 512, 64] stride_map=[64, 512, 1] }
  argument 1 { role=input dtype=float16 shape=[512, 512] device_size=[8, 512, 64] stride_map=[64, 512, 1] }
  argument 2 { role=output dtype=float16 shape=[512, 512] device_size=[8, 512, 64] stride_map=[64, 512, 1] }
  op batchmatmul {
    is_reduction=True
    iteration_space={m: (512, 32), n: (512, 1), k: (512, 1)}
    core_id_to_work_slice={m: Mod(core_id, 32), n: 0, k: 0}
    in X { device_size=[8, 512, 64] coords=[floor(k/64), m, Mod(k, 64)] hbm=0 }
    in W { device_size=[8, 512, 64] coords=[floor(n/64), k, Mod(n, 64)] hbm=1 }
    out Y { device_size=[8, 512, 64] coords=[floor(n/64), m, Mod(n, 64)] hbm=2 }
  }
})";
}

double median_ms(int rounds, const std::function<void()>& work) {
  std::vector<double> times;
  for (int i = 0; i < rounds; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    work();
    times.push_back(
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count());
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

int run(const std::string& name, const std::string& text, int rounds) {
  constexpr int64_t kArgument = 4 << 20;
  const auto kernel = parse_kernel(text, name);
  const auto bundle = kernel.ok() ? write_bundle(kernel.value()) : Result<Bundle>(kernel.error());
  const auto program = bundle.ok() ? program::read_program(bundle.value().files)
                                   : Result<program::DeviceProgram>(bundle.error());
  if (!program.ok()) {
    std::fprintf(stderr, "%s\n", program.error().to_string().c_str());
    return 1;
  }
  exec::TestMemory memory(3 * kArgument);
  exec::Checker checker;
  exec::LaunchValues launch;
  for (size_t i = 0; i < program.value().parameters.size(); ++i) {
    launch.parameters.push_back(static_cast<int64_t>(i) * kArgument);
    checker.note_host_write(i * kArgument, kArgument, "argument");
  }
  const exec::CheckedRun first = exec::check_launch(program.value(), launch, checker);
  for (const exec::Finding& finding : first.findings) {
    std::fprintf(stderr, "%s\n", exec::to_string(finding).c_str());
  }
  if (!first.clean()) {
    return 1;
  }
  const double alone =
      median_ms(100 * rounds, [&] { (void)exec::check_launch(program.value(), launch, checker).clean(); });
  const double interpreted =
      median_ms(rounds, [&] { (void)exec::interpret(program.value(), launch, memory).ok(); });
  std::printf("%-20s interpreter %10.2f ms   checker %8.3f ms   checked / unchecked %.4f\n", name.c_str(),
              interpreted, alone, (interpreted + alone) / interpreted);
  return 0;
}

}  // namespace
}  // namespace spyre

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::max(std::atoi(argv[1]), 1) : 3;
  return spyre::run("softmax 1024x1024", spyre::softmax(), rounds) |
         spyre::run("matmul 512x512x512", spyre::matmul(), rounds);
}
