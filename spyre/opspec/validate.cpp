#include "spyre/opspec/validate.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cctype>
#include <cmath>
#include <set>

#include "spyre/base/text.h"
#include "spyre/ops/ops.h"

namespace spyre {
namespace {

constexpr size_t kMostTensors = 8;
constexpr size_t kMostDims = 16;  // of a launch argument
constexpr std::string_view kCoreId = "core_id";
// Far above any card's memory, far below what overflows.
constexpr int64_t kMostElements = int64_t{1} << 42;

bool is_name(std::string_view text) {
  const auto letter = [](char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_'; };
  if (text.empty() || !letter(text.front())) return false;
  for (const char c : text) {
    if (!letter(c) && std::isdigit(static_cast<unsigned char>(c)) == 0 && c != '.') return false;
  }
  return true;
}

int64_t bytes_of(const TensorArg& arg) {
  int64_t sticks = 1;
  for (size_t i = 0; i + 1 < arg.device_size.size(); ++i) sticks *= arg.device_size[i];
  return sticks * kStickBytes.count();
}

bool reduces(const OpInfo& info) {
  switch (info.family) {
    case OpFamily::kPointwise:
    case OpFamily::kConversion:
    case OpFamily::kCopy:
    case OpFamily::kShuffle:
      return false;
    case OpFamily::kLayerNorm:
      return info.id == OpId::exx2;
    default:
      return true;
  }
}

bool has_window(const OpInfo& info) {
  return info.family == OpFamily::kPool || info.family == OpFamily::kConv ||
         info.family == OpFamily::kDepthwise;
}

// Checks one op. Every failure starts with "op 'name'".
class OpRules {
 public:
  OpRules(const OpSpec& op, const Kernel& kernel, const Machine& machine, const std::vector<int64_t>& loops)

      : op_(op),
        info_(info_of(op.op)),
        kernel_(kernel),
        machine_(machine),
        loops_(loops),
        indices_(index_tensor_names(op)) {}

  Status check();

 private:
  Error refuse(std::string_view message) const {
    return Error(ErrorKind::kInvalidArgument, fmt::format("op '{}': {}", to_string(op_.op), message));
  }
  Error refuse(const TensorArg& arg, std::string_view message) const {
    return Error(ErrorKind::kInvalidArgument,
                 fmt::format("op '{}', tensor '{}': {}", to_string(op_.op), arg.name, message));
  }

  Status reduction_flag();
  Status iteration_space();
  Status dynamic_extent(const IterationDim& dim);
  Status core_map();
  Status operands();
  Status constants();
  Status window();
  Status loops();
  Status shuffle();
  Status ownership(const TensorArg& arg, const WorkDivision& division);
  Status tensor(const TensorArg& arg);
  Status shape(const TensorArg& arg);
  Status format(const TensorArg& arg);
  Status place(const TensorArg& arg);
  Status advance(const TensorArg& arg);
  bool is_index(const TensorArg& arg) const { return arg.is_input && indices_.contains(arg.name); }

  const OpSpec& op_;
  const OpInfo& info_;
  const Kernel& kernel_;
  const Machine& machine_;
  const std::vector<int64_t>& loops_;  // trip counts, outermost first
  std::set<std::string> symbols_;
  std::set<std::string> indices_;
};

Status OpRules::check() {
  SPYRE_TRY(reduction_flag());
  SPYRE_TRY(iteration_space());
  SPYRE_TRY(core_map());
  SPYRE_TRY(operands());
  SPYRE_TRY(constants());
  SPYRE_TRY(window());
  SPYRE_TRY(loops());
  for (const TensorArg& arg : op_.args) SPYRE_TRY(tensor(arg));
  return shuffle();
}

Status OpRules::reduction_flag() {
  if (op_.is_reduction != reduces(info_)) {
    return refuse(fmt::format("is_reduction is {}, the op is of family {} and needs {}", op_.is_reduction,
                              to_string(info_.family), reduces(info_)));
  }
  return Status();
}

Status OpRules::iteration_space() {
  for (const IterationDim& dim : op_.iteration_space) {
    if (!is_name(dim.symbol) || dim.symbol == kCoreId) {
      return refuse(fmt::format("'{}' cannot name a symbol", dim.symbol));
    }
    if (!symbols_.insert(dim.symbol).second)
      return refuse(fmt::format("symbol '{}' appears twice", dim.symbol));
    if (dim.extent > kMostElements) {
      return refuse(
          fmt::format("extent of '{}' is {}, allowed are up to {}", dim.symbol, dim.extent, kMostElements));
    }
    if (dim.extent < 1)
      return refuse(fmt::format("extent of '{}' is {}, must be positive", dim.symbol, dim.extent));
    if (dim.split < 1)
      return refuse(fmt::format("split of '{}' is {}, must be positive", dim.symbol, dim.split));
    SPYRE_TRY(dynamic_extent(dim));
  }
  return Status();
}

Status OpRules::dynamic_extent(const IterationDim& dim) {
  if (dim.dynamic.empty()) return Status();
  for (const auto& [bounded, bound] : op_.symbolic_dim_bounds) {
    if (bounded != dim.dynamic) continue;
    if (bound.max != dim.extent || bound.granularity < 1) {
      return refuse(
          fmt::format("bound of '{}' is ({}, {}); the maximum must be the extent {} and the granularity "
                      "positive",
                      bounded, bound.max, bound.granularity, dim.extent));
    }
    return Status();
  }
  return refuse(fmt::format("extent '{}' of '{}' has no bound", dim.dynamic, dim.symbol));
}

Status OpRules::core_map() {
  const int64_t cores = cores_used(op_);
  if (cores > machine_.cores) {
    return refuse(fmt::format("splits ask for {} cores, the card has {}", cores, machine_.cores));
  }
  std::map<std::string, const Expr*> slice_of;
  for (const auto& [symbol, slice] : op_.core_id_to_work_slice) slice_of[symbol] = &slice;
  for (const IterationDim& dim : op_.iteration_space) {
    if (!slice_of.contains(dim.symbol)) {
      return refuse(fmt::format("core_id_to_work_slice has no entry for '{}'", dim.symbol))
          .try_instead("default_core_map");
    }
  }
  if (slice_of.size() != op_.iteration_space.size()) {
    return refuse("core_id_to_work_slice has entries that are not iteration symbols");
  }
  std::set<std::vector<int64_t>> taken;
  for (int64_t core = 0; core < cores; ++core) {
    std::vector<int64_t> slices;
    for (const IterationDim& dim : op_.iteration_space) {
      const auto slice = slice_of[dim.symbol]->evaluate({{std::string(kCoreId), core}});
      if (!slice.ok()) return refuse(slice.error().message).note("core maps depend on core_id alone");
      if (slice.value() < 0 || slice.value() >= dim.split) {
        return refuse(fmt::format("core {} has slice {} of '{}', allowed are 0 to {}", core, slice.value(),
                                  dim.symbol, dim.split - 1));
      }
      slices.push_back(slice.value());
    }
    if (!taken.insert(slices).second) {
      return refuse(fmt::format("core {} repeats the slices {} of another core", core, list_text(slices)));
    }
  }
  return Status();
}

Status OpRules::operands() {
  if (op_.args.size() > kMostTensors) {
    return refuse(fmt::format("{} tensors, one op takes at most {}", op_.args.size(), kMostTensors));
  }
  const size_t wanted = static_cast<size_t>(info_.inputs) + indices_.size() + 1;
  if (op_.args.size() != wanted) {
    return refuse(fmt::format("{} tensors, needed are {} inputs, {} index tensors and the output",
                              op_.args.size(), info_.inputs, indices_.size()));
  }
  for (size_t i = 0; i < op_.args.size(); ++i) {
    const bool last = i + 1 == op_.args.size();
    if (op_.args[i].is_input == last) {
      return refuse(op_.args[i],
                    last ? "the last tensor must be the output" : "only the last tensor is an output");
    }
    if (is_index(op_.args[i]) != (i < indices_.size())) {
      return refuse(op_.args[i], "index tensors come first, then the values");
    }
  }
  return Status();
}

Status OpRules::constants() {
  std::set<std::string> given;
  for (const auto& [key, value] : op_.constants) {
    if (!std::isfinite(value)) return refuse(fmt::format("constant '{}' is not finite", key));
    if (!given.insert(key).second) return refuse(fmt::format("constant '{}' appears twice", key));
  }
  const std::set<std::string> wanted(info_.constants.begin(), info_.constants.end());
  if (given != wanted) {
    return refuse(fmt::format("constants are {{{}}}, needed are {{{}}}", fmt::join(given, ", "),
                              fmt::join(wanted, ", ")));
  }
  return Status();
}

Status OpRules::window() {
  if (!has_window(info_)) {
    return op_.window ? Status(refuse("conv_params belong to pool and conv ops only")) : Status();
  }
  if (!op_.window) return refuse("pool and conv ops need conv_params");
  if (op_.node_output_ranges.size() != 4) {
    return refuse(fmt::format("node_output_ranges is {}, needed are the four of NCHW",
                              list_text(op_.node_output_ranges)));
  }
  const WindowParams& w = *op_.window;
  if (w.stride_i < 1 || w.stride_j < 1 || w.kernel_h < 1 || w.kernel_w < 1 || w.pad_i < 0 || w.pad_j < 0 ||
      w.dilation_i < 1 || w.dilation_j < 1) {
    return refuse("strides, kernel sizes and dilations must be positive and padding not negative");
  }
  return Status();
}

Status OpRules::loops() {
  if (op_.tiled_symbols.size() != loops_.size()) {
    return refuse(fmt::format("tiled_symbols has {} levels inside {} loops, needed is one per loop",
                              op_.tiled_symbols.size(), loops_.size()));
  }
  std::set<std::string> tiled;
  for (size_t level = 0; level < loops_.size(); ++level) {
    const int64_t trips = loops_[loops_.size() - 1 - level];  // innermost first
    for (const std::string& symbol : op_.tiled_symbols[level]) {
      if (!tiled.insert(symbol).second) return refuse(fmt::format("tiled symbol '{}' appears twice", symbol));
      for (const auto& [name, count] : op_.tiled_symbol_trip_counts) {
        if (name == symbol && count != trips) {
          return refuse(
              fmt::format("trip count of '{}' is {}, its loop runs {} times", symbol, count, trips));
        }
      }
    }
  }
  return Status();
}

Status OpRules::tensor(const TensorArg& arg) {
  if (!is_name(arg.name)) return refuse(fmt::format("'{}' cannot name a tensor", arg.name));
  SPYRE_TRY(format(arg));
  SPYRE_TRY(shape(arg));
  SPYRE_TRY(place(arg));
  return advance(arg);
}

Status OpRules::format(const TensorArg& arg) {
  if (elems_per_stick(arg.format) == 0) {
    return refuse(arg, fmt::format("format {} does not fill sticks", to_string(arg.format)));
  }
  if (is_index(arg)) {
    if (arg.format == DataFormat::SENUINT32 || arg.format == DataFormat::IEEE_INT32) return Status();
    return refuse(arg,
                  fmt::format("index tensors are SENUINT32 or IEEE_INT32, found {}", to_string(arg.format)));
  }
  const FormatSet allowed = arg.is_input ? info_.input_formats : info_.output_formats;
  if (!allowed.contains(arg.format)) {
    return refuse(arg, fmt::format("format {}, allowed are {}", to_string(arg.format), allowed.to_string()));
  }
  return Status();
}

Status OpRules::shape(const TensorArg& arg) {
  if (arg.device_size.empty() || arg.device_size.size() != arg.device_coordinates.size()) {
    return refuse(arg, fmt::format("{} sizes and {} coordinates, needed is one coordinate per size",
                                   arg.device_size.size(), arg.device_coordinates.size()));
  }
  int64_t elements = 1;
  for (const int64_t size : arg.device_size) {
    if (size > 0 && size > kMostElements / elements) {
      return refuse(arg, fmt::format("device_size {} has more than {} elements", list_text(arg.device_size),
                                     kMostElements));
    }
    elements *= std::max<int64_t>(size, 1);
    if (size < 1)
      return refuse(arg, fmt::format("device_size {} has a size below 1", list_text(arg.device_size)));
  }
  if (arg.device_size.back() != elems_per_stick(arg.format)) {
    return refuse(arg, fmt::format("the last size is {}, one stick of {} holds {}", arg.device_size.back(),
                                   to_string(arg.format), elems_per_stick(arg.format)));
  }
  for (const Expr& coordinate : arg.device_coordinates) {
    for (const std::string& symbol : coordinate.symbols()) {
      if (!symbols_.contains(symbol)) {
        return refuse(arg, fmt::format("coordinate '{}' uses '{}', known are {{{}}}", coordinate.to_string(),
                                       symbol, fmt::join(symbols_, ", ")));
      }
    }
  }
  return Status();
}

Status OpRules::place(const TensorArg& arg) {
  const int64_t value = arg.allocation.value;
  const bool indirect = is_index(arg) || [&] {
    for (const Expr& c : arg.device_coordinates) {
      if (!c.index_tensors().empty()) return true;
    }
    return false;
  }();
  if (indirect && arg.allocation.place == Place::kLx) {
    return refuse(arg, "index tensors and what they index must live in device memory, found lx");
  }
  switch (arg.allocation.place) {
    case Place::kHbm:
      for (const LaunchArgument& argument : kernel_.arguments) {
        if (argument.index == value) return Status();
      }
      return refuse(arg,
                    fmt::format("launch argument {} is not declared by kernel '{}'", value, kernel_.name));
    case Place::kLx:
      if (value < 0 || value % kStickBytes.count() != 0 || value >= machine_.lx_per_core.count()) {
        return refuse(arg, fmt::format("LX address {}, allowed are multiples of {} below {}", value,
                                       kStickBytes.count(), machine_.lx_per_core.count()));
      }
      return Status();
    case Place::kHbmPool:
      if (value < 0 || value % kStickBytes.count() != 0 || value >= kernel_.pool_bytes) {
        return refuse(arg, fmt::format("pool offset {}, allowed are multiples of {} below {}", value,
                                       kStickBytes.count(), kernel_.pool_bytes));
      }
      if (const int64_t end = value + bytes_of(arg); end > kernel_.pool_bytes) {
        return refuse(arg, fmt::format("ends at byte {} of the pool, which has {}", end, kernel_.pool_bytes));
      }
      return Status();
  }
  return Status();
}

Status OpRules::advance(const TensorArg& arg) {
  if (!arg.tile_advance) return Status();
  if (arg.allocation.place == Place::kLx && !arg.tile_advance->is_constant()) {
    return refuse(arg, "a tensor in LX cannot advance in a loop")
        .try_instead("unrolling, or placing it in the pool");
  }
  std::set<std::string> tiled;
  for (const auto& level : op_.tiled_symbols) tiled.insert(level.begin(), level.end());
  for (const std::string& symbol : arg.tile_advance->symbols()) {
    if (!tiled.contains(symbol)) {
      return refuse(arg,
                    fmt::format("tile_advance uses '{}', tiled are {{{}}}", symbol, fmt::join(tiled, ", ")));
    }
  }
  return Status();
}

Status OpRules::shuffle() {
  const bool shuffles = info_.family == OpFamily::kShuffle;
  for (const TensorArg& arg : op_.args) {
    if (!shuffles && !arg.work_division.empty()) return refuse(arg, "work_division belongs to shuffle only");
    if (shuffles && arg.allocation.place != Place::kLx) {
      return refuse(arg,
                    fmt::format("shuffle copies from LX to LX, found {}", to_string(arg.allocation.place)));
    }
    if (shuffles && arg.work_division.empty()) return refuse(arg, "shuffle needs a work_division");
    for (const WorkDivision& division : arg.work_division) SPYRE_TRY(ownership(arg, division));
  }
  return Status();
}

// Every core that works must hold a slice that exists.
Status OpRules::ownership(const TensorArg& arg, const WorkDivision& division) {
  if (!symbols_.contains(division.symbol) || division.split < 1 || division.split > machine_.cores) {
    return refuse(arg,
                  fmt::format("work_division of '{}' into {}: the symbol must be known, the split 1 to {}",
                              division.symbol, division.split, machine_.cores));
  }
  for (int64_t core = 0; core < std::max(cores_used(op_), division.split); ++core) {
    const auto slice = division.owner.evaluate({{std::string(kCoreId), core}});
    if (!slice.ok()) return refuse(arg, slice.error().message).note("work divisions depend on core_id alone");
    if (slice.value() < 0 || slice.value() >= division.split) {
      return refuse(arg, fmt::format("core {} holds slice {} of '{}', allowed are 0 to {}", core,
                                     slice.value(), division.symbol, division.split - 1));
    }
  }
  return Status();
}

Status check_item(const KernelItem& item, const Kernel& kernel, const Machine& machine,
                  std::vector<int64_t>& loops) {
  if (const auto* op = std::get_if<OpSpec>(&item)) return OpRules(*op, kernel, machine, loops).check();
  const auto& loop = std::get<LoopSpec>(item);
  if (loop.count < 1) {
    return Error(ErrorKind::kInvalidArgument, fmt::format("loop count is {}, must be positive", loop.count));
  }
  if (!loop.count_symbol.empty() && loop.bound.max % loop.bound.granularity != 0) {
    return Error(ErrorKind::kInvalidArgument,
                 fmt::format("loop '{}': the largest extent {} is not a multiple of the granularity {}",
                             loop.count_symbol, loop.bound.max, loop.bound.granularity));
  }
  loops.push_back(loop.count);
  for (const KernelItem& inner : loop.body) SPYRE_TRY(check_item(inner, kernel, machine, loops));
  loops.pop_back();
  return Status();
}

Status check_host_view(const Kernel& kernel, const LaunchArgument& arg) {
  const auto refuse = [&](std::string_view what) {
    return Error(ErrorKind::kInvalidArgument,
                 fmt::format("kernel '{}', argument {}: {}", kernel.name, arg.index, what));
  };
  if (arg.shape.size() > kMostDims || arg.device_size.size() > kMostDims + 1) {
    return refuse(fmt::format("{} dimensions, {} on the card; allowed: {} and one more", arg.shape.size(),
                              arg.device_size.size(), kMostDims));
  }
  if (!arg.stride.empty() && arg.stride.size() != arg.shape.size()) {
    return refuse(fmt::format("{} sizes and {} strides", arg.shape.size(), arg.stride.size()));
  }
  if (arg.offset < 0 || arg.storage < 0) {
    return refuse(fmt::format("offset {} and storage {}, allowed: none below 0", arg.offset, arg.storage));
  }
  if (arg.fill.has_value() != (arg.role == ArgumentRole::kConstant)) {
    return refuse("a constant has a fill, and nothing else has one");
  }
  return Status();
}

Status check_arguments(const Kernel& kernel) {
  std::set<int64_t> taken;
  for (const LaunchArgument& arg : kernel.arguments) {
    if (arg.index < 0 || !taken.insert(arg.index).second) {
      return Error(ErrorKind::kInvalidArgument,
                   fmt::format("kernel '{}': launch argument {} is negative or declared twice", kernel.name,
                               arg.index));
    }
    if (arg.device_size.size() != arg.stride_map.size()) {
      return Error(
          ErrorKind::kInvalidArgument,
          fmt::format("kernel '{}', argument {}: device_size {} and stride_map {} differ in length",
                      kernel.name, arg.index, list_text(arg.device_size), list_text(arg.stride_map)));
    }
    SPYRE_TRY(check_host_view(kernel, arg));
  }
  return Status();
}

}  // namespace

std::set<std::string> index_tensor_names(const OpSpec& op) {
  std::set<std::string> names;
  for (const TensorArg& arg : op.args) {
    for (const Expr& coordinate : arg.device_coordinates) names.merge(coordinate.index_tensors());
  }
  return names;
}

Status validate(const Kernel& kernel, const Machine& machine) {
  if (!is_name(kernel.name)) {
    return Error(ErrorKind::kInvalidArgument, fmt::format("'{}' cannot name a kernel", kernel.name));
  }
  if (kernel.pool_bytes < 0 || kernel.pool_bytes > machine.largest_pool().count()) {
    // Intermediate results that are too large are no mistake of the kernel's author; the card has no place for them.
    return Error(kernel.pool_bytes < 0 ? ErrorKind::kInvalidArgument : ErrorKind::kUnsupported,
                 fmt::format("kernel '{}': pool of {} bytes, allowed are 0 to {}", kernel.name,
                             kernel.pool_bytes, machine.largest_pool().count()));
  }
  SPYRE_TRY(check_arguments(kernel));
  std::vector<int64_t> loops;
  for (size_t i = 0; i < kernel.body.size(); ++i) {
    const Status allowed = check_item(kernel.body[i], kernel, machine, loops);
    if (!allowed.ok()) return Error(allowed.error()).at_item(i);
  }
  return Status();
}

}  // namespace spyre
