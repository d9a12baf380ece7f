// spyre-run: executes a bundle on an emulated card and says what it computed and what it moved.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <map>
#include <random>
#include <thread>

#include "spyre/base/json.h"
#include "spyre/base/text.h"
#include "spyre/device/timing/chrome_trace.h"
#include "spyre/device/timing/program_facts.h"
#include "spyre/device/timing/simulate.h"
#include "spyre/layout/number_policy.h"
#include "spyre/layout/pack.h"
#include "spyre/layout/small_float.h"
#include "spyre/report/time_page.h"
#include "spyre/runtime/launch.h"
#include "spyre/runtime/runtime.h"
#include "tools/bundle_directory.h"
#include "tools/exit_code.h"
#include "tools/npy.h"
#include "tools/time_report.h"

namespace spyre::tools {
namespace {

using Clock = std::chrono::steady_clock;

struct Options {
  std::string bundle;
  std::vector<std::string> inputs, extents;
  std::string output, machine, trace, facts, report;
  unsigned seed = 0;
  int repeat = 1;
  bool interpreter = false, no_counters = false, check = false, json = false, time = false;

  bool wants_time() const { return time || !machine.empty() || !trace.empty() || wants_facts(); }
  bool wants_facts() const { return !facts.empty() || !report.empty(); }
};

/// One tensor argument, on the host and on the card.
struct Argument {
  const program::LaunchArg* spec = nullptr;
  HostType type = HostType::kFloat16;
  std::vector<int64_t> shape;
  DeviceLayout layout;
  Sen169Policy policy = Sen169Policy::kVendor;
  std::vector<std::byte> host;  // elements in C order
  MemoryRef memory;

