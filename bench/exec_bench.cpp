// How fast the emulated card computes.
//
//     exec_bench                         every case, a table
//     exec_bench --json                  the same as JSON lines
//     exec_bench --overheads             what counting and checking add, against their goals
//     exec_bench --serve                 reads case names from stdin, answers each with one timed run as a
//     JSON
//                                        line; exec_vs_torch.py alternates it with PyTorch this way
//
// Before a case gives a number, a part of its results (the first sticks of every core) is computed by the
// interpreter and compared byte for byte.
#include <fmt/format.h>
#include <sys/mman.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <random>

#include "spyre/base/thread_pool.h"
#include "spyre/device/exec/checked_run.h"
#include "spyre/device/exec/executor.h"
#include "spyre/program/read_program.h"
#include "spyre/program/test_artifact.h"

namespace spyre::bench {
namespace {

using namespace exec;               // NOLINT: a program of its own
using namespace testing_artifacts;  // NOLINT: writes artifacts as the tests do

/// A card's memory, allocated as the card does it: with huge pages where the system has them.
class BenchMemory final : public CardMemory {
 public:
  explicit BenchMemory(size_t hbm_bytes) : hbm_(allocate(hbm_bytes)), hbm_bytes_(hbm_bytes) {}

  Status read_hbm(uint64_t address, std::span<std::byte> to) override {
    SPYRE_TRY(check(address, to.size(), hbm_bytes_));
    std::memcpy(to.data(), hbm_.get() + address, to.size());
    return Status();
  }
  Status write_hbm(uint64_t address, std::span<const std::byte> from) override {
    SPYRE_TRY(check(address, from.size(), hbm_bytes_));
    std::memcpy(hbm_.get() + address, from.data(), from.size());
    return Status();
  }
  Status read_lx(int core, uint64_t offset, std::span<std::byte> to) override {
    SPYRE_TRY(check(offset, to.size(), kLx));
    std::memcpy(to.data(), lx(core) + offset, to.size());
    return Status();
  }
  Status write_lx(int core, uint64_t offset, std::span<const std::byte> from) override {
    SPYRE_TRY(check(offset, from.size(), kLx));
    std::memcpy(lx(core) + offset, from.data(), from.size());
    return Status();
  }
  Result<std::span<std::byte>> hbm_span(uint64_t address, uint64_t size) override {
    SPYRE_TRY(check(address, size, hbm_bytes_));
    return std::span(hbm_.get() + address, size);
  }
  Result<std::span<std::byte>> lx_span(int core) override { return std::span(lx(core), kLx); }

  std::span<std::byte> hbm() { return {hbm_.get(), hbm_bytes_}; }

 private:
  static constexpr size_t kLx = 2u << 20;
  struct Free {
    void operator()(std::byte* bytes) const { std::free(bytes); }
  };
  using Block = std::unique_ptr<std::byte[], Free>;

  static Block allocate(size_t bytes) {
    constexpr size_t kHugePage = 2u << 20;
    const size_t rounded = (bytes + kHugePage - 1) / kHugePage * kHugePage;
    void* block = std::aligned_alloc(kHugePage, rounded);
    madvise(block, rounded, MADV_HUGEPAGE);
    return Block(static_cast<std::byte*>(block));
  }
  std::byte* lx(int core) {
    Block& block = lx_.at(core);
    if (!block) {
      block = allocate(kLx);
      std::memset(block.get(), 0x5A, kLx);
    }
    return block.get();
  }
  static Status check(uint64_t address, size_t bytes, size_t size) {
    return address <= size && bytes <= size - address
               ? Status()
               : Status(Error(ErrorKind::kOutOfRange, "past the end of memory"));
  }

  Block hbm_;
  size_t hbm_bytes_;
  std::array<Block, 32> lx_;
};

/// Reads what a card has, keeps what would be written to it.
class Capture final : public CardMemory {
 public:
  explicit Capture(CardMemory& card) : card_(card) {}
  Status read_hbm(uint64_t address, std::span<std::byte> to) override { return card_.read_hbm(address, to); }
  Status read_lx(int core, uint64_t offset, std::span<std::byte> to) override {
    return card_.read_lx(core, offset, to);
  }
  Status write_hbm(uint64_t address, std::span<const std::byte> from) override {
    return keep(-1, address, from);
  }
  Status write_lx(int core, uint64_t offset, std::span<const std::byte> from) override {
    return keep(core, offset, from);
  }

  /// Whether the card now holds everything that was kept.
  bool matches() const {
    for (const auto& [at, bytes] : kept_) {
      std::vector<std::byte> there(bytes.size());
      const Status read =
          at.first < 0 ? card_.read_hbm(at.second, there) : card_.read_lx(at.first, at.second, there);
      if (!read.ok() || there != bytes) {
        return false;
      }
    }
    return !kept_.empty();
  }

