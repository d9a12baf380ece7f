// Device memory traffic of whole layers: as executed with and without LX, against what nobody can avoid.
//
//   lx_traffic [--corpus tests/corpus/layers] [--cores 32] [--explain]
//
//   off, on      bytes the artifacts read and write in HBM, by the card's own counts: without LX, and with it
//   joint        with divisions chosen together with LX, sums in the same order
//   free         the same, sums in any order
//   compulsory   every input that is read and every result, once; ratios are to this
//   plan ms      time of the planning passes, joint
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>

#include "spyre/base/json.h"
#include "spyre/device/exec/count_run.h"
#include "spyre/driver/compile.h"
#include "spyre/lx/compulsory.h"
#include "spyre/lx/core_view.h"
#include "spyre/lx/graph_access.h"
#include "spyre/program/read_program.h"

namespace spyre {
namespace {

int64_t executed(const CompiledGraph& compiled) {
  const program::DeviceProgram program = program::read_program(compiled.bundle.files).value();
  const exec::Traffic traffic = exec::count_run(program).value().total().traffic;
  return traffic.hbm_read + traffic.hbm_written;
}

double mib(int64_t bytes) {
  return static_cast<double>(bytes) / (1 << 20);
}

// The buffers that cause traffic beyond the compulsory, most first, with what LX planning says about them.
std::string excess(const DeviceGraph& graph) {
  const lx::GraphAccess access = lx::access_of(graph).value();
  std::vector<std::pair<int64_t, std::string>> lines;
  for (size_t b = 0; b < graph.buffers.size(); ++b) {
    const Buffer& buffer = graph.buffers[b];
    if (buffer.place && buffer.place->kind == BufferPlace::Kind::kLx) continue;
    int64_t moved = 0;
    std::string touches;
    for (const lx::BufferTouch& touch : access.touches[b]) {
      const int64_t bytes =
          128 * lx::sticks_moved(access.ops[touch.node], touch.operand, access.layouts[touch.node]);
      moved += bytes;
      touches += fmt::format(" {} {:.2f}", to_string(access.ops[touch.node].op.op), mib(bytes));
    }
    const bool once = buffer.is_input || graph.is_result(static_cast<BufferId>(b));
    const int64_t more = moved - (once && moved > 0 ? buffer.layout->byte_size().value().count() : 0);
    if (more > 0)
      lines.emplace_back(more, fmt::format("    +{:.2f} {}:{}\n", mib(more), buffer.name, touches));
  }
  std::sort(lines.rbegin(), lines.rend());
  std::string text;
  for (size_t i = 0; i < std::min<size_t>(lines.size(), 12); ++i) text += lines[i].second;
  return text;
}

// Milliseconds of the passes that plan.
double planning_ms(const PassLog& log) {
  double ms = 0;
  for (const PassLog::Entry& entry : log.entries()) {
    if (entry.pass == "align-divisions" || entry.pass == "co-optimize" || entry.pass == "plan-scratchpad")
      ms += static_cast<double>(entry.time.count()) / 1e6;
  }
  return ms;
}

void row(const std::filesystem::path& path, int64_t cores, bool explain) {
  const Graph graph = parse_graph(read_text(path).value(), path.string()).value();
  PassLog log;
  const CompiledGraph off = compile(graph, {.cores = cores, .lx_planning = false}).value();
  const CompiledGraph on = compile(graph, {.cores = cores, .co_optimize = false}).value();
  const CompiledGraph joint = compile(graph, {.cores = cores}, log).value();
  const CompiledGraph free = compile(graph, {.cores = cores, .keep_sums = false}).value();
  const int64_t least = lx::compulsory_bytes(off.graph).value().count();
  const auto ratio = [&](const CompiledGraph& plan) {
    return static_cast<double>(executed(plan)) / static_cast<double>(least);
  };
  fmt::print("{:<16} {:>9.2f} {:>9.2f} {:>9.2f} {:>9.2f} {:>11.2f} {:>7.3f} {:>7.3f} {:>8.0f}\n",
             path.stem().string(), mib(executed(off)), mib(executed(on)), mib(executed(joint)),
             mib(executed(free)), mib(least), ratio(joint), ratio(free), planning_ms(log));
  if (explain) fmt::print("{}{}", joint.joint->to_text(), excess(joint.graph));
}

int run(const std::string& corpus, int64_t cores, bool explain) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(corpus)) {
    if (entry.path().extension() == ".ir") paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  fmt::print("{:<16} {:>9} {:>9} {:>9} {:>9} {:>11} {:>7} {:>7} {:>8}\n", "MiB of HBM", "off", "on", "joint",
             "free", "compulsory", "ratio", "free", "plan ms");
  for (const auto& path : paths) row(path, cores, explain);
  return 0;
}

}  // namespace
}  // namespace spyre

int main(int argc, char** argv) {
  CLI::App app("Device memory traffic of whole layers, with and without LX", "lx_traffic");
  std::string corpus = "tests/corpus/layers";
  int64_t cores = 32;
  bool explain = false;
  app.add_option("--corpus", corpus, "Folder of graphs")->check(CLI::ExistingDirectory);
  app.add_option("--cores", cores, "Cores that work is divided over")->check(CLI::Range(1, 32));
  app.add_flag("--explain", explain, "Say what moves more often than once");
  CLI11_PARSE(app, argc, argv);
  return spyre::run(corpus, cores, explain);
}
