// Rules that concern one sdsc file as written.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "spyre/ops/ops.h"
#include "spyre/program/fields.h"
#include "spyre/program/refusal.h"
#include "spyre/program/validate.h"

namespace spyre::program {
namespace {

constexpr size_t kMaxLabeledDs = 8;

Error refuse_in(const SdscRecord& r, std::string_view field, std::string_view found,
                std::string_view allowed) {
  return refusal(r.file, r.at(field), found, allowed);
}
Error refuse_at_root(const SdscRecord& r, std::string_view field, std::string_view found,
                     std::string_view allowed) {
  return refusal(r.file, field, found, allowed);
}

bool is_relayout(const SdscRecord& record) {
  const OpInfo* info = find_op(record.compute.function);
  return info != nullptr && info->family == OpFamily::kShuffle;
}

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

}  // namespace spyre::program
