#pragma once

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <functional>
#include <random>

#include "spyre/base/json.h"
#include "spyre/device/exec/checked_run.h"
#include "spyre/device/exec/executor.h"
#include "spyre/device/exec/test_memory.h"
#include "spyre/driver/compile.h"
#include "spyre/layout/pack.h"
#include "spyre/layout/small_float.h"
#include "spyre/program/read_program.h"

/// Graphs compiled, run and counted: what plans are compared by.
namespace spyre::lx_test {

inline Graph graph_at(const std::filesystem::path& path) {
  return parse_graph(read_text(path).value(), path.string()).value();
}

inline std::vector<std::filesystem::path> graphs_in(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".ir") paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

/// The same as names of tests.
inline std::vector<std::string> names_in(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  for (const auto& path : graphs_in(folder)) names.push_back(path.stem());
  return names;
}

struct Executed {
  std::vector<std::vector<std::byte>> outputs;  ///< host elements
  exec::Traffic traffic;
  std::vector<exec::Finding> findings;
};

/// Values in [-1, 1) that depend on the position alone; constants hold what they are filled with.
inline std::vector<std::byte> host_values(const KernelArgument& argument, unsigned seed) {
  const int64_t count = numel_of(argument.size);
  std::mt19937 random(seed);
  std::vector<std::byte> host(static_cast<size_t>(count * info_of(argument.dtype).host_bytes));
  for (int64_t i = 0; i < count; ++i) {
    float value = static_cast<float>(random() >> 8) / static_cast<float>(1 << 23) - 1.0f;
    if (argument.role == KernelArgument::Role::kConstant) {
      const int64_t last = argument.size.empty() ? 1 : argument.size.back();
      value = static_cast<float>(argument.fill.start + argument.fill.step * static_cast<double>(i % last));
    }
    if (argument.dtype == HostType::kFloat16) {
      const uint16_t bits = fp16_from_fp32(value);
      std::memcpy(host.data() + 2 * i, &bits, 2);
    } else {
      SPYRE_CHECK(argument.dtype == HostType::kFloat32, "graphs of the corpus take floats");
      std::memcpy(host.data() + 4 * i, &value, 4);
    }
  }
  return host;
}

/// Runs a compiled graph on inputs that depend on their position among the arguments, under the checker.
inline Executed run(const CompiledGraph& compiled) {
  constexpr int64_t kGuard = 1024;
  const program::DeviceProgram program = program::read_program(compiled.bundle.files).value();
  exec::Checker checker;
  std::vector<int64_t> base;
  int64_t end = kGuard;
  for (const KernelArgument& argument : compiled.arguments) {
    const int64_t bytes = argument.layout.byte_size().value().count();
    base.push_back(end);
    checker.note_alloc(end, bytes, argument.name);
    if (argument.role != KernelArgument::Role::kOutput) checker.note_host_write(end, bytes, argument.name);
    end += round_up(bytes, 128) + kGuard;
  }
  exec::TestMemory memory(static_cast<size_t>(end + program.pool_bytes + (1 << 20)));
  const auto bytes_of = [&](size_t i) {
    return std::span(memory.hbm())
        .subspan(static_cast<size_t>(base[i]),
                 static_cast<size_t>(compiled.arguments[i].layout.byte_size().value().count()));
  };
  const auto view_of = [](const KernelArgument& a) {
    return ViewGeometry::whole(a.size, contiguous_strides(a.size));
  };
  for (size_t i = 0; i < compiled.arguments.size(); ++i) {
    const KernelArgument& a = compiled.arguments[i];
    if (a.role == KernelArgument::Role::kOutput) continue;
    const std::vector<std::byte> host = host_values(a, static_cast<unsigned>(i) + 1);
    const ConstHostBuffer source{host.data(), a.dtype, a.size, contiguous_strides(a.size)};
    SPYRE_CHECK(pack(source, a.layout, view_of(a), bytes_of(i)).ok(), "inputs pack");
  }
  exec::LaunchValues launch;
  launch.pool_base = end;
  for (const program::Parameter& p : program.parameters)
    launch.parameters.push_back(p.arg_index ? base[static_cast<size_t>(*p.arg_index)] : end);
  Executed result;
  result.findings = exec::check_launch(program, launch, checker).findings;
  const Result<exec::RunCounts> counts = exec::execute(program, launch, memory);
  SPYRE_CHECK(counts.ok(), counts.ok() ? "" : counts.error().to_string());
  result.traffic = counts.value().total().traffic;
  for (size_t i = 0; i < compiled.arguments.size(); ++i) {
    const KernelArgument& a = compiled.arguments[i];
    if (a.role != KernelArgument::Role::kOutput) continue;
    std::vector<std::byte> host(static_cast<size_t>(numel_of(a.size) * info_of(a.dtype).host_bytes));
    const HostBuffer target{host.data(), a.dtype, a.size, contiguous_strides(a.size)};
    SPYRE_CHECK(unpack(bytes_of(i), a.layout, view_of(a), target).ok(), "outputs unpack");
    result.outputs.push_back(std::move(host));
  }
  return result;
}

/// Visits the elements of results of 16-bit floats.
inline void for_each_value(const std::vector<std::vector<std::byte>>& outputs,
                           const std::function<void(size_t output, size_t at, double value)>& visit) {
  for (size_t o = 0; o < outputs.size(); ++o) {
    for (size_t at = 0; at + 1 < outputs[o].size(); at += 2) {
      uint16_t bits = 0;
      std::memcpy(&bits, outputs[o].data() + at, 2);
      visit(o, at, fp32_from_fp16(bits));
    }
  }
}

/// The largest value, and the largest difference between two results.
inline double magnitude(const std::vector<std::vector<std::byte>>& a) {
  double most = 0;
  for_each_value(a, [&](size_t, size_t, double value) { most = std::max(most, std::abs(value)); });
  return most;
}

inline double distance(const std::vector<std::vector<std::byte>>& a,
                       const std::vector<std::vector<std::byte>>& b) {
  double most = 0;
  for_each_value(a, [&](size_t output, size_t at, double value) {
    uint16_t bits = 0;
    std::memcpy(&bits, b[output].data() + at, 2);
    most = std::max(most, std::abs(value - static_cast<double>(fp32_from_fp16(bits))));
  });
  return most;
}

}  // namespace spyre::lx_test
