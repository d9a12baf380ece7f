#include "spyre/program/validate.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "spyre/program/fields.h"

namespace spyre::program {
namespace {

constexpr size_t kMaxLabeledDs = 8;

Error refuse(const std::string& file, std::string_view field, std::string_view found,
             std::string_view allowed) {
  return Error(ErrorKind::kInvalidArgument,
               fmt::format("{}: {}: found {}, allowed: {}", file, field, found, allowed));
}
Error refuse_in(const SdscRecord& r, std::string_view field, std::string_view found,
                std::string_view allowed) {
  return refuse(r.file, r.at(field), found, allowed);
}
Error refuse_at_root(const SdscRecord& r, std::string_view field, std::string_view found,
                     std::string_view allowed) {
  return refuse(r.file, field, found, allowed);
}

bool is_relayout(const SdscRecord& record) {
  return record.compute.function == "shuffle";
}

// ---- rules of one file
// --------------------------------------------------------------------------------------

Status core_list_matches_count(const SdscRecord& r, const Machine& machine) {
  if (r.cores_used > machine.cores) {
    return refuse_at_root(r, "numCoresUsed_", std::to_string(r.cores_used),
                          fmt::format("1 to {}, the cores of the machine", machine.cores));
  }
  if (r.dsc_cores_used != r.cores_used) {
    return refuse_in(r, "numCoresUsed_", std::to_string(r.dsc_cores_used),
                     fmt::format("{}, as at the root", r.cores_used));
  }
  const std::set<int64_t> distinct(r.core_ids.begin(), r.core_ids.end());
  if (static_cast<int64_t>(r.core_ids.size()) != r.cores_used || distinct.size() != r.core_ids.size()) {
    return refuse_in(r, "coreIdsUsed_",
                     fmt::format("{} ids, {} distinct", r.core_ids.size(), distinct.size()),
                     fmt::format("{} distinct ids, as numCoresUsed_ says", r.cores_used));
  }
  if (*distinct.rbegin() >= machine.cores) {
    return refuse_in(r, "coreIdsUsed_", fmt::format("core {}", *distinct.rbegin()),
                     fmt::format("0 to {}", machine.cores - 1));
  }
  for (const AllocateRecord& node : r.nodes) {
    if (!node.core_slices.empty() && node.core_slices.rbegin()->first >= machine.cores) {
      return refuse_in(r, fmt::format("scheduleTree_[{}].coordinates_.coreIdToWkSlice_", node.index),
                       fmt::format("core {}", node.core_slices.rbegin()->first),
                       fmt::format("0 to {}", machine.cores - 1));
    }
  }
  return Status();
}

Status splits_cover_the_cores(const SdscRecord& r) {
  if (is_relayout(r)) {
    return Status();
  }
  int64_t product = 1;
  for (const auto& [dim, count] : r.splits) {
    product = std::min<int64_t>(product * count, int64_t{1} << 32);
  }
  if (product != r.cores_used) {
    return refuse_at_root(r, "numWkSlicesPerDim_", fmt::format("a product of {}", product),
                          fmt::format("{}, as numCoresUsed_ says", r.cores_used));
  }
  return Status();
}

Status cores_run_an_entry_that_exists(const SdscRecord& r) {
  for (const auto& [core, dsc] : r.core_to_dsc) {
    if (dsc < 0 || dsc >= r.dsc_count) {
      return refuse_at_root(r, fmt::format("coreIdToDsc_.{}", core), std::to_string(dsc),
                            fmt::format("0 to {}, an index into dscs_", r.dsc_count - 1));
    }
  }
  return Status();
}

Status cores_share_one_schedule(const SdscRecord& r) {
  for (const auto& [core, schedule] : r.schedule) {
    if (schedule != r.schedule.begin()->second) {
      return refuse_at_root(
          r, fmt::format("coreIdToDscSchedule.{}", core), "a schedule of its own",
          fmt::format("the schedule of core {}: all cores of a dsc run alike", r.schedule.begin()->first));
    }
  }
  return Status();
}

Status tensors_have_a_layout(const SdscRecord& r) {
  if (r.tensors.empty() || r.tensors.size() > kMaxLabeledDs) {
    return refuse_in(r, "labeledDs_", fmt::format("{} entries", r.tensors.size()),
                     fmt::format("1 to {}", kMaxLabeledDs));
  }
  for (size_t i = 0; i < r.tensors.size(); ++i) {
    const LabeledRecord& tensor = r.tensors[i];
    const std::string field = fmt::format("labeledDs_[{}]", i);
    if (tensor.index != static_cast<int64_t>(i)) {
      return refuse_in(r, field + ".ldsIdx_", std::to_string(tensor.index),
                       fmt::format("{}, its position", i));
    }
    const auto layout = r.layouts.find(tensor.layout);
    if (layout == r.layouts.end()) {
      std::vector<std::string> labels;
      for (const auto& [label, value] : r.layouts) {
        labels.push_back(label);
      }
      return refuse_in(r, field + ".dsType_", fmt::format("'{}'", tensor.layout),
                       fmt::format("the keys of primaryDsInfo_: {}", fmt::join(labels, ", ")));
    }
    if (tensor.scale.size() != layout->second.dims.size()) {
      return refuse_in(r, field + ".scale_", fmt::format("{} entries", tensor.scale.size()),
                       fmt::format("{}, one per dim of {}", layout->second.dims.size(), tensor.layout));
    }
    const auto format = data_format_from_name(tensor.format);
    if (tensor.word_length != 0 && format && tensor.word_length * 8 != bits_of(*format)) {
      return refuse_in(r, field + ".wordLength", fmt::format("{}", tensor.word_length),
                       fmt::format("{}, the bytes of {}", bits_of(*format) / 8.0, tensor.format));
    }
  }
  for (const auto& [label, layout] : r.layouts) {
    if (layout.stick_dims.size() != layout.stick_sizes.size() || layout.stick_dims.empty()) {
      return refuse_in(
          r, fmt::format("primaryDsInfo_.{}.stickSize_", label),
          fmt::format("{} sizes", layout.stick_sizes.size()),
          fmt::format("one per entry of stickDimOrder_ ({}), at least one", layout.stick_dims.size()));
    }
  }
  return Status();
}

Status tensors_have_one_node_each(const SdscRecord& r) {
  if (r.nodes.size() != r.tensors.size()) {
    return refuse_in(r, "scheduleTree_", fmt::format("{} nodes", r.nodes.size()),
                     fmt::format("{}, one per entry of labeledDs_", r.tensors.size()));
  }
  for (size_t i = 0; i < r.nodes.size(); ++i) {
    if (r.nodes[i].index != static_cast<int64_t>(i)) {
      return refuse_in(r, fmt::format("scheduleTree_[{}].ldsIdx_", i), std::to_string(r.nodes[i].index),
                       fmt::format("{}, its position", i));
    }
  }
  return Status();
}

Status reference_resolves(const SdscRecord& r, std::string_view list, const std::string& reference) {
  const std::string field = fmt::format("computeOp_[0].{}", list);
  const size_t dash = reference.rfind("-idx");
  const std::optional<int64_t> index =
      dash == std::string::npos ? std::nullopt : parse_decimal(std::string_view(reference).substr(dash + 4));
  if (!index || *index < 0 || *index >= static_cast<int64_t>(r.tensors.size()) ||
      r.tensors[*index].name != reference.substr(0, dash)) {
    return refuse_in(r, field, fmt::format("'{}'", reference),
                     "<dsName_>-idx<ldsIdx_> of an entry of labeledDs_");
  }
  return Status();
}

Status operand_references_resolve(const SdscRecord& r) {
  for (const std::string& reference : r.compute.inputs) {
    SPYRE_TRY(reference_resolves(r, "inputLabeledDs", reference));
  }
  for (const std::string& reference : r.compute.outputs) {
    SPYRE_TRY(reference_resolves(r, "outputLabeledDs", reference));
  }
  for (const std::string& reference : r.compute.indices) {
    SPYRE_TRY(reference_resolves(r, "indirectAccessIndexLabeledDs", reference));
  }
  return Status();
}

Status folds_have_all_levels(const SdscRecord& r) {
  for (const AllocateRecord& node : r.nodes) {
    for (const CoordinateRecord& c : node.coordinates) {
      const auto levels = static_cast<size_t>(c.elem_arr + 3);
      const std::string field =
          fmt::format("scheduleTree_[{}].coordinates_.coordInfo.{}.folds", node.index, c.dim);
      if (c.functions != levels) {
        return refuse_in(r, field + ".dim_prop_func", fmt::format("{} levels", c.functions),
                         fmt::format("{}, elemArr + 3", levels));
      }
      if (c.attributes != levels) {
        return refuse_in(r, field + ".dim_prop_attr", fmt::format("{} levels", c.attributes),
                         fmt::format("{}, elemArr + 3", levels));
      }
    }
  }
  return Status();
}

Status extents_divide_evenly(const SdscRecord& r) {
  for (const auto& [dim, count] : r.splits) {
    const std::optional<int64_t> extent = size_of(r.extents, dim);
    if (!extent) {
      return refuse_at_root(r, "numWkSlicesPerDim_", fmt::format("the dim '{}'", dim), "the dims of N_");
    }
    if (*extent % count != 0) {
      return refuse_in(r, fmt::format("N_.{}_", dim), std::to_string(*extent),
                       fmt::format("a multiple of its {} slices", count));
    }
  }
  for (const DimSizes* stage : {&r.steady, &r.epilogue}) {
    for (const auto& [dim, size] : *stage) {
      const std::optional<int64_t> extent = size_of(r.extents, dim);
      const int64_t splits = size_of(r.splits, dim).value_or(1);
      if (extent && size * splits != *extent) {
        return refuse_in(r, fmt::format("dataStageParam_.0.{}.{}_", stage == &r.steady ? "ss_" : "el_", dim),
                         std::to_string(size),
                         fmt::format("{}, N_ over {} slices", *extent / splits, splits));
      }
    }
  }
  return Status();
}

Status slices_are_in_range(const SdscRecord& r) {
  if (is_relayout(r)) {
    return Status();
  }
  const auto split =
      std::count_if(r.splits.begin(), r.splits.end(), [](const auto& dim) { return dim.second > 1; });
  if (r.core_slices.empty() && split > 1) {
    return refuse_at_root(
        r, "coreIdToWkSlice_", "nothing",
        "the slice of every core: more than one dim is split, so the order of cores is open");
  }
  std::set<std::map<std::string, int64_t>> seen;
  for (const int64_t core : r.core_ids) {
    if (r.core_slices.empty()) {
      break;
    }
    const auto row = r.core_slices.find(core);
    if (row == r.core_slices.end()) {
      return refuse_at_root(r, "coreIdToWkSlice_", fmt::format("no entry for core {}", core),
                            "one entry for each core in coreIdsUsed_");
    }
    std::map<std::string, int64_t> slices;
    for (const auto& [dim, slice] : row->second) {
      const int64_t splits = size_of(r.splits, dim).value_or(1);
      if (slice >= splits) {
        return refuse_at_root(r, fmt::format("coreIdToWkSlice_.{}.{}", core, dim), std::to_string(slice),
                              fmt::format("0 to {}", splits - 1));
      }
      if (splits > 1) {
        slices[dim] = slice;
      }
    }
    if (!seen.insert(slices).second) {
      return refuse_at_root(r, fmt::format("coreIdToWkSlice_.{}", core), "the slice of another core",
                            "a slice of its own for each core");
    }
  }
  return Status();
}

Status mask_constant_is_there_when_masked(const SdscRecord& r) {
  if ((r.mask_constant == -1) != r.masking.empty()) {
    return refuse_in(r, "maskingConstId_", std::to_string(r.mask_constant),
                     r.masking.empty() ? "-1, as coordinateMasking_ is empty"
                                       : "the id of the mask value, as coordinateMasking_ is not empty");
  }
  return Status();
}

// ---- rules of a resolved op
// ---------------------------------------------------------------------------------

Error refuse_tensor(const DeviceOp& op, const Tensor& tensor, std::string_view field, std::string_view found,
                    std::string_view allowed) {
  return refuse(op.file, fmt::format("dscs_[0].{}.{} of {}", op.name, field, tensor.name), found, allowed);
}

std::set<int> stick_dims(const Tensor& tensor) {
  std::set<int> dims;
  for (const StickDigit& digit : tensor.stick) {
    dims.insert(digit.dim);
  }
  return dims;
}

std::string names(const DeviceOp& op, const std::set<int>& dims) {
  std::vector<std::string> labels;
  for (const int dim : dims) {
    labels.push_back(op.dims[dim].label);
  }
  return fmt::format("[{}]", fmt::join(labels, ", "));
}

bool is_window_family(OpFamily family) {
  return family == OpFamily::kPool || family == OpFamily::kConv || family == OpFamily::kDepthwise;
}

Status slices_are_whole_sticks(const DeviceOp& op) {
  for (const Tensor& tensor : op.tensors) {
    for (const TensorDim& dim : tensor.dims) {
      if (dim.scale < 0 || dim.per_stick == 1 || dim.window) {
        continue;
      }
      int64_t slice = op.slice_extent(dim.dim);
      if (!tensor.own_splits.empty()) {
        slice = op.dims[dim.dim].extent / tensor.own_splits[dim.dim];
      }
      const bool whole = slice % dim.per_stick == 0;
      if (!whole && !(tensor.is_index && slice < dim.per_stick)) {
        return refuse_tensor(op, tensor, fmt::format("dataStageParam_.0.ss_.{}_", op.dims[dim.dim].label),
                             fmt::format("{} elements per core", slice),
                             fmt::format("a multiple of the stick size {}", dim.per_stick));
      }
    }
  }
  return Status();
}

Status matmul_dims_have_roles(const DeviceOp& op) {
  if (op.info->family != OpFamily::kMatmul) {
    return Status();
  }
  const Tensor &x = op.tensors[op.inputs[0]], &w = op.tensors[op.inputs[1]], &out = op.tensors[op.output];
  std::set<int> reduced, generated, preserved, shared;
  for (int d = 0; d < static_cast<int>(op.dims.size()); ++d) {
    const bool in_x = x.present(d), in_w = w.present(d), in_out = out.present(d);
    if (in_x && in_w && !in_out) reduced.insert(d);
    // A batch dim that X lists as absent is broadcast, not generated.
    if (!in_x && in_w && in_out) (x.find(d) != nullptr ? shared : generated).insert(d);
    if (in_x && !in_w && in_out) preserved.insert(d);
    if (in_x && in_w && in_out) shared.insert(d);
  }
  const std::string field = fmt::format("dscs_[0].{}.labeledDs_", op.name);
  if (reduced.size() != 1) {
    return refuse(op.file, field, fmt::format("{} contracted dims", reduced.size()), "one");
  }
  if (generated.size() != 1) {
    return refuse(op.file, field, fmt::format("{} generated dims", generated.size()), "one");
  }
  if (preserved.size() > 2) {
    return refuse(op.file, field, fmt::format("{} preserved dims", preserved.size()), "at most two");
  }
  if (shared.size() > 2) {
    return refuse(op.file, field, fmt::format("{} dims shared by all three", shared.size()), "at most two");
  }
  std::set<int> w_stick = generated;
  if (op.name == "batchmatmulfp8") {
    w_stick.insert(reduced.begin(), reduced.end());
  }
  const auto check = [&](const Tensor& tensor, const std::set<int>& allowed) -> Status {
    if (stick_dims(tensor) != allowed) {
      return refuse_tensor(op, tensor, "primaryDsInfo_.stickDimOrder_", names(op, stick_dims(tensor)),
                           names(op, allowed));
    }
    return Status();
  };
  SPYRE_TRY(check(x, reduced));
  SPYRE_TRY(check(w, w_stick));
  return check(out, generated);
}

Status topk_dims_have_roles(const DeviceOp& op) {
  if (op.info->family != OpFamily::kTopK) {
    return Status();
  }
  const bool keeps = op.name == "keepbyindex";
  const Tensor& values = op.tensors[op.inputs[0]];
  const Tensor& ranked = keeps ? op.tensors[op.inputs[1]] : op.tensors[op.output];
  std::set<int> searched, rank;
  for (int d = 0; d < static_cast<int>(op.dims.size()); ++d) {
    if (values.present(d) && !ranked.present(d)) searched.insert(d);
    if (!values.present(d) && ranked.present(d)) rank.insert(d);
  }
  const std::string field = fmt::format("dscs_[0].{}.labeledDs_", op.name);
  if (searched.size() != 1 || rank.size() != 1) {
    return refuse(op.file, field, fmt::format("{} searched and {} rank dims", searched.size(), rank.size()),
                  "one of each");
  }
  if (!keeps && op.dims[*searched.begin()].splits != 1) {
    return refuse(op.file, "numWkSlicesPerDim_",
                  fmt::format("the searched dim '{}' split", op.dims[*searched.begin()].label),
                  "a searched dim that every core has whole");
  }
  return Status();
}

Status pointwise_tensors_share_a_stick(const DeviceOp& op) {
  const OpFamily family = op.info->family;
  if (family != OpFamily::kPointwise && family != OpFamily::kReduction && family != OpFamily::kLayerNorm) {
    return Status();
  }
  const Tensor& out = op.tensors[op.output];
  for (const Tensor& tensor : op.tensors) {
    if (!tensor.is_index && stick_dims(tensor) != stick_dims(out)) {
      return refuse_tensor(op, tensor, "primaryDsInfo_.stickDimOrder_", names(op, stick_dims(tensor)),
                           names(op, stick_dims(out)) + ", as the result");
    }
  }
  return Status();
}

Status conversions_keep_the_stick(const DeviceOp& op) {
  // Weight and batch quantisation take their pairs from another dim; the rest stays along one.
  if (op.info->family != OpFamily::kConversion || op.name == "qfp8wt" || op.name == "qfp8mb") {
    return Status();
  }
  const Tensor &in = op.tensors[op.inputs[0]], &out = op.tensors[op.output];
  if (stick_dims(in) != stick_dims(out) || in.stick.size() != 1) {
    return refuse_tensor(op, in, "primaryDsInfo_.stickDimOrder_", names(op, stick_dims(in)),
                         names(op, stick_dims(out)) + ", as the result, one dim");
  }
  return Status();
}

Status relayouts_stay_in_lx(const DeviceOp& op) {
  for (const Tensor& tensor : op.tensors) {
    if (op.info->family == OpFamily::kShuffle && tensor.residence != Residence::kLx) {
      return refuse_tensor(op, tensor, "scheduleTree_.component_", "hbm", "lx, for both sides of a relayout");
    }
  }
  return Status();
}

Status broadcast_sticks_are_broadcast_whole(const DeviceOp& op) {
  for (const Tensor& tensor : op.tensors) {
    const std::set<int> dims = stick_dims(tensor);
    const size_t absent =
        std::count_if(dims.begin(), dims.end(), [&](int dim) { return !tensor.present(dim); });
    if (absent != 0 && absent != dims.size()) {
      return refuse_tensor(op, tensor, "labeledDs_.scale_", "one stick dim broadcast and another not",
                           "all stick dims or none");
    }
  }
  return Status();
}

bool may_reduce(OpFamily family) {
  return family == OpFamily::kReduction || family == OpFamily::kMatmul || family == OpFamily::kTopK ||
         family == OpFamily::kQuantScale || family == OpFamily::kLayerNorm || is_window_family(family);
}

Status results_are_not_broadcast(const DeviceOp& op) {
  const Tensor& out = op.tensors[op.output];
  if (may_reduce(op.info->family) && op.name != "layernormscale" && op.name != "layernormnorm") {
    return Status();
  }
  for (int d = 0; d < static_cast<int>(op.dims.size()); ++d) {
    if (!out.present(d) && !out.through) {
      return refuse_tensor(op, out, "labeledDs_.scale_",
                           fmt::format("no '{}' in the result", op.dims[d].label),
                           fmt::format("every dim: {} does not reduce", op.name));
    }
  }
  return Status();
}

Status addresses_are_legal(const DeviceOp& op, const Machine& machine) {
  for (const Tensor& tensor : op.tensors) {
    const int64_t bytes = allocated_elements(tensor) * bits_of(tensor.format) / 8;
    for (size_t c = 0; c < tensor.start.size(); ++c) {
      const CoreStart& start = tensor.start[c];
      if (start.symbolic) {
        continue;
      }
      const std::string field =
          fmt::format("scheduleTree_.startAddressCoreCorelet_.data_[{}]", op.cores[c].core);
      if (start.value % start_alignment(tensor) != 0) {
        return refuse_tensor(op, tensor, field, std::to_string(start.value),
                             fmt::format("a multiple of {}", start_alignment(tensor)));
      }
      if (tensor.residence == Residence::kLx && start.value + bytes > machine.lx_per_core.count()) {
        return refuse_tensor(op, tensor, field, fmt::format("{} with {} bytes after it", start.value, bytes),
                             fmt::format("an end within the {} bytes of LX", machine.lx_per_core.count()));
      }
    }
  }
  return Status();
}

/// Bytes between the first and past the last stick of a tensor that one core touches.
int64_t span_of(const DeviceOp& op, const Tensor& tensor) {
  int64_t last = 0;
  for (const TensorDim& dim : tensor.dims) {
    int64_t steps = dim.extent;
    if (!dim.window && !dim.indexed && dim.scale > 0 && !dim.index_outer) {
      steps = std::min(steps, ceil_div(op.slice_extent(dim.dim), dim.per_stick));
    }
    last += (steps - 1) * dim.stride;
  }
  return (last + tensor.lanes()) * bits_of(tensor.format) / 8;
}

Status cores_reach_their_slices(const DeviceOp& op, const Machine& machine) {
  for (const Tensor& tensor : op.tensors) {
    const bool table = tensor.through.has_value();
    if (tensor.residence == Residence::kHbm && !table && span_of(op, tensor) > machine.span_limit.count()) {
      return refuse_tensor(op, tensor, "scheduleTree_",
                           fmt::format("a slice that spans {} bytes", span_of(op, tensor)),
                           fmt::format("{}, what one core reaches", machine.span_limit.count()));
    }
  }
  return Status();
}

// ---- rules of a bundle
// --------------------------------------------------------------------------------------

Status execute_binds_all(const DeviceProgram& program, const Execute& execute) {
  const DeviceOp& op = program.ops[execute.op];
  const auto bound = [&](int64_t symbol) {
    return std::any_of(execute.bindings.begin(), execute.bindings.end(),
                       [&](const Execute::Binding& b) { return b.symbol == symbol; });
  };
  for (const IterationDim& dim : op.dims) {
    if (dim.symbol && !bound(*dim.symbol)) {
      return refuse("bundle.mlir", "symbol_ids",
                    fmt::format("no {}, the extent of '{}' in {}", *dim.symbol, dim.label, op.file),
                    "every symbol of the executed file");
    }
  }
  for (const Tensor& tensor : op.tensors) {
    for (const CoreStart& start : tensor.start) {
      if (start.symbolic && !bound(start.value)) {
        return refuse("bundle.mlir", "symbol_ids",
                      fmt::format("no {}, a start address of {} in {}", start.value, tensor.name, op.file),
                      "every symbol of the executed file");
      }
    }
  }
  return Status();
}

Status steps_bind_all(const DeviceProgram& program, const std::vector<Step>& steps) {
  for (const Step& step : steps) {
    if (const auto* execute = std::get_if<Execute>(&step.what)) {
      SPYRE_TRY(execute_binds_all(program, *execute));
    } else {
      SPYRE_TRY(steps_bind_all(program, std::get<Loop>(step.what).body));
    }
  }
  return Status();
}

}  // namespace

Status validate_record(const SdscRecord& record, const Machine& machine) {
  SPYRE_TRY(core_list_matches_count(record, machine));
  SPYRE_TRY(splits_cover_the_cores(record));
  SPYRE_TRY(cores_run_an_entry_that_exists(record));
  SPYRE_TRY(cores_share_one_schedule(record));
  SPYRE_TRY(tensors_have_a_layout(record));
  SPYRE_TRY(tensors_have_one_node_each(record));
  SPYRE_TRY(operand_references_resolve(record));
  SPYRE_TRY(folds_have_all_levels(record));
  SPYRE_TRY(extents_divide_evenly(record));
  SPYRE_TRY(slices_are_in_range(record));
  return mask_constant_is_there_when_masked(record);
}

Status validate_op(const DeviceOp& op, const Machine& machine) {
  SPYRE_TRY(slices_are_whole_sticks(op));
  SPYRE_TRY(matmul_dims_have_roles(op));
  SPYRE_TRY(topk_dims_have_roles(op));
  SPYRE_TRY(pointwise_tensors_share_a_stick(op));
  SPYRE_TRY(conversions_keep_the_stick(op));
  SPYRE_TRY(relayouts_stay_in_lx(op));
  SPYRE_TRY(broadcast_sticks_are_broadcast_whole(op));
  SPYRE_TRY(results_are_not_broadcast(op));
  SPYRE_TRY(addresses_are_legal(op, machine));
  return cores_reach_their_slices(op, machine);
}

Status validate_bindings(const DeviceProgram& program) {
  return steps_bind_all(program, program.steps);
}

}  // namespace spyre::program
