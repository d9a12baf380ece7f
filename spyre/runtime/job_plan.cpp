#include "spyre/runtime/job_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "spyre/base/file.h"
#include "spyre/base/json.h"
#include "spyre/program/fields.h"
#include "spyre/program/launch_spec.h"
#include "spyre/runtime/activity_log.h"
#include "spyre/runtime/bundle_parts.h"
#include "spyre/runtime/constant_image.h"
#include "spyre/runtime/transfer.h"

namespace spyre {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPlanFile = "spyrecode.json";
constexpr const char* kLaunchSpecFile = "launch_spec.json";

/// The files of a kernel, wherever they are.
class KernelFiles {
 public:
  explicit KernelFiles(const fs::path& directory) : directory_(&directory) {}
  explicit KernelFiles(const std::map<std::string, std::string>& files) : files_(&files) {}

  bool has(const std::string& name) const {
    std::error_code failure;
    return files_ != nullptr ? files_->contains(name) : fs::exists(*directory_ / name, failure);
  }
  Result<std::string> read(const std::string& name, int64_t most_bytes = kMostTextBytes) const {
    if (files_ == nullptr) return read_file(*directory_ / name, most_bytes);
    const auto file = files_->find(name);
    if (file == files_->end())
      return Error(ErrorKind::kNotFound, fmt::format("the kernel has no file {}", name));
    return file->second;
  }

 private:
  const fs::path* directory_ = nullptr;
  const std::map<std::string, std::string>* files_ = nullptr;
};

Result<Json> load_plan(const KernelFiles& files) {
  SPYRE_ASSIGN_OR_RETURN(const std::string text, files.read(kPlanFile));
  return program::parse_bounded_json(text, kPlanFile);
}

Result<program::LaunchSpec> load_launch_spec(const KernelFiles& files) {
  if (!files.has(kLaunchSpecFile)) return program::LaunchSpec();
  SPYRE_ASSIGN_OR_RETURN(const std::string text, files.read(kLaunchSpecFile));
  SPYRE_ASSIGN_OR_RETURN(const Json json, program::parse_bounded_json(text, kLaunchSpecFile));
  return program::read_launch_spec(json, kLaunchSpecFile);
}

/// Launch tensors come in the order of arg_index; the launch spec, where there is one, says which exist.
std::vector<int> arg_order(const program::LaunchSpec& spec) {
  std::vector<int> order;
  for (const program::LaunchArg& arg : spec.args) {
    order.push_back(arg.arg_index);
  }
  std::sort(order.begin(), order.end());
  return order;
}

Result<std::string> load_binary(const KernelFiles& files, const InitTransfer& init) {
  SPYRE_ASSIGN_OR_RETURN(std::string bytes, files.read(init.file, init.size.count()));
  if (static_cast<int64_t>(bytes.size()) != init.size.count()) {
    return Error(ErrorKind::kInvalidArgument,
                 fmt::format("{}: found {} bytes, allowed: {}, as {} says", init.file, bytes.size(),
                             init.size.count(), kPlanFile));
  }
  return bytes;
}

std::string default_kernel_name(const fs::path& directory) {
  // A trailing slash would make the last component empty.
  const fs::path clean = fs::path(directory / "").parent_path();
  return (clean.parent_path().filename() / clean.filename() / "bundle.mlir").string();
}

/// Queues the copy; the work owns the bytes.
Status queue_init(const StreamRef& stream, const MemoryRef& memory, const InitTransfer& init,
                  std::string bytes) {
  return transfer(
      stream, {memory, init.offset, init.size}, TransferDirection::kToDevice,
      [bytes = std::make_shared<const std::string>(std::move(bytes))](std::span<std::byte> device) -> Status {
        std::memcpy(device.data(), bytes->data(), bytes->size());
        return {};
      },
      Blocking::kNo);
}

/// Takes memory for a constant and queues its contents.
Result<MemoryRef> queue_constant(Card& card, const StreamRef& stream, const program::LaunchArg& arg,
                                 const std::string& kernel) {
  SPYRE_ASSIGN_OR_RETURN(std::vector<std::byte> image, constant_image(arg));
  const Bytes size(static_cast<int64_t>(image.size()));
  SPYRE_ASSIGN_OR_RETURN(
      MemoryRef memory,
      card.allocate(size, {.kind = MemoryKind::kProgram,
                           .description = fmt::format("constant {} of {}", arg.arg_index, kernel)}));
  SPYRE_TRY(transfer(
      stream, {memory, Bytes(0), size}, TransferDirection::kToDevice,
      [image = std::make_shared<const std::vector<std::byte>>(std::move(image))](
          std::span<std::byte> device) -> Status {
        std::memcpy(device.data(), image->data(), image->size());
        return {};
      },
      Blocking::kNo));
  return memory;
}

}  // namespace

JobPlan::JobPlan(Parts parts)
    : parts_(std::move(parts)), decoded_(parts_.code.steps.size()), decoded_size_(parts_.code.steps.size()) {}

