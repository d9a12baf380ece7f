// One tensor of a record becomes a Tensor: dims, stick, lane order, starts.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "spyre/program/lower_parts.h"

namespace spyre::program {
namespace {

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

Status lower_starts(const SdscRecord& record, const AllocateRecord& node, const ProgramOp& op,
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

Status lower_own_slices(const SdscRecord& record, const AllocateRecord& node, const ProgramOp& op,
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
                                   const ProgramOp& op) {
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

}  // namespace

Result<Tensor> lower_tensor(const SdscRecord& record, const AllocateRecord& node, const ProgramOp& op) {
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

}  // namespace spyre::program
