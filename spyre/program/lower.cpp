#include "spyre/program/lower.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "spyre/program/element.h"
#include "spyre/program/lower_parts.h"

namespace spyre::program {

Result<int> dim_index(const SdscRecord& record, const ProgramOp& op, std::string_view field,
                      std::string_view label) {
  for (size_t i = 0; i < op.dims.size(); ++i) {
    if (op.dims[i].label == label) {
      return static_cast<int>(i);
    }
  }
  std::vector<std::string> labels;
  for (const ProgramDim& dim : op.dims) {
    labels.push_back(dim.label);
  }
  return refuse(record, field, fmt::format("the dim '{}'", label),
                fmt::format("the dims of N_: {}", fmt::join(labels, ", ")));
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

namespace {

// ---- iteration space and cores ----------------------------------------------------------------------------

Status lower_dims(const SdscRecord& record, ProgramOp& op) {
  int64_t product = 1;
  for (const auto& [label, extent] : record.extents) {
    ProgramDim dim{.label = label, .extent = extent};
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

Status lower_cores(const SdscRecord& record, ProgramOp& op) {
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

Status lower_constants(const SdscRecord& record, ProgramOp& op) {
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

Status lower_masks(const SdscRecord& record, ProgramOp& op) {
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

Status lower_indirection(const SdscRecord& record, ProgramOp& op) {
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

Status lower_windows(const SdscRecord& record, ProgramOp& op) {
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

Status lower_operands(const SdscRecord& record, ProgramOp& op) {
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

Status check_formats(const SdscRecord& record, const ProgramOp& op) {
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

Status check_tensor_sizes(const SdscRecord& record, const ProgramOp& op) {
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

Result<ProgramOp> lower_sdsc(const SdscRecord& record) {
  ProgramOp op;
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

void refine_with_physical_size(ProgramOp& op, int index, const std::vector<int64_t>& device_size) {
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
  const auto physical_of = [&](size_t i) { return device_size[device_size.size() - 2 - i]; };
  // The dims of an op are not always those of the allocation: a position chosen once is none of them, and one of another
  // operand may be. A table's length is there only where the dims around it are as long as they say.
  bool lines_up = true;
  for (size_t i = 0; i < present.size(); ++i) {
    lines_up &= present[i]->indexed || present[i]->extent == physical_of(i);
  }
  for (size_t i = 0; i < present.size(); ++i) {
    TensorDim& dim = *present[i];
    const int64_t physical = physical_of(i);
    if (physical < 1 || physical > kMaxExtent) {
      continue;
    }
    const int64_t extent = op.dims[dim.dim].extent;
    if (dim.indexed && !dim.gap_declared && lines_up) {
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
