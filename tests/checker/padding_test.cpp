// Padding that reaches a result, on small kernels: K of 100 in sticks of 64, so rows and lanes 100..127 are
// padding.
#include <fmt/format.h>

#include "tests/checker/checked_bundle.h"

namespace spyre {
namespace {

using exec::Rule;

/// Y = X' W' with X' = `x_op` of X and W' = `w_op` of W, each in the pool; an empty name takes the argument
/// itself.
Outcome run_matmul(const std::string& x_op, const std::string& w_op) {
  const auto prepare = [](const std::string& op, const std::string& name, int rows, int columns, int argument,
                          int sticks, int pool) {
    if (op.empty()) {
      return std::string();
    }
    const std::string shape =
        fmt::format("device_size=[{0}, {1}, 64] coords=[floor(c1/64), c0, Mod(c1, 64)]", sticks, rows);
    return fmt::format(
        "op {} {{ iteration_space={{c0: ({}, 1), c1: ({}, 1)}} core_id_to_work_slice={{c0: 0, c1: 0}}\n"
        "  in {}0 {{ {} hbm={} }}\n  in v {{ {} hbm={} }}\n  out {} {{ {} hbm_pool={} }} }}\n",
        op, rows, columns, name, shape, argument, shape, argument, name, shape, pool);
  };
  const std::string x_at = x_op.empty() ? "hbm=0" : "hbm_pool=0",
                    w_at = w_op.empty() ? "hbm=1" : "hbm_pool=1024";
  const std::string text = fmt::format(
      "kernel k {{\n  pool_bytes=20480\n"
      "  argument 0 {{ role=input dtype=float16 shape=[4, 100] device_size=[2, 4, 64] stride_map=[64, 100, "
      "1] }}\n"
      "  argument 1 {{ role=input dtype=float16 shape=[100, 64] device_size=[1, 128, 64] stride_map=[64, 64, "
      "1] }}\n"
      "  argument 2 {{ role=output dtype=float16 shape=[4, 64] device_size=[1, 4, 64] stride_map=[64, 64, 1] "
      "}}\n"
      "{}{}  op batchmatmul {{ is_reduction=True\n"
      "    iteration_space={{m: (4, 1), n: (64, 1), k: (100, 1)}} core_id_to_work_slice={{m: 0, n: 0, k: "
      "0}}\n"
      "    in X {{ device_size=[2, 4, 64] coords=[floor(k/64), m, Mod(k, 64)] {} }}\n"
      "    in W {{ device_size=[1, 128, 64] coords=[floor(n/64), k, Mod(n, 64)] {} }}\n"
      "    out Y {{ device_size=[1, 4, 64] coords=[floor(n/64), m, Mod(n, 64)] hbm=2 }} }}\n}}\n",
      prepare(x_op, "X", 4, 100, 0, 2, 0), prepare(w_op, "W", 128, 64, 1, 1, 1024), x_at, w_at);
  const auto kernel = parse_kernel(text, "padding.opspec");
  if (!kernel.ok()) {
    return {.by = Outcome::By::kReader, .message = kernel.error().to_string()};
  }
  const auto written = write_bundle(kernel.value());
  if (!written.ok()) {
    return {.by = Outcome::By::kReader, .message = written.error().to_string()};
  }
  return run_bundle(kernel.value(), written.value().files);
}

TEST(Padding, ZerosFromTheHostAddNothingToAContraction) {
  const Outcome outcome = run_matmul("", "");
  EXPECT_EQ(outcome.by, Outcome::By::kNobody) << outcome.to_string();
}

TEST(Padding, ZeroTimesZeroIsStillZero) {
  const Outcome outcome = run_matmul("mul", "mul");
  EXPECT_EQ(outcome.by, Outcome::By::kNobody) << outcome.to_string();
}

TEST(Padding, OneFactorOfZeroIsEnough) {
  const Outcome outcome = run_matmul("equal", "");  // 0 == 0 puts ones into the padding of X
  EXPECT_EQ(outcome.by, Outcome::By::kNobody) << outcome.to_string();
}

TEST(Padding, OnesTimesOnesReachTheResult) {
  const Outcome outcome = run_matmul("equal", "equal");
  EXPECT_EQ(outcome.by, Outcome::By::kChecker) << outcome.to_string();
  EXPECT_TRUE(outcome.found(Rule::kPadding)) << outcome.to_string();
}

}  // namespace
}  // namespace spyre