 private:
  Status keep(int core, uint64_t address, std::span<const std::byte> from) {
    kept_[{core, address}].assign(from.begin(), from.end());
    return Status();
  }
  CardMemory& card_;
  std::map<std::pair<int, uint64_t>, std::vector<std::byte>> kept_;
};

/// A bundle, prepared.
struct Program {
  std::unique_ptr<DeviceProgram> program;
  std::unique_ptr<PreparedProgram> prepared;
};

/// Runs the ops one after another, in one launch.
Program make_program(std::span<const OpSpec> ops) {
  program::ProgramFiles files;
  std::string executes;
  for (const OpSpec& op : ops) {
    const std::string file = fmt::format("sdsc_{}.json", files.size());
    executes += fmt::format("    sdscbundle.sdsc_execute () {{sdsc_filename=\"{}\"}}\n", file);
    files[file] = write_sdsc(op).dump();
  }
  files["bundle.mlir"] =
      fmt::format("module {{\n  func.func @sdsc_bundle() {{\n{}    return\n  }}\n}}\n", executes);
  auto program = std::make_unique<DeviceProgram>(read_program(files).value());
  auto prepared = std::make_unique<PreparedProgram>(prepare(*program));
  return {std::move(program), std::move(prepared)};
}

void run(const Program& p, CardMemory& memory, bool count = true) {
  PathCounts paths;
  const auto counts = p.prepared->execute({}, memory, {.count = count, .paths = &paths});
  if (!counts.ok() || paths.interpreted != 0) {
    throw std::runtime_error(counts.ok() ? "the interpreter ran" : counts.error().to_string());
  }
}

/// Runs an op and compares the first sticks of every core with the interpreter's.
bool run_checked(const Program& p, CardMemory& memory) {
  BoundOp bound = bind_op(p.program->ops[0], {}, 0).value();
  for (Box& box : bound.boxes) {
    for (int d = 0; d < bound.dims(); ++d) {
      if (bound.output().present(d)) {
        const int64_t some = bound.output().stick[0].dim == d ? 64 : 2;
        box.upper[d] = std::min(box.upper[d], box.lower[d] + some);
      }
    }
  }
  Capture expected(memory);
  if (!interpret_op(bound, expected).ok()) {
    return false;
  }
  run(p, memory);
  return expected.matches();
}

double now(clockid_t clock) {
  timespec time;
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

struct Case {
  std::string name;
  double flops = 0, bytes = 0;  ///< of one run; bytes are those of tensors in HBM
  size_t hbm_bytes = 0;
  std::vector<OpSpec> ops;

  clockid_t clock = CLOCK_MONOTONIC;
  Program program = {};
  std::unique_ptr<BenchMemory> memory = nullptr;

  /// Builds, fills, checks.
  void open() {
    if (memory) {
      return;
    }
    memory = std::make_unique<BenchMemory>(hbm_bytes);
    std::mt19937_64 random(7);
    auto* codes = reinterpret_cast<uint16_t*>(memory->hbm().data());
    for (size_t i = 0; i < hbm_bytes / 2; ++i) {
      const uint64_t r = random();
      codes[i] = static_cast<uint16_t>((r & 0x81FF) | ((27 + (r >> 16) % 5) << 9));
    }
    for (const OpSpec& op : ops) {
      if (!run_checked(make_program({&op, 1}), *memory)) {
        throw std::runtime_error(name + ": differs from the interpreter");
      }
    }
    program = make_program(ops);
    check_whole();
  }

  /// All ops in one launch leave the bytes that one launch each left.
  void check_whole() {
    const std::vector<std::byte> expected(memory->hbm().begin(), memory->hbm().end());
    run(program, *memory);
    if (!std::equal(expected.begin(), expected.end(), memory->hbm().begin())) {
      throw std::runtime_error(name + ": one launch differs from one launch per op");
    }
  }

  void close() {
    program = {};
    memory.reset();
  }

  /// One timed run.
  double seconds(bool count = true) {
    return timed([&] { run(program, *memory, count); });
  }

  /// The same with the checker looking at every launch first.
  double seconds_checked(Checker& checker) {
    return timed([&] {
      if (const CheckedRun checked = check_launch(*program.program, {}, checker); !checked.clean()) {
        throw std::runtime_error(name + ": " + to_string(checked.findings.front()));
      }
      run(program, *memory);
    });
  }

  template <typename Run>
  double timed(Run&& work) {
    const double begin = now(clock);
    work();
    return now(clock) - begin;
  }
};

int64_t fp16(int64_t elements) {
  return elements * 2;
}

Case matmul(const std::string& name, int64_t m, int64_t n, int64_t k, std::array<int64_t, 3> splits) {
  OpSpec op{.function = "batchmatmul",
            .dims = {{"mb", m, splits[0]}, {"out", n, splits[1]}, {"in", k, splits[2]}},
            .tensors = {{.order = {"mb", "in"}, .stick = {"in"}},
                        {.order = {"in", "out"}, .stick = {"out"}, .base = fp16(m * k)},
                        {.order = {"mb", "out"}, .stick = {"out"}, .base = fp16(m * k + k * n)}},
            .k_fastest = true};
  const int64_t bytes = fp16(m * k + k * n + m * n);
  return {.name = name,
          .flops = 2.0 * static_cast<double>(m * n * k),
          .bytes = static_cast<double>(bytes),
          .hbm_bytes = static_cast<size_t>(bytes),
          .ops = {op}};
}

Case batched(const std::string& name, int64_t b, int64_t m, int64_t k, int64_t n) {
  OpSpec op{.function = "batchmatmul",
            .dims = {{"x", b, b}, {"mb", m}, {"out", n}, {"in", k}},
            .tensors = {{.order = {"mb", "in", "x"}, .stick = {"in"}},
                        {.order = {"in", "out", "x"}, .stick = {"out"}, .base = fp16(b * m * k)},
                        {.order = {"mb", "out", "x"}, .stick = {"out"}, .base = fp16(b * (m * k + k * n))}}};
  const int64_t bytes = fp16(b * (m * k + k * n + m * n));
  return {.name = name,
          .flops = 2.0 * static_cast<double>(b * m * n * k),
          .bytes = static_cast<double>(bytes),
          .hbm_bytes = static_cast<size_t>(bytes),
          .ops = {op}};
}

Case pointwise(const std::string& name, const std::string& function, int inputs, int64_t rows,
               int64_t columns) {
  OpSpec op{.function = function, .dims = {{"mb", rows, 32}, {"out", columns}}};
  for (int i = 0; i <= inputs; ++i) {
    op.tensors.push_back({.order = {"mb", "out"}, .base = i * fp16(rows * columns)});
  }
  const int64_t bytes = (inputs + 1) * fp16(rows * columns);
  return {.name = name,
          .flops = static_cast<double>(rows * columns),
          .bytes = static_cast<double>(bytes),
          .hbm_bytes = static_cast<size_t>(bytes),
          .ops = {op}};
}

/// max, sub, exp, sum, realdiv; everything between the first read and the last write stays in LX.
Case softmax(const std::string& name, int64_t rows, int64_t columns) {
  const std::vector<Dim> dims = {{"mb", rows, 32}, {"out", columns}};
  const int64_t size = fp16(rows * columns), slice = size / 32, column = rows / 32 * 128;
  const TensorSpec x{.order = {"mb", "out"}}, y{.order = {"mb", "out"}, .base = size};
  const TensorSpec shifted{.order = {"mb", "out"}, .base = 0, .lx = true};
  const TensorSpec largest{.order = {"mb", "out"}, .scale = {{"out", -2}}, .base = slice, .lx = true};
  const TensorSpec sum{.order = {"mb", "out"}, .scale = {{"out", -2}}, .base = slice + column, .lx = true};
  return {.name = name,
          .flops = 5.0 * static_cast<double>(rows * columns),
          .bytes = 3.0 * static_cast<double>(size),
          .hbm_bytes = static_cast<size_t>(2 * size),
          .ops = {{.function = "max", .dims = dims, .tensors = {x, largest}},
                  {.function = "sub", .dims = dims, .tensors = {x, largest, shifted}},
                  {.function = "exp", .dims = dims, .tensors = {shifted, shifted}},
                  {.function = "sum", .dims = dims, .tensors = {shifted, sum}},
                  {.function = "realdiv", .dims = dims, .tensors = {shifted, sum, y}}}};
}

Case restickify(const std::string& name, int64_t rows, int64_t columns) {
  OpSpec op{.function = "ReStickifyOpHBM",
            .dims = {{"mb", rows, 32}, {"out", columns}},
            .tensors = {{.order = {"mb", "out"}},
                        {.order = {"out", "mb"}, .stick = {"mb"}, .base = fp16(rows * columns)}}};
  const int64_t bytes = 2 * fp16(rows * columns);
  return {.name = name,
          .bytes = static_cast<double>(bytes),
          .hbm_bytes = static_cast<size_t>(bytes),
          .ops = {op}};
}

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  cases.push_back(matmul("matmul", 1024, 4096, 4096, {4, 8, 1}));
  cases.push_back(matmul("matmul_ksplit", 1024, 4096, 4096, {1, 8, 4}));
  cases.push_back(batched("matmul_batched", 32, 512, 128, 512));
  cases.push_back(matmul("matmul_decode", 1, 12800, 4096, {1, 25, 1}));
  cases.push_back(pointwise("add", "add", 2, 4096, 8192));
  cases.push_back(pointwise("exp", "exp", 1, 4096, 8192));
  cases.push_back(softmax("softmax", 4096, 4096));
  cases.push_back(restickify("restickify", 4096, 4096));
  cases.push_back(pointwise("launch", "add", 2, 32, 64));
  return cases;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

std::string as_json(const Case& c, double seconds) {
  return fmt::format(R"({{"case": "{}", "seconds": {:.6e}, "gflops": {:.3f}, "gbps": {:.3f}}})", c.name,
                     seconds, c.flops / seconds * 1e-9, c.bytes / seconds * 1e-9);
}

int serve(std::vector<Case>& cases) {
  for (std::string name; std::getline(std::cin, name);) {
    for (Case& c : cases) {
      if (c.name == name) {
        c.open();
        std::cout << as_json(c, c.seconds()) << std::endl;
      } else {
        c.close();  // one case's memory at a time
      }
    }
  }
  return 0;
}

int report(std::vector<Case>& cases, const std::string& only, int rounds, bool json) {
  for (Case& c : cases) {
    if (!only.empty() && c.name != only) {
      continue;
    }
    c.open();
    std::vector<double> seconds;
    for (int i = 0; i < rounds; ++i) {
      seconds.push_back(c.seconds());
    }
    c.close();
    const double middle = median(seconds);
    if (json) {
      std::cout << as_json(c, middle) << std::endl;
    } else {
      std::cout << fmt::format("{:16} {:12.3f} us {:10.2f} GFLOP/s {:8.2f} GB/s", c.name, middle * 1e6,
                               c.flops / middle * 1e-9, c.bytes / middle * 1e-9)
                << std::endl;
    }
  }
  return 0;
}

/// Medians of the ratios of neighbouring runs: counts against none, checker against none. 1 where a goal is
/// missed.
int report_overheads(std::vector<Case>& cases, const std::string& only, int rounds) {
  constexpr double kCountGoal = 1.03, kCheckGoal = 10;
  bool missed = false;
  for (Case& c : cases) {
    if (!only.empty() && c.name != only) {
      continue;
    }
    c.open();
    Checker checker;
    checker.note_host_write(0, c.hbm_bytes, "everything");
    std::vector<double> counted, checked;
    for (int i = 0; i < rounds; ++i) {
      const double plain = c.seconds(false);
      counted.push_back(c.seconds() / plain);
      checked.push_back(c.seconds_checked(checker) / plain);
    }
    c.close();
    const double count = median(counted), check = median(checked);
    const bool tiny = c.name == "launch";  // no work to compare with: the price of a launch, no goal
    const bool too_slow = !tiny && (count > kCountGoal || check > kCheckGoal);
    missed |= too_slow;
    std::cout << fmt::format("{:16} with counts x {:.3f}   with checker x {:.3f}   {}", c.name, count, check,
                             tiny       ? "no goal"
                             : too_slow ? fmt::format("missed: {} and {}", kCountGoal, kCheckGoal)
                                        : "")
              << std::endl;
  }
  return missed ? 1 : 0;
}

}  // namespace

int main_of(int argc, char** argv) {
  CLI::App app("Speed of the emulated card");
  int threads = 2, rounds = 7;
  bool json = false, serving = false, overheads = false, cpu = false;
  std::string only;
  app.add_option("--threads", threads, "host threads");
  app.add_option("--rounds", rounds, "runs per case; the median counts");
  app.add_option("--case", only, "one case");
  app.add_flag("--cpu", cpu, "processor time instead of wall time: on machines that others use");
  app.add_flag("--json", json, "JSON lines");
  app.add_flag("--overheads", overheads, "what counting and checking add");
  app.add_flag("--serve", serving, "answer case names from stdin");
  CLI11_PARSE(app, argc, argv);
  set_parallel_threads(threads);
  std::vector<Case> cases = all_cases();
  for (Case& c : cases) {
    c.clock = cpu ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC;
  }
  if (overheads) {
    return report_overheads(cases, only, rounds);
  }
  return serving ? serve(cases) : report(cases, only, rounds, json);
}

}  // namespace spyre::bench

int main(int argc, char** argv) {
  try {
    return spyre::bench::main_of(argc, argv);
  } catch (const std::exception& failure) {
    std::cerr << "exec_bench: " << failure.what() << '\n';
    return 1;
  }
}