  bool is_input() const { return spec->role != "output"; }
  bool is_output() const { return spec->role != "input"; }
  int64_t numel() const { return numel_of(shape); }
  /// Where its elements lie in the storage that the layout describes.
  ViewGeometry view() const {
    const std::vector<int64_t> strides = spec->stride.empty() ? contiguous_strides(shape) : spec->stride;
    if (spec->offset == 0 && spec->storage == 0) return ViewGeometry::whole(shape, strides);
    return ViewGeometry::of(shape, strides, spec->offset, spec->storage);
  }
};

Error usage(std::string text) {
  return Error(ErrorKind::kInvalidArgument, std::move(text));
}

/// `key=value` lists of the command line.
Result<std::map<std::string, std::string>> pairs_of(const std::vector<std::string>& texts) {
  std::map<std::string, std::string> out;
  for (const std::string& text : texts) {
    const size_t at = text.find('=');
    if (at == std::string::npos || at == 0 || at + 1 == text.size()) {
      return usage(fmt::format("found '{}', allowed: key=value", text));
    }
    out[text.substr(0, at)] = text.substr(at + 1);
  }
  return out;
}

/// NumPy's name for a host type; types NumPy lacks travel as their bits.
std::string descr_of(HostType type) {
  switch (type) {
    case HostType::kFloat16:
      return "<f2";
    case HostType::kFloat32:
      return "<f4";
    case HostType::kBool:
      return "|b1";
    case HostType::kInt8:
      return "|i1";
    case HostType::kInt16:
      return "<i2";
    case HostType::kInt32:
      return "<i4";
    case HostType::kInt64:
      return "<i8";
    case HostType::kBFloat16:
      return "<u2";
    case HostType::kUInt8:
    case HostType::kFloat8E4M3FN:
    case HostType::kFloat8E5M2FNUZ:
      return "|u1";
  }
  return "";
}

/// Extents of this run by name: those asked for, else the largest the kernel was compiled for.
Result<std::map<std::string, int64_t>> extents_of(const JobPlan& plan, const Options& options) {
  std::map<std::string, int64_t> extents;
  for (const JobStep& step : plan.steps()) {
    const auto* compute = std::get_if<HostCompute>(&step.what);
    for (const ParameterSource& source :
         compute != nullptr && compute->parameters ? *compute->parameters : std::vector<ParameterSource>()) {
      if (!source.is_address()) {
        extents[source.symbol] = source.max_value;
      }
    }
  }
  SPYRE_ASSIGN_OR_RETURN(const auto asked, pairs_of(options.extents));
  for (const auto& [name, value] : asked) {
    if (!extents.contains(name) || value.find_first_not_of("0123456789") != std::string::npos ||
        value.size() > 15) {
      return usage(
          fmt::format("--extent {}={}: the kernel has no such extent, or this is no number", name, value));
    }
    extents[name] = std::stoll(value);
  }
  return extents;
}

Result<Argument> describe(const program::LaunchArg& spec, const std::map<std::string, int64_t>& extents) {
  Argument argument{.spec = &spec};
  const std::optional<HostType> type = host_type_from_name(spec.dtype);
  if (!type || !spec.device_format || spec.device_size.empty()) {
    return Error(
        ErrorKind::kInvalidArgument,
        fmt::format(
            "launch_spec.json: argument {}: found dtype '{}' and {} layout, allowed: a dtype of the card "
            "and a whole layout",
            spec.arg_index, spec.dtype, spec.device_size.empty() ? "no" : "a"));
  }
  argument.type = *type;
  SPYRE_ASSIGN_OR_RETURN(argument.policy, number_policy_setting());
  for (const auto& size : spec.shape) {
    const auto* name = std::get_if<std::string>(&size);
    if (name != nullptr && !extents.contains(*name)) {
      return Error(
          ErrorKind::kInvalidArgument,
          fmt::format("launch_spec.json: argument {}: the kernel has no extent {}", spec.arg_index, *name));
    }
    argument.shape.push_back(name != nullptr ? extents.at(*name) : std::get<int64_t>(size));
  }
  argument.layout =
      DeviceLayout::raw(spec.device_size, spec.stride_map, *spec.device_format, spec.arrangement);
  // Index values are not negative: as bits they are the same in both formats, and only this one travels.
  const bool integer = argument.type == HostType::kInt32 || argument.type == HostType::kInt64;
  if (integer && argument.layout.device_dtype == DataFormat::SENUINT32) {
    argument.layout.device_dtype = DataFormat::IEEE_INT32;
  }
  SPYRE_TRY(argument.layout.check_well_formed());
  argument.host.resize(static_cast<size_t>(argument.numel() * info_of(argument.type).host_bytes));
  return argument;
}

/// The bits of a value in a float type of the host; nothing for types that are no floats.
std::optional<uint32_t> float_bits(HostType type, float value) {
  switch (type) {
    case HostType::kFloat32:
      return std::bit_cast<uint32_t>(value);
    case HostType::kFloat16:
      return fp16_from_fp32(value);
    case HostType::kBFloat16:
      return bf16_from_fp32(value);
    case HostType::kFloat8E4M3FN:
      return e4m3fn_from_fp32(value);
    case HostType::kFloat8E5M2FNUZ:
      return e5m2fnuz_from_fp32(value);
    default:
      return std::nullopt;
  }
}

/// Floats in [-1, 1), integers 0 to 3, the same for every run with the same seed.
void fill_random(Argument& argument, unsigned seed) {
  std::mt19937 random(seed * 1000003u + static_cast<unsigned>(argument.spec->arg_index));
  const auto width = static_cast<size_t>(info_of(argument.type).host_bytes);
  const uint32_t choices = argument.type == HostType::kBool ? 2 : 4;
  for (size_t at = 0; at < argument.host.size(); at += width) {
    const uint32_t drawn = random();
    const float value = static_cast<float>(drawn >> 8) / static_cast<float>(1 << 23) - 1.0f;
    const uint32_t bits = float_bits(argument.type, value).value_or(drawn % choices);
    std::memcpy(argument.host.data() + at, &bits, std::min(width, sizeof bits));
  }
}

Status load_input(Argument& argument, const std::string& file) {
  SPYRE_ASSIGN_OR_RETURN(const NpyArray array, read_npy(file, static_cast<int64_t>(argument.host.size())));
  if (array.shape != argument.shape || array.descr != descr_of(argument.type)) {
    return usage(fmt::format("{}: found {} of {}, allowed: {} of {}, as argument {} is", file,
                             list_text(array.shape), array.descr, list_text(argument.shape),
                             descr_of(argument.type), argument.spec->arg_index));
  }
  argument.host = array.data;
  return Status();
}

/// An expanded axis shows one element many times: it is sent once.
void send_once(ViewGeometry& view, ConstHostBuffer& source) {
  for (size_t d = 0; d < view.sizes.size(); ++d) {
    if (view.strides[d] == 0 && view.sizes[d] > 1) {
      view.sizes[d] = 1;
      source.sizes[d] = 1;
    }
  }
}

Status send(Card& card, Argument& argument) {
  SPYRE_ASSIGN_OR_RETURN(const Bytes size, argument.layout.byte_size());
  SPYRE_ASSIGN_OR_RETURN(argument.memory, card.allocate(size));
  if (!argument.is_input() || argument.numel() == 0) {
    return Status();
  }
  ConstHostBuffer source{argument.host.data(), argument.type, argument.shape,
                         contiguous_strides(argument.shape)};
  ViewGeometry view = argument.view();
  send_once(view, source);
  return transfer(
      card.streams().default_stream(), MemoryView::whole(argument.memory), TransferDirection::kToDevice,
      [&](std::span<std::byte> device) {
        return pack(source, argument.layout, view, device, argument.policy);
      },
      Blocking::kYes);
}

Status fetch(Card& card, Argument& argument) {
  if (argument.numel() == 0) {
    return Status();
  }
  const HostBuffer target{argument.host.data(), argument.type, argument.shape,
                          contiguous_strides(argument.shape)};
  return transfer(
      card.streams().default_stream(), MemoryView::whole(argument.memory), TransferDirection::kToHost,
      [&](std::span<std::byte> device) {
        return unpack(device, argument.layout, argument.view(), target, argument.policy);
      },
      Blocking::kYes);
}

/// Launches and waits; says every two seconds that it is still at it.
Status run_to_end(const JobPlanRef& plan, const std::vector<LaunchTensor>& tensors, const StreamRef& stream) {
  Status outcome;
  std::exception_ptr bug;
  std::atomic<bool> done = false;
  std::thread worker([&] {
    try {
      outcome = launch(plan, tensors, stream, Blocking::kYes);
    } catch (...) {
      bug = std::current_exception();
    }
    done.store(true);
    done.notify_all();
  });
  const auto start = Clock::now();
  auto next = start + std::chrono::seconds(2);
  while (!done.load()) {
    if (Clock::now() >= next) {
      std::fprintf(
          stderr, "running, %lld s\n",
          static_cast<long long>(std::chrono::duration_cast<std::chrono::seconds>(next - start).count()));
      next += std::chrono::seconds(2);
    }
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  worker.join();
  if (bug != nullptr) {
    std::rethrow_exception(bug);
  }
  return outcome;
}

Json counts_json(const exec::CoreCounts& counts) {
  return {{"hbm_read", counts.traffic.hbm_read},
          {"hbm_written", counts.traffic.hbm_written},
          {"lx_read", counts.traffic.lx_read},
          {"lx_written", counts.traffic.lx_written},
          {"ring_bytes", counts.ring_bytes},
          {"ring_byte_hops", counts.ring_byte_hops},
          {"macs", counts.macs},
          {"vector_elements", counts.vector_elements},
          {"useful_elements", counts.useful_elements}};
}

struct Outcome {
  double best_ms = 0;
  exec::RunCounts counts;
  std::vector<LoadedProgramRef> programs;  // one per bundle
  std::vector<TimedProgram> timed;         // the same, if anyone asks for the time
  CardModel card;                          // they are timed on

  /// The operations that were counted, in the order of `counts`.
  std::vector<const program::ProgramOp*> counted() const {
    std::vector<const program::ProgramOp*> ops;
    for (const LoadedProgramRef& program : programs) {
      for (const program::ProgramOp& op : program->program().ops) ops.push_back(&op);
    }
    ops.resize(counts.ops.size());
    return ops;
  }
};

Json outcome_json(const std::vector<Argument>& arguments, const Outcome& outcome, const Options& options) {
  Json ops = Json::array(), outputs = Json::array();
  const std::vector<const program::ProgramOp*> counted = outcome.counted();
  for (size_t i = 0; i < counted.size(); ++i) {
    Json op = {
        {"file", counted[i]->file}, {"op", counted[i]->name}, {"executes", outcome.counts.ops[i].executes}};
    op.update(counts_json(outcome.counts.ops[i].total()));
    ops.push_back(std::move(op));
  }
  for (const Argument& argument : arguments) {
    if (argument.is_output()) {
      outputs.push_back({{"arg_index", argument.spec->arg_index},
                         {"shape", argument.shape},
                         {"dtype", to_string(argument.type)}});
    }
  }
  return {{"executor", options.interpreter ? "interpreter" : "fast"},
          {"runs", options.repeat},
          {"best_ms", outcome.best_ms},
          {"outputs", outputs},
          {"ops", ops},
          {"total", counts_json(outcome.counts.total())}};
}

/// Extents of this launch as each program has them, in signature order; addresses do not matter to the time.
Result<std::vector<exec::LaunchValues>> launch_values(const JobPlan& plan, const Options& options) {
  SPYRE_ASSIGN_OR_RETURN(const auto extents, extents_of(plan, options));
  std::vector<exec::LaunchValues> values;
  std::optional<exec::LaunchValues> next;
  for (const JobStep& step : plan.steps()) {
    if (const auto* host = std::get_if<HostCompute>(&step.what); host != nullptr && host->parameters) {
      next.emplace();
      for (const ParameterSource& source : *host->parameters) {
        next->parameters.push_back(source.is_address() ? 0 : extents.at(source.symbol));
      }
    } else if (std::holds_alternative<Compute>(step.what)) {
      values.push_back(std::exchange(next, std::nullopt).value_or(exec::LaunchValues()));
    }
  }
  return values;
}

/// Writes the facts of the run, and the page that shows them.
Status write_facts(const std::string& kernel, const std::vector<exec::LaunchValues>& values,
                   const Options& options, const Outcome& outcome) {
  std::vector<timing::LaunchedProgram> launched;
  for (size_t i = 0; i < outcome.programs.size(); ++i) {
    timing::LaunchedProgram& program = launched.emplace_back();
    program.program = &outcome.programs[i]->program();
    program.launch = values[i];
    program.origins = origins_in(options.bundle, outcome.programs.size() > 1 ? static_cast<int>(i) : -1);
  }
  SPYRE_ASSIGN_OR_RETURN(Json facts,
                         timing::program_facts(kernel, launched, outcome.card, timing::Detail::kCores));
  facts["made"] = {{"by", "spyre-run"}};
  if (!options.facts.empty()) SPYRE_TRY(write_text(options.facts, facts.dump()));
  return options.report.empty() ? Status() : write_text(options.report, report::time_page(facts));
}

/// Times the programs of the run, and writes the trace and the report.
Status add_times(const std::string& kernel, const JobPlan& plan, const Options& options, Outcome& outcome) {
  SPYRE_ASSIGN_OR_RETURN(std::vector<exec::LaunchValues> values, launch_values(plan, options));
  for (size_t i = 0; i < outcome.programs.size(); ++i) {
    const program::DeviceProgram& program = outcome.programs[i]->program();
    if (values.at(i).parameters.empty()) values[i] = timing::largest_extents(program);
    const auto detail = options.trace.empty() ? timing::Detail::kExecutes : timing::Detail::kCores;
    SPYRE_ASSIGN_OR_RETURN(
        timing::Timeline timeline,
        timing::simulate(program, values[i], outcome.card.machine, outcome.card.rates, detail));
    outcome.timed.push_back({&program, std::move(timeline)});
  }
  if (options.wants_facts()) SPYRE_TRY(write_facts(kernel, values, options, outcome));
  if (options.trace.empty()) return Status();
  if (outcome.timed.size() != 1) {
    return usage(fmt::format("--trace: found a kernel of {} bundles, allowed: one", outcome.timed.size()));
  }
  return write_text(options.trace,
                    timing::chrome_trace(outcome.timed.front().timeline, *outcome.timed.front().program));
}

void print_counts(const Outcome& outcome) {
  constexpr const char* kRow = "{:<14} {:<16} {:>8} {:>12} {:>12} {:>12} {:>12} {:>12} {:>14} {:>12}\n";
  fmt::print(kRow, "file", "op", "executes", "HBM read", "HBM written", "LX read", "LX written", "ring",
             "MACs", "elements");
  const auto row = [&](const std::string& file, const std::string& op, int64_t executes,
                       const exec::CoreCounts& counts) {
    fmt::print(kRow, file, op, executes, counts.traffic.hbm_read, counts.traffic.hbm_written,
               counts.traffic.lx_read, counts.traffic.lx_written, counts.ring_bytes, counts.macs,
               counts.vector_elements);
  };
  int64_t executes = 0;
  const std::vector<const program::ProgramOp*> counted = outcome.counted();
  for (size_t i = 0; i < counted.size(); ++i) {
    const exec::OpCounts& op = outcome.counts.ops[i];
    row(counted[i]->file, counted[i]->name, op.executes, op.total());
    executes += op.executes;
  }
  row("total", "", executes, outcome.counts.total());
}

Status save_outputs(const std::vector<Argument>& arguments, const std::string& directory) {
  std::error_code failure;
  std::filesystem::create_directories(directory, failure);
  if (failure) {
    return usage(fmt::format("{}: {}", directory, failure.message()));
  }
  for (const Argument& argument : arguments) {
    if (argument.is_output()) {
      SPYRE_TRY(
          write_npy(std::filesystem::path(directory) / fmt::format("arg_{}.npy", argument.spec->arg_index),
                    {descr_of(argument.type), argument.shape, argument.host}));
    }
  }
  return Status();
}

/// Reads inputs, and takes every one to the card.
Result<std::vector<Argument>> set_up(Card& card, const JobPlan& plan, const BundleDirectory& bundle,
                                     const Options& options) {
  SPYRE_ASSIGN_OR_RETURN(const auto extents, extents_of(plan, options));
  SPYRE_ASSIGN_OR_RETURN(auto files, pairs_of(options.inputs));
  std::vector<Argument> arguments;
  for (const program::LaunchArg& spec : bundle.launch.args) {
    if (spec.is_constant()) continue;  // loaded with the kernel
    SPYRE_ASSIGN_OR_RETURN(Argument argument, describe(spec, extents));
    const auto file = files.find(std::to_string(spec.arg_index));
    if (file != files.end() && argument.is_input()) {
      SPYRE_TRY(load_input(argument, file->second));
      files.erase(file);
    } else if (argument.is_input()) {
      fill_random(argument, options.seed);
    }
    SPYRE_TRY(send(card, argument));
    arguments.push_back(std::move(argument));
  }
  if (!files.empty()) {
    return usage(fmt::format("--input {}={}: the kernel has no such input", files.begin()->first,
                             files.begin()->second));
  }
  std::sort(arguments.begin(), arguments.end(),
            [](const Argument& a, const Argument& b) { return a.spec->arg_index < b.spec->arg_index; });
  return arguments;
}

int run(const Options& options) {
  const Result<CardModel> model = card_model_of(options.machine);
  if (!model.ok()) return report(model.error(), kBadUsage);
  const auto bundle = open_bundle(options.bundle);
  if (!bundle.ok()) {
    return report(bundle.error(), kBadArtifact);
  }
  Runtime runtime(spyre_card());
  const auto card = runtime.card(0);
  if (!card.ok()) {
    return report(card.error(), kBadUsage);
  }
  card.value()->set_execution({.executor = options.interpreter ? Executor::kInterpreter : Executor::kFast,
                               .count = !options.no_counters,
                               .check = options.check});
  const auto plan = prepare_kernel(*card.value(), bundle.value().code);
  if (!plan.ok()) {
    return report(plan.error(), kBadArtifact);
  }
  auto arguments = set_up(*card.value(), *plan.value(), bundle.value(), options);
  if (!arguments.ok()) {
    return report(arguments.error(), kBadUsage);
  }
  std::vector<LaunchTensor> tensors;
  if (bundle.value().launch.pool_size > 0) {
    const auto pool = card.value()->allocate(Bytes(bundle.value().launch.pool_size));
    if (!pool.ok()) {
      return report(pool.error(), kFault);
    }
    tensors.push_back({pool.value(), {}});
  }
  for (const Argument& argument : arguments.value()) {
    tensors.push_back({argument.memory, argument.shape});
  }
  Outcome outcome{.best_ms = INFINITY};
  for (int i = 0; i < options.repeat; ++i) {
    const auto start = Clock::now();
    const Status done = run_to_end(plan.value(), tensors, card.value()->streams().default_stream());
    if (!done.ok()) {
      return report(done.error(), done.error().kind == ErrorKind::kInvalidArgument ? kBadUsage : kFault);
    }
    outcome.best_ms =
        std::min(outcome.best_ms, std::chrono::duration<double, std::milli>(Clock::now() - start).count());
  }
  outcome.counts = plan.value()->last_run_counts();
  outcome.programs = plan.value()->last_programs();
  if (options.wants_time()) {
    outcome.card = model.value();
    const Status timed = add_times(bundle.value().launch.kernel_name, *plan.value(), options, outcome);
    if (!timed.ok()) return report(timed.error(), kBadUsage);
  }
  for (Argument& argument : arguments.value()) {
    if (const Status fetched = argument.is_output() ? fetch(*card.value(), argument) : Status();
        !fetched.ok()) {
      return report(fetched.error(), kBadArtifact);
    }
  }
  if (const Status saved =
          options.output.empty() ? Status() : save_outputs(arguments.value(), options.output);
      !saved.ok()) {
    return report(saved.error(), kBadUsage);
  }
  if (options.json) {
    Json json = outcome_json(arguments.value(), outcome, options);
    if (options.wants_time()) json["time"] = time_json(outcome.timed, outcome.card);
    fmt::print("{}\n", json.dump(2));
    return kDone;
  }
  fmt::print("{}: {} runs, best {:.3f} ms\n", bundle.value().launch.kernel_name, options.repeat,
             outcome.best_ms);
  if (!options.no_counters) {
    print_counts(outcome);
  }
  if (options.wants_time()) fmt::print("{}", time_text(time_json(outcome.timed, outcome.card)));
  return kDone;
}

}  // namespace
}  // namespace spyre::tools

int main(int argc, char** argv) {
  CLI::App app(
      "Runs a bundle on an emulated card. Inputs come from .npy files or from a seeded generator; counters "
      "go to "
      "stdout, outputs to .npy files.\nExit codes: 0 done, 1 command line or input files, 2 bad artifact, 3 "
      "device "
      "fault, 4 bug of the emulator.",
      "spyre-run");
  spyre::tools::Options options;
  app.add_option("bundle", options.bundle, "Compile directory, or its spyreCodeDir")
      ->required()
      ->check(CLI::ExistingDirectory);
  app.add_option("-i,--input", options.inputs,
                 "ARG=FILE.npy for the argument of that index; others are random");
  app.add_option("-e,--extent", options.extents, "NAME=N for a runtime extent; the largest otherwise");
  app.add_option("-o,--output", options.output, "Directory for arg_<index>.npy of every output");
  app.add_option("--seed", options.seed, "Seed of random inputs: floats in [-1, 1), integers 0 to 3")
      ->capture_default_str();
  app.add_option("--repeat", options.repeat, "Runs; the best time is shown")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  app.add_flag("--interpreter", options.interpreter,
               "Compute element by element, straight from the definitions");
  app.add_flag("--check", options.check,
               "Look at the launch before it runs, as a sanitizer would; a problem is a fault");
  app.add_flag("--no-counters", options.no_counters, "Do not count bytes and operations");
  app.add_flag("--time", options.time,
               "Say how long the card and the host would take, and what bounds each execute");
  app.add_option("--machine", options.machine,
                 "JSON file with the machine to time on (spyre/cost/card_model.h); implies --time")
      ->check(CLI::ExistingFile);
  app.add_option("--trace", options.trace, "Write what every core does when, for Perfetto; implies --time");
  app.add_option(
      "--report", options.report,
      "Write a self-contained page: what bounds the time, every core, LX, traffic; implies --time");
  app.add_option("--facts", options.facts,
                 "Write what the page shows as JSON, for spyre-report; implies --time");
  app.add_flag("--json", options.json, "Print JSON");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? spyre::tools::kDone : spyre::tools::kBadUsage;
  }
  return spyre::tools::guarded_main([&] { return spyre::tools::run(options); });
}