std::string JobPlan::step_name(size_t step) const {
  const std::string& own = steps().at(step).name;
  return own.empty() ? fmt::format("{}#{}", parts_.kernel_name, step) : own;
}

Status JobPlan::block_until_loaded(const StreamRef& stream) const {
  const Result<bool> loaded = parts_.ready->reached();
  if (!loaded.ok()) {
    Error error = loaded.error();
    return std::move(error)
        .note(fmt::format("so the program of {} was never loaded", parts_.kernel_name))
        .try_instead("prepare the kernel again");
  }
  return parts_.ready->block(stream);
}

exec::RunCounts JobPlan::last_run_counts() const {
  const std::lock_guard lock(mutex_);
  return last_counts_;
}

std::vector<LoadedProgramRef> JobPlan::last_programs() const {
  const std::lock_guard lock(mutex_);
  return last_programs_;
}

namespace {

/// The program that a step will find in the region, if one of the binaries is its image.
std::unique_ptr<KernelTimes> times_of(const JobStep& step, const SpyreCode& code,
                                      const std::vector<std::string>& binaries, ProgramCache& programs) {
  const auto* const compute = std::get_if<Compute>(&step.what);
  for (size_t i = 0; compute != nullptr && i < binaries.size(); ++i) {
    const Bytes inside = compute->entry - code.init[i].offset;
    if (inside < Bytes(0) || inside >= code.init[i].size) {
      continue;
    }
    const auto loaded =
        programs.get(std::as_bytes(std::span(binaries[i])).subspan(static_cast<size_t>(inside.count())));
    return loaded.ok() ? std::make_unique<KernelTimes>(loaded.value()) : nullptr;
  }
  return nullptr;
}

/// `directory`, where the files come from one, is looked at for other parts of the bundle.
Result<JobPlanRef> prepare(Card& card, const KernelFiles& files, const PrepareOptions& options,
                           const fs::path* directory = nullptr) {
  const CallScope call("spyreLoadKernel");
  JobPlan::Parts parts;
  parts.card = &card;
  SPYRE_ASSIGN_OR_RETURN(const Json plan, load_plan(files));
  SPYRE_ASSIGN_OR_RETURN(parts.code, read_spyre_code(plan, kPlanFile, card.machine()));
  SPYRE_ASSIGN_OR_RETURN(const program::LaunchSpec launch, load_launch_spec(files));
  parts.arg_order = arg_order(launch);
  std::vector<std::string> binaries;
  for (const InitTransfer& init : parts.code.init) {
    SPYRE_ASSIGN_OR_RETURN(std::string bytes, load_binary(files, init));
    binaries.push_back(std::move(bytes));
  }
  if (directory != nullptr) {
    SPYRE_TRY(check_parts(*directory, plan, parts.code, binaries));
  }
  parts.kernel_name = options.kernel_name;
  parts.facts = options.facts;
  for (const JobStep& step : parts.code.steps) {
    parts.times.push_back(card.clock().runs() ? times_of(step, parts.code, binaries, card.programs())
                                              : nullptr);
  }
  SPYRE_ASSIGN_OR_RETURN(
      parts.memory, card.allocate(parts.code.allocation, {.kind = MemoryKind::kProgram,
                                                          .description = "program " + parts.kernel_name}));
  for (const Bytes size : parts.code.buffers) {
    SPYRE_ASSIGN_OR_RETURN(PinnedBuffer buffer, PinnedBuffer::make(size));
    parts.buffers.push_back(std::move(buffer));
  }
  const StreamRef stream = options.stream != nullptr ? options.stream : card.streams().default_stream();
  for (size_t i = 0; i < binaries.size(); ++i) {
    SPYRE_TRY(queue_init(stream, parts.memory, parts.code.init[i], std::move(binaries[i])));
  }
  for (const program::LaunchArg& arg : launch.args) {
    if (!arg.is_constant()) continue;
    SPYRE_ASSIGN_OR_RETURN(parts.constants[arg.arg_index],
                           queue_constant(card, stream, arg, parts.kernel_name));
  }
  parts.ready = std::make_shared<Event>();
  SPYRE_TRY(parts.ready->record(stream));
  return std::make_shared<JobPlan>(std::move(parts));
}

}  // namespace

Result<JobPlanRef> prepare_kernel(Card& card, const fs::path& directory, PrepareOptions options) {
  std::error_code failure;
  if (!fs::is_directory(directory, failure)) {
    return Error(ErrorKind::kNotFound,
                 fmt::format("SpyreCode directory {} does not exist", directory.string()));
  }
  if (options.kernel_name.empty()) options.kernel_name = default_kernel_name(directory);
  return prepare(card, KernelFiles(directory), options, &directory);
}

Result<JobPlanRef> prepare_kernel(Card& card, const std::map<std::string, std::string>& files,
                                  PrepareOptions options) {
  return prepare(card, KernelFiles(files), options);
}

}  // namespace spyre
