#include "spyre/program/lower.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "spyre/program/element.h"

namespace spyre::program {
namespace {

Error refuse(const SdscRecord& record, std::string_view field, std::string_view found,
             std::string_view allowed, ErrorKind kind = ErrorKind::kInvalidArgument) {
  return Error(kind,
               fmt::format("{}: {}: found {}, allowed: {}", record.file, record.at(field), found, allowed));
}

std::string labels_of(const DeviceOp& op) {
  std::vector<std::string> labels;
  for (const IterationDim& dim : op.dims) {
    labels.push_back(dim.label);
  }
  return fmt::format("{}", fmt::join(labels, ", "));
}

Result<int> dim_index(const SdscRecord& record, const DeviceOp& op, std::string_view field,
                      std::string_view label) {
  for (size_t i = 0; i < op.dims.size(); ++i) {
    if (op.dims[i].label == label) {
      return static_cast<int>(i);
    }
  }
  return refuse(record, field, fmt::format("the dim '{}'", label), "the dims of N_: " + labels_of(op));
}

Result<DataFormat> format_of(const SdscRecord& record, std::string_view field, const std::string& name) {
  const std::optional<DataFormat> format = data_format_from_name(name);
  if (!format || bits_of(*format) == 0) {
    return refuse(record, field, fmt::format("'{}'", name), "the name of a data format, such as SEN169_FP16");
  }
  if (bits_of(*format) < 8) {
    return refuse(record, field, fmt::format("'{}'", name), "formats of whole bytes",
                  ErrorKind::kUnsupported);
  }
  return *format;
}

// ---- iteration space and cores ----------------------------------------------------------------------------

Status lower_dims(const SdscRecord& record, DeviceOp& op) {
  int64_t product = 1;
  for (const auto& [label, extent] : record.extents) {
    IterationDim dim{.label = label, .extent = extent};
    dim.splits = size_of(record.splits, label).value_or(1);
    if (const auto symbol = record.extent_symbols.find(label); symbol != record.extent_symbols.end()) {
      dim.symbol = symbol->second;
    }
    if (extent > kMaxElements / product) {
      return refuse(record, "N_", "an iteration space that overflows",
                    fmt::format("at most {} points", kMaxElements));
    }
    product *= extent;
    op.dims.push_back(std::move(dim));
  }
  for (const auto& [label, symbol] : record.extent_symbols) {
    SPYRE_TRY(dim_index(record, op, "dimToSymbolMapping_", label));
  }
  return Status();
}

Status lower_cores(const SdscRecord& record, DeviceOp& op) {
  std::set<int64_t> ids(record.core_ids.begin(), record.core_ids.end());
  if (op.info->family == OpFamily::kShuffle) {
    // A relayout counts its producers only; the cores that receive are named by the tensors.
    for (const AllocateRecord& node : record.nodes) {
      for (const auto& [core, slice] : node.core_slices) {
        ids.insert(core);
      }
    }
  }
  const auto split =
      std::count_if(op.dims.begin(), op.dims.end(), [](const auto& d) { return d.splits > 1; });
  for (const int64_t id : ids) {
    CoreWork work{.core = static_cast<int>(id), .slice = std::vector<int64_t>(op.dims.size(), 0)};
    const auto row = record.core_slices.find(id);
    for (size_t d = 0; d < op.dims.size(); ++d) {
      if (row != record.core_slices.end()) {
        const auto slice = row->second.find(op.dims[d].label);
        work.slice[d] = slice == row->second.end() ? 0 : slice->second;
      } else if (record.core_slices.empty() && split == 1 && op.dims[d].splits > 1) {
        work.slice[d] = static_cast<int64_t>(op.cores.size());  // one split dim: cores follow it in order
      }
    }
    op.cores.push_back(std::move(work));
  }
  return Status();
}

// ---- constants and masks ----------------------------------------------------------------------------------

Status lower_constants(const SdscRecord& record, DeviceOp& op) {
  for (size_t i = 0; i < record.constants.size(); ++i) {
    const ConstantRecord& from = record.constants[i];
    const std::string field = fmt::format("constantInfo_.{}", i);
    SPYRE_ASSIGN_OR_RETURN(const DataFormat format, format_of(record, field + ".dataFormat_", from.format));
    const int bits = bits_of(format);
    if (!is_arithmetic(format) || (bits < 32 && from.bits >> bits != 0)) {
      return refuse(record, field, fmt::format("{} bits of {}", from.bits, from.format),
                    "the bit pattern of a number in a format the card computes in");
    }
    op.constants.push_back({.name = from.name,
                            .format = format,
                            .bits = static_cast<uint32_t>(from.bits),
                            .value = decode_element(format, static_cast<uint32_t>(from.bits))});
  }
  for (const std::string_view name : op.info->constants) {
    const auto found = std::find_if(op.constants.begin(), op.constants.end(),
                                    [&](const Constant& c) { return c.name == name; });
    if (found == op.constants.end()) {
      return refuse(
          record, "constantInfo_", fmt::format("no '{}'", name),
          fmt::format("the constants of {}: {}", op.info->name, fmt::join(op.info->constants, ", ")));
    }
    op.k.push_back(found->value);
  }
  return Status();
}

Status lower_masks(const SdscRecord& record, DeviceOp& op) {
  if (record.masking.empty()) {
    return Status();
  }
  if (record.mask_constant < 0 || record.mask_constant >= static_cast<int64_t>(op.constants.size())) {
    return refuse(record, "maskingConstId_", std::to_string(record.mask_constant),
                  "the id of an entry of constantInfo_");
  }
  const float value = op.constants[record.mask_constant].value;
  for (const auto& [label, ranges] : record.masking) {
    SPYRE_ASSIGN_OR_RETURN(const int dim, dim_index(record, op, "coordinateMasking_", label));
    for (const auto& [start, count] : ranges) {
      if (start + count > op.dims[dim].extent) {
        return refuse(record, "coordinateMasking_", fmt::format("[{}, {}] along '{}'", start, count, label),
                      fmt::format("ranges inside its extent {}", op.dims[dim].extent));
      }
      op.masks.push_back({.dim = dim, .start = start, .count = count, .value = value});
    }
  }
  return Status();
}

// ---- tensors ----------------------------------------------------------------------------------------------

Result<std::vector<int32_t>> lane_order(const SdscRecord& record, const AllocateRecord& node,
                                        const Tensor& tensor, const std::string& stick_label) {
  const auto found = std::find_if(node.coordinates.begin(), node.coordinates.end(),
                                  [&](const CoordinateRecord& c) { return c.dim == stick_label; });
  // Up to two element levels are (stick, lane): the standard order. More describe an interleave.
  if (found == node.coordinates.end() || found->elem_arr <= 2 || tensor.stick.size() != 1) {
    return std::vector<int32_t>();
  }
  const int64_t lanes = tensor.lanes();
  std::vector<int64_t> coordinate_of = {0};
  for (size_t i = found->levels.size(); i-- > 0 && static_cast<int64_t>(coordinate_of.size()) < lanes;) {
    const FoldLevel& level = found->levels[i];
    const size_t inner = coordinate_of.size();
    for (int64_t digit = 1; digit < std::min(level.factor, lanes); ++digit) {
      for (size_t j = 0; j < inner; ++j) {
        coordinate_of.push_back(coordinate_of[j] + level.alpha * digit);
      }
    }
  }
  std::vector<int32_t> lane_of(lanes, -1);
  for (size_t lane = 0; lane < coordinate_of.size(); ++lane) {
    const int64_t c = coordinate_of[lane];
    if (static_cast<int64_t>(coordinate_of.size()) != lanes || c < 0 || c >= lanes || lane_of[c] != -1) {
      return refuse(record,
                    fmt::format("scheduleTree_[{}].coordinates_.coordInfo.{}", node.index, stick_label),
                    "element levels that do not permute one stick",
                    fmt::format("levels whose factors give {} distinct coordinates below {}", lanes, lanes),
                    ErrorKind::kUnsupported);
    }
    lane_of[c] = static_cast<int32_t>(lane);
  }
  return lane_of;
}

Result<int64_t> gap_of(const SdscRecord& record, const AllocateRecord& node, const std::string& label,
                       bool& declared) {
  const bool short_of = node.shortfall.contains(label);
  const auto& gaps = short_of ? node.shortfall : node.back_gap;
  const auto entry = gaps.find(label);
  declared = entry != gaps.end() && !entry->second.empty();
  if (!declared) {
    return int64_t{0};
  }
  const int64_t gap = entry->second.begin()->second;
  for (const auto& [core, other] : entry->second) {
    if (other != gap) {
      return refuse(record, fmt::format("scheduleTree_[{}].backGapCore_.{}", node.index, label),
                    fmt::format("{} for one core and {} for another", gap, other), "one gap for all cores",
                    ErrorKind::kUnsupported);
    }
  }
  return short_of ? -gap : gap;
}

Status lower_starts(const SdscRecord& record, const AllocateRecord& node, const DeviceOp& op,
                    Tensor& tensor) {
  for (const CoreWork& work : op.cores) {
    auto entry = node.start.find(work.core);
    const bool shared = node.one_start_for_all || (node.component == "lx" && node.start.size() == 1);
    if (entry == node.start.end() && (shared || op.info->family == OpFamily::kShuffle)) {
      entry = node.start.begin();
    }
    if (entry == node.start.end()) {
      return refuse(record, fmt::format("scheduleTree_[{}].startAddressCoreCorelet_.data_", node.index),
                    fmt::format("no entry for core {}", work.core),
                    "one entry for each core in coreIdsUsed_");
    }
    tensor.start.push_back({.symbolic = entry->second < 0, .value = entry->second});
    if (node.component == "lx" && entry->second < 0) {
      return refuse(record, fmt::format("scheduleTree_[{}].startAddressCoreCorelet_.data_", node.index),
                    fmt::format("the symbol {}", entry->second), "a byte address: LX tensors do not move");
    }
  }
  return Status();
}

Status lower_own_slices(const SdscRecord& record, const AllocateRecord& node, const DeviceOp& op,
                        Tensor& tensor) {
  if (op.info->family != OpFamily::kShuffle) {
    return Status();
  }
  tensor.own_splits.assign(op.dims.size(), 1);
  const std::string field = fmt::format("scheduleTree_[{}].coordinates_.coreIdToWkSlice_", node.index);
  for (const CoreWork& work : op.cores) {
    std::vector<int64_t> slice;
    if (const auto row = node.core_slices.find(work.core); row != node.core_slices.end()) {
      slice.assign(op.dims.size(), 0);
      for (const auto& [label, value] : row->second) {
        SPYRE_ASSIGN_OR_RETURN(const int dim, dim_index(record, op, field, label));
        slice[dim] = value;
        tensor.own_splits[dim] = std::max(tensor.own_splits[dim], value + 1);
      }
    }
    tensor.own_slices.push_back(std::move(slice));
  }
  for (size_t d = 0; d < op.dims.size(); ++d) {
    if (op.dims[d].extent % tensor.own_splits[d] != 0) {
      return refuse(record, field, fmt::format("{} slices of '{}'", tensor.own_splits[d], op.dims[d].label),
                    fmt::format("a divisor of its extent {}", op.dims[d].extent));
    }
  }
  return Status();
}

Result<TensorDim> lower_tensor_dim(const SdscRecord& record, const AllocateRecord& node, size_t position,
                                   const LayoutRecord& layout, const LabeledRecord& labeled,
                                   const DeviceOp& op) {
  const std::string& label = node.dims[position];
  const std::string field = fmt::format("scheduleTree_[{}].layoutDimOrder_", node.index);
  TensorDim out;
  SPYRE_ASSIGN_OR_RETURN(out.dim, dim_index(record, op, field, label));
  const auto in_layout = std::find(layout.dims.begin(), layout.dims.end(), label);
  if (in_layout == layout.dims.end()) {
    return refuse(record, field, fmt::format("the dim '{}'", label),
                  fmt::format("the dims of {}: {}", labeled.layout, fmt::join(layout.dims, ", ")));
  }
  out.scale = static_cast<int>(labeled.scale[in_layout - layout.dims.begin()]);
  SPYRE_ASSIGN_OR_RETURN(out.gap, gap_of(record, node, label, out.gap_declared));
  for (size_t i = 0; i < layout.stick_dims.size(); ++i) {
    if (layout.stick_dims[i] == label) {
      out.per_stick *= layout.stick_sizes[i];
    }
  }
  return out;
}

Status require_all_present(const SdscRecord& record, const AllocateRecord& node, const LayoutRecord& layout,
                           const LabeledRecord& labeled) {
  for (size_t i = 0; i < layout.dims.size(); ++i) {
    const bool listed = std::find(node.dims.begin(), node.dims.end(), layout.dims[i]) != node.dims.end();
    if (!listed && labeled.scale[i] > 0) {
      return refuse(record, fmt::format("scheduleTree_[{}].layoutDimOrder_", node.index),
                    fmt::format("no '{}'", layout.dims[i]),
                    fmt::format("every dim of {} with scale 1", labeled.layout));
    }
  }
  if (std::set<std::string>(node.dims.begin(), node.dims.end()).size() != node.dims.size()) {
    return refuse(record, fmt::format("scheduleTree_[{}].layoutDimOrder_", node.index),
                  fmt::format("[{}]", fmt::join(node.dims, ", ")), "each dim once");
  }
  return Status();
}

Result<Tensor> lower_tensor(const SdscRecord& record, const AllocateRecord& node, const DeviceOp& op) {
  const LabeledRecord& labeled = record.tensors[node.index];
  const LayoutRecord& layout = record.layouts.at(labeled.layout);
  Tensor tensor;
  tensor.name = labeled.name;
  const std::string format_field = fmt::format("labeledDs_[{}].dataFormat_", node.index);
  SPYRE_ASSIGN_OR_RETURN(tensor.format, format_of(record, format_field, labeled.format));
  tensor.residence = node.component == "lx" ? Residence::kLx : Residence::kHbm;
  tensor.is_index = node.indirection == "index_tensor";
  SPYRE_TRY(require_all_present(record, node, layout, labeled));
  for (size_t i = 0; i < node.dims.size(); ++i) {
    SPYRE_ASSIGN_OR_RETURN(TensorDim dim, lower_tensor_dim(record, node, i, layout, labeled, op));
    tensor.dims.push_back(std::move(dim));
  }
  for (size_t i = 0; i < layout.stick_dims.size(); ++i) {
    const std::string field = fmt::format("primaryDsInfo_.{}.stickDimOrder_", labeled.layout);
    SPYRE_ASSIGN_OR_RETURN(const int dim, dim_index(record, op, field, layout.stick_dims[i]));
    int64_t divisor = 1;
    for (const StickDigit& inner : tensor.stick) {
      divisor *= inner.dim == dim ? inner.size : 1;
    }
    tensor.stick.push_back(
        {.dim = dim, .size = layout.stick_sizes[i], .divisor = divisor, .present = tensor.present(dim)});
  }
  if (tensor.lanes() != elems_per_stick(tensor.format)) {
    return refuse(record, fmt::format("primaryDsInfo_.{}.stickSize_", labeled.layout),
                  fmt::format("{} elements", tensor.lanes()),
                  fmt::format("{}, a stick of {}", elems_per_stick(tensor.format), labeled.format));
  }
  if (!layout.stick_dims.empty()) {
    SPYRE_ASSIGN_OR_RETURN(tensor.lane_of, lane_order(record, node, tensor, layout.stick_dims[0]));
  }
  SPYRE_TRY(lower_starts(record, node, op, tensor));
  SPYRE_TRY(lower_own_slices(record, node, op, tensor));
  return tensor;
}

// ---- gather and scatter -----------------------------------------------------------------------------------

/// The dim of a table that the index runs over: the innermost one with size 1, or, for pages of several rows,
/// the innermost with any size. Other sized dims belong to a multi-dimensional index.
std::optional<size_t> indexed_position(const AllocateRecord& node) {
  const size_t count = std::min(node.max_dim_sizes.size(), node.dims.size());
  std::optional<size_t> paged;
  for (size_t i = 0; i < count; ++i) {
    if (node.max_dim_sizes[i] == 1) {
      return i;
    }
    if (node.max_dim_sizes[i] > 1 && !paged) {
      paged = i;
    }
  }
  return paged;
}

Status lower_indirection(const SdscRecord& record, DeviceOp& op) {
  for (const AllocateRecord& node : record.nodes) {
    if (node.indirection != "value_tensor") {
      continue;
    }
    const std::string field = fmt::format("scheduleTree_[{}].relatedIndirectAccessAlloc_", node.index);
    const auto partner = std::find_if(record.nodes.begin(), record.nodes.end(), [&](const AllocateRecord& n) {
      return n.indirection == "index_tensor" && (n.name == node.partner || n.partner == node.name);
    });
    if (partner == record.nodes.end()) {
      return refuse(record, field, fmt::format("'{}'", node.partner), "the name of an index tensor's node");
    }
    Tensor& value = op.tensors[node.index];
    Indirection through{.index_tensor = static_cast<int>(partner->index)};
    const std::optional<size_t> indexed = indexed_position(node);
    if (!indexed) {
      return refuse(record, fmt::format("scheduleTree_[{}].maxDimSizes_", node.index),
                    "no dim with a page size", "a size of at least 1 for the indexed dim");
    }
    for (size_t i = 0; i < std::min(node.max_dim_sizes.size(), value.dims.size()); ++i) {
      value.dims[i].indexed = i == *indexed;
      value.dims[i].index_outer = i != *indexed && node.max_dim_sizes[i] >= 1;
    }
    through.page = node.max_dim_sizes[*indexed];
    value.through = through;
  }
  return Status();
}

// ---- windows ----------------------------------------------------------------------------------------------

Status lower_windows(const SdscRecord& record, DeviceOp& op) {
  const OpFamily family = op.info->family;
  if (family != OpFamily::kPool && family != OpFamily::kConv && family != OpFamily::kDepthwise) {
    return Status();
  }
  Tensor& input = op.tensors[op.inputs[0]];
  for (const auto& [label, pad] : record.padding) {
    const std::string field = "N_.paddingSizes_." + label;
    SPYRE_ASSIGN_OR_RETURN(const int dim, dim_index(record, op, field, label));
    SPYRE_ASSIGN_OR_RETURN(const int window_dim,
                           dim_index(record, op, field + ".windowDim_", pad.window_dim));
    const int64_t front = std::max<int64_t>(pad.pad_front, 0), back = std::max<int64_t>(pad.pad_back, 0);
    const int64_t reach = (op.dims[window_dim].extent - 1) * pad.dilation + 1;
    const int64_t consumed =
        pad.total_size > 0 ? pad.total_size : (op.dims[dim].extent - 1) * pad.stride + reach;
    if (consumed - front - back < 1 || consumed > kMaxExtent) {
      return refuse(record, field, fmt::format("totalSize_ {} with pads {} and {}", consumed, front, back),
                    "an input of at least one row");
    }
    for (TensorDim& entry : input.dims) {
      if (entry.dim == dim && entry.per_stick != 1) {
        return refuse(record, field, "a window along the stick", "windows along other dims",
                      ErrorKind::kUnsupported);
      }
      if (entry.dim == dim) {
        entry.window = Window{.window_dim = window_dim,
                              .stride = pad.stride,
                              .dilation = pad.dilation,
                              .pad_front = front,
                              .input_extent = consumed - front - back};
      }
    }
  }
  return Status();
}

// ---- operands ---------------------------------------------------------------------------------------------

int operand_index(const std::string& reference) {
  const size_t dash = reference.rfind("-idx");
  return std::stoi(reference.substr(dash + 4));  // form checked by the validator
}

Status lower_operands(const SdscRecord& record, DeviceOp& op) {
  if (record.compute.outputs.size() != 1) {
    return refuse(record, "computeOp_[0].outputLabeledDs",
                  fmt::format("{} outputs", record.compute.outputs.size()), "one");
  }
  op.output = operand_index(record.compute.outputs[0]);
  for (const std::string& reference : record.compute.inputs) {
    const int index = operand_index(reference);
    const bool is_index = record.nodes[index].indirection == "index_tensor";
    if (index != op.output && !is_index) {
      op.inputs.push_back(index);
    }
  }
  if (static_cast<int>(op.inputs.size()) != op.info->inputs) {
    return refuse(record, "computeOp_[0].inputLabeledDs", fmt::format("{} data inputs", op.inputs.size()),
                  fmt::format("{}, for {}", op.info->inputs, op.info->name));
  }
  return Status();
}

Status check_formats(const SdscRecord& record, const DeviceOp& op) {
  const auto check = [&](int index, FormatSet allowed) -> Status {
    const DataFormat format = op.tensors[index].format;
    if (!allowed.contains(format)) {
      return refuse(record, fmt::format("labeledDs_[{}].dataFormat_", index), spyre::to_string(format),
                    fmt::format("{}, for {}", allowed.to_string(), op.name), ErrorKind::kUnsupported);
    }
    return Status();
  };
  for (const int input : op.inputs) {
    SPYRE_TRY(check(input, op.info->input_formats));
  }
  return check(op.output, op.info->output_formats);
}

Status check_tensor_sizes(const SdscRecord& record, const DeviceOp& op) {
  for (const Tensor& tensor : op.tensors) {
    int64_t product = tensor.lanes();
    for (const TensorDim& dim : tensor.dims) {
      const int64_t steps =
          dim.window ? dim.window->input_extent : op.dims[dim.dim].extent + std::abs(dim.gap);
      if (steps > kMaxElements / product) {
        return refuse(record, "scheduleTree_", fmt::format("'{}' with a size that overflows", tensor.name),
                      fmt::format("at most {} elements", kMaxElements));
      }
      product *= steps;
    }
  }
  return Status();
}

}  // namespace

Result<DeviceOp> lower_sdsc(const SdscRecord& record) {
  DeviceOp op;
  op.file = record.file;
  op.name = record.compute.function;
  op.info = find_op(op.name);
  if (op.info == nullptr) {
    return refuse(record, "computeOp_[0].opFuncName", fmt::format("'{}'", op.name),
                  "the op functions of spyre/ops/table.def", ErrorKind::kUnsupported);
  }
  op.nonstick = is_nonstick_name(op.name);
  SPYRE_TRY(lower_dims(record, op));
  SPYRE_TRY(lower_cores(record, op));
  SPYRE_TRY(lower_operands(record, op));
  for (const AllocateRecord& node : record.nodes) {
    SPYRE_ASSIGN_OR_RETURN(Tensor tensor, lower_tensor(record, node, op));
    op.tensors.push_back(std::move(tensor));
  }
  op.format = op.tensors[op.inputs[0]].format;
  if (!record.compute.format.empty()) {
    SPYRE_ASSIGN_OR_RETURN(op.format,
                           format_of(record, "computeOp_[0].attributes_.dataFormat_", record.compute.format));
  }
  SPYRE_TRY(lower_indirection(record, op));
  SPYRE_TRY(lower_windows(record, op));
  SPYRE_TRY(check_formats(record, op));
  SPYRE_TRY(check_tensor_sizes(record, op));
  SPYRE_TRY(lower_constants(record, op));
  SPYRE_TRY(lower_masks(record, op));
  resolve_strides(op);
  return op;
}

void refine_with_physical_size(DeviceOp& op, int index, const std::vector<int64_t>& device_size) {
  Tensor& tensor = op.tensors[index];
  std::vector<TensorDim*> present;
  for (TensorDim& dim : tensor.dims) {
    if (dim.scale > 0 && !dim.index_outer) {
      present.push_back(&dim);
    }
  }
  if (device_size.size() != present.size() + 1) {
    return;
  }
  for (size_t i = 0; i < present.size(); ++i) {
    TensorDim& dim = *present[i];
    const int64_t physical = device_size[device_size.size() - 2 - i];
    if (physical < 1 || physical > kMaxExtent) {
      continue;
    }
    const int64_t extent = op.dims[dim.dim].extent;
    if (dim.indexed) {
      dim.gap = physical * dim.per_stick - extent;
      dim.gap_declared = true;
    } else if (op.name == "ReStickifyOpHBM" && dim.per_stick == 1 && dim.gap > 0 &&
               physical == extent - dim.gap) {
      dim.gap = -dim.gap;
    }
  }
  resolve_strides(op);
}

}  // namespace spyre::program
