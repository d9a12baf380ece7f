#include "spyre/program/sdsc_record.h"

#include <fmt/format.h>

#include "spyre/base/json.h"
#include "spyre/program/sdsc_parts.h"

namespace spyre::program {
namespace {

/// `{"name_":"n","mb_":4,...}`: members whose value is a number and whose key ends in an underscore.
Result<DimSizes> read_sizes(const Field& field) {
  SPYRE_ASSIGN_OR_RETURN(const auto members, field.members(64));
  DimSizes sizes;
  for (const auto& [key, value] : members) {
    if (key.size() < 2 || key.back() != '_' || !value.json().is_number()) {
      continue;
    }
    SPYRE_ASSIGN_OR_RETURN(const int64_t size, value.integer(-1, kMaxExtent));
    if (size == -1) {
      continue;  // an unused dim
    }
    if (size == 0) {
      return value.refuse("0", fmt::format("an integer from 1 to {}, or -1 for an unused dim", kMaxExtent));
    }
    sizes.emplace_back(key.substr(0, key.size() - 1), size);
  }
  if (sizes.size() > kMaxDims) {
    return field.refuse(fmt::format("{} dims", sizes.size()), fmt::format("at most {}", kMaxDims));
  }
  return sizes;
}

Result<std::map<std::string, PaddingRecord>> read_padding(const Field& sizes) {
  std::map<std::string, PaddingRecord> out;
  SPYRE_ASSIGN_OR_RETURN(const std::optional<Field> field, sizes.find("paddingSizes_"));
  if (!field) {
    return out;
  }
  SPYRE_ASSIGN_OR_RETURN(const auto members, field->members(kMaxDims));
  for (const auto& [dim, value] : members) {
    PaddingRecord pad;
    SPYRE_ASSIGN_OR_RETURN(pad.pad_front, optional_integer(value, "padFront_", -1, kMaxExtent, 0));
    SPYRE_ASSIGN_OR_RETURN(pad.pad_back, optional_integer(value, "padBack_", -1, kMaxExtent, 0));
    SPYRE_ASSIGN_OR_RETURN(pad.total_size, optional_integer(value, "totalSize_", 0, kMaxExtent, 0));
    SPYRE_ASSIGN_OR_RETURN(pad.stride, optional_integer(value, "stride_", 1, kMaxExtent, 1));
    SPYRE_ASSIGN_OR_RETURN(pad.dilation, optional_integer(value, "dilation_", 1, kMaxExtent, 1));
    SPYRE_ASSIGN_OR_RETURN(pad.unneeded_front,
                           optional_integer(value, "unneededPadFront_", 0, kMaxExtent, 0));
    SPYRE_ASSIGN_OR_RETURN(pad.unneeded_back, optional_integer(value, "unneededPadBack_", 0, kMaxExtent, 0));
    SPYRE_ASSIGN_OR_RETURN(pad.window_dim, optional_text(value, "windowDim_", ""));
    out[dim] = std::move(pad);
  }
  return out;
}

Status read_schedule(const Field& root, SdscRecord& record) {
  SPYRE_ASSIGN_OR_RETURN(const std::optional<Field> field, root.find("coreIdToDscSchedule"));
  if (!field) {
    return Status();
  }
  SPYRE_ASSIGN_OR_RETURN(const auto cores, field->members(kManyCores));
  for (const auto& [key, list] : cores) {
    SPYRE_ASSIGN_OR_RETURN(const int64_t core, core_key(*field, key));
    SPYRE_ASSIGN_OR_RETURN(const auto entries, list.elements(64));
    std::vector<std::array<int64_t, 4>>& schedule = record.schedule[core];
    for (const Field& entry : entries) {
      SPYRE_ASSIGN_OR_RETURN(const auto numbers, entry.elements(4));
      if (numbers.size() != 4) {
        return entry.refuse(fmt::format("{} numbers", numbers.size()),
                            "[data-op index, dsc index, barrier before, barrier after]");
      }
      std::array<int64_t, 4> tuple{};
      for (size_t i = 0; i < 4; ++i) {
        SPYRE_ASSIGN_OR_RETURN(tuple[i], numbers[i].integer(-1, kMaxCoreId));
      }
      schedule.push_back(tuple);
    }
  }
  return Status();
}

Status read_cores(const Field& root, SdscRecord& record) {
  SPYRE_ASSIGN_OR_RETURN(const Field used, root.at("numCoresUsed_"));
  SPYRE_ASSIGN_OR_RETURN(record.cores_used, used.integer(1, kMaxCoreId + 1));
  SPYRE_ASSIGN_OR_RETURN(const std::optional<Field> to_dsc, root.find("coreIdToDsc_"));
  if (to_dsc) {
    SPYRE_ASSIGN_OR_RETURN(const auto members, to_dsc->members(kManyCores));
    for (const auto& [key, value] : members) {
      SPYRE_ASSIGN_OR_RETURN(const int64_t core, core_key(*to_dsc, key));
      SPYRE_ASSIGN_OR_RETURN(record.core_to_dsc[core], value.integer(kAnyLow, kAnyHigh));
    }
  }
  SPYRE_ASSIGN_OR_RETURN(const std::optional<Field> splits, root.find("numWkSlicesPerDim_"));
  if (splits) {
    SPYRE_ASSIGN_OR_RETURN(const auto members, splits->members(kMaxDims));
    for (const auto& [dim, value] : members) {
      SPYRE_ASSIGN_OR_RETURN(const int64_t count, value.integer(1, kMaxCoreId + 1));
      record.splits.emplace_back(dim, count);
    }
  }
  SPYRE_ASSIGN_OR_RETURN(const std::optional<Field> slices, root.find("coreIdToWkSlice_"));
  if (slices) {
    SPYRE_ASSIGN_OR_RETURN(record.core_slices, read_core_slices(*slices));
  }
  return read_schedule(root, record);
}

Status read_masking(const Field& dsc, SdscRecord& record) {
  SPYRE_ASSIGN_OR_RETURN(const std::optional<Field> field, dsc.find("coordinateMasking_"));
  if (field) {
    SPYRE_ASSIGN_OR_RETURN(const auto dims, field->members(kMaxDims));
    for (const auto& [dim, list] : dims) {
      SPYRE_ASSIGN_OR_RETURN(const auto ranges, list.elements(64));
      for (const Field& range : ranges) {
        SPYRE_ASSIGN_OR_RETURN(const auto pair, range.elements(2));
        if (pair.size() != 2) {
          return range.refuse(fmt::format("{} numbers", pair.size()), "[start, count]");
        }
        SPYRE_ASSIGN_OR_RETURN(const int64_t start, pair[0].integer(0, kMaxExtent));
        SPYRE_ASSIGN_OR_RETURN(const int64_t count, pair[1].integer(0, kMaxExtent));
        record.masking[dim].emplace_back(start, count);
      }
    }
  }
  SPYRE_ASSIGN_OR_RETURN(record.mask_constant, optional_integer(dsc, "maskingConstId_", -1, kMaxCoreId, -1));
  return Status();
}

Status read_extents(const Field& dsc, SdscRecord& record) {
  SPYRE_ASSIGN_OR_RETURN(const Field total, dsc.at("N_"));
  SPYRE_ASSIGN_OR_RETURN(record.extents, read_sizes(total));
  if (record.extents.empty()) {
    return total.refuse_value("an object with at least one \"<dim>_\": extent");
  }
  SPYRE_ASSIGN_OR_RETURN(record.padding, read_padding(total));
  SPYRE_ASSIGN_OR_RETURN(const std::optional<Field> symbols, dsc.find("dimToSymbolMapping_"));
  if (symbols) {
    SPYRE_ASSIGN_OR_RETURN(const auto dims, symbols->members(kMaxDims));
    for (const auto& [dim, list] : dims) {
      SPYRE_ASSIGN_OR_RETURN(const auto ids, list.elements(1));
      if (ids.size() != 1) {
        return list.refuse_value("a list of one symbol id");
      }
      SPYRE_ASSIGN_OR_RETURN(record.extent_symbols[dim], ids[0].integer(kAnyLow, -1));
    }
  }
  SPYRE_ASSIGN_OR_RETURN(const std::optional<Field> stages, dsc.find("dataStageParam_"));
  if (stages) {
    SPYRE_ASSIGN_OR_RETURN(const Field stage, stages->at("0"));
    SPYRE_ASSIGN_OR_RETURN(const Field steady, stage.at("ss_"));
    SPYRE_ASSIGN_OR_RETURN(record.steady, read_sizes(steady));
    SPYRE_ASSIGN_OR_RETURN(const std::optional<Field> epilogue, stage.find("el_"));
    if (epilogue) {
      SPYRE_ASSIGN_OR_RETURN(record.epilogue, read_sizes(*epilogue));
    }
    if (record.padding.empty()) {
      SPYRE_ASSIGN_OR_RETURN(record.padding, read_padding(steady));
    }
  }
  return Status();
}

Status read_layouts(const Field& dsc, SdscRecord& record) {
  SPYRE_ASSIGN_OR_RETURN(const Field field, dsc.at("primaryDsInfo_"));
  SPYRE_ASSIGN_OR_RETURN(const auto labels, field.members(64));
  for (const auto& [label, value] : labels) {
    LayoutRecord layout;
    SPYRE_ASSIGN_OR_RETURN(const Field dims, value.at("layoutDimOrder_"));
    SPYRE_ASSIGN_OR_RETURN(layout.dims, dims.texts(kMaxDims));
    SPYRE_ASSIGN_OR_RETURN(const Field stick_dims, value.at("stickDimOrder_"));
    SPYRE_ASSIGN_OR_RETURN(layout.stick_dims, stick_dims.texts(8));
    SPYRE_ASSIGN_OR_RETURN(const Field sizes, value.at("stickSize_"));
    SPYRE_ASSIGN_OR_RETURN(const auto numbers, sizes.elements(8));
    for (const Field& number : numbers) {
      SPYRE_ASSIGN_OR_RETURN(const int64_t size, number.integer(1, 1024));
      layout.stick_sizes.push_back(size);
    }
    record.layouts[label] = std::move(layout);
  }
  return Status();
}

Result<LabeledRecord> read_labeled(const Field& field) {
  LabeledRecord tensor;
  SPYRE_ASSIGN_OR_RETURN(const Field index, field.at("ldsIdx_"));
  SPYRE_ASSIGN_OR_RETURN(tensor.index, index.integer(kAnyLow, kAnyHigh));
  SPYRE_ASSIGN_OR_RETURN(const Field name, field.at("dsName_"));
  SPYRE_ASSIGN_OR_RETURN(tensor.name, name.text());
  SPYRE_ASSIGN_OR_RETURN(const Field layout, field.at("dsType_"));
  SPYRE_ASSIGN_OR_RETURN(tensor.layout, layout.text());
  SPYRE_ASSIGN_OR_RETURN(const Field scale, field.at("scale_"));
  SPYRE_ASSIGN_OR_RETURN(const auto numbers, scale.elements(kMaxDims));
  for (const Field& number : numbers) {
    SPYRE_ASSIGN_OR_RETURN(const int64_t value, number.integer(-2, 1));
    if (value == 0) {
      return number.refuse_value("1, -1 or -2");
    }
    tensor.scale.push_back(value);
  }
  SPYRE_ASSIGN_OR_RETURN(const std::optional<Field> word, field.find("wordLength"));
  if (word) {
    if (!word->json().is_number()) {
      return word->refuse_value("a number of bytes");
    }
    tensor.word_length = word->json().get<double>();
  }
  SPYRE_ASSIGN_OR_RETURN(const Field format, field.at("dataFormat_"));
  SPYRE_ASSIGN_OR_RETURN(tensor.format, format.text());
  return tensor;
}

Status read_constants(const Field& dsc, SdscRecord& record) {
  SPYRE_ASSIGN_OR_RETURN(const std::optional<Field> field, dsc.find("constantInfo_"));
  if (!field || (field->json().is_string() && field->json() == "{}")) {
    return Status();
  }
  SPYRE_ASSIGN_OR_RETURN(const auto entries, field->members(256));
  for (size_t i = 0; i < entries.size(); ++i) {
    const std::string id = std::to_string(i);
    SPYRE_ASSIGN_OR_RETURN(const Field entry, field->at(id));
    ConstantRecord constant;
    SPYRE_ASSIGN_OR_RETURN(const Field name, entry.at("name_"));
    SPYRE_ASSIGN_OR_RETURN(constant.name, name.text());
    SPYRE_ASSIGN_OR_RETURN(const Field format, entry.at("dataFormat_"));
    SPYRE_ASSIGN_OR_RETURN(constant.format, format.text());
    SPYRE_ASSIGN_OR_RETURN(const Field folded, entry.at("data_"));
    SPYRE_ASSIGN_OR_RETURN(const Field data, folded.at("data_"));
    SPYRE_ASSIGN_OR_RETURN(const auto values, data.members(kManyCores));
    if (values.size() != 1) {
      return data.refuse(fmt::format("{} values", values.size()), "one value for all cores");
    }
    Field bits = values[0].second;
    if (bits.json().is_array()) {
      SPYRE_ASSIGN_OR_RETURN(const auto list, bits.elements(1));
      if (list.empty()) {
        return bits.refuse_value("a list of one bit pattern");
      }
      bits = list[0];
    }
    SPYRE_ASSIGN_OR_RETURN(constant.bits, bits.integer(0, 0xFFFFFFFF));
    record.constants.push_back(std::move(constant));
  }
  return Status();
}

Status read_compute(const Field& dsc, SdscRecord& record) {
  SPYRE_ASSIGN_OR_RETURN(const Field list, dsc.at("computeOp_"));
  SPYRE_ASSIGN_OR_RETURN(const auto entries, list.elements(16));
  if (entries.size() != 1) {
    return list.refuse(fmt::format("{} entries", entries.size()), "one compute op");
  }
  const Field& op = entries[0];
  ComputeRecord& compute = record.compute;
  SPYRE_ASSIGN_OR_RETURN(compute.unit, optional_text(op, "exUnit", "sfp"));
  SPYRE_ASSIGN_OR_RETURN(const Field function, op.at("opFuncName"));
  SPYRE_ASSIGN_OR_RETURN(compute.function, function.text());
  SPYRE_ASSIGN_OR_RETURN(const std::optional<Field> attributes, op.find("attributes_"));
  if (attributes) {
    SPYRE_ASSIGN_OR_RETURN(compute.format, optional_text(*attributes, "dataFormat_", ""));
    SPYRE_ASSIGN_OR_RETURN(compute.fidelity, optional_text(*attributes, "fidelity_", "regular"));
  }
  SPYRE_ASSIGN_OR_RETURN(const Field inputs, op.at("inputLabeledDs"));
  SPYRE_ASSIGN_OR_RETURN(compute.inputs, inputs.texts(kMaxTensors));
  SPYRE_ASSIGN_OR_RETURN(const Field outputs, op.at("outputLabeledDs"));
  SPYRE_ASSIGN_OR_RETURN(compute.outputs, outputs.texts(kMaxTensors));
  SPYRE_ASSIGN_OR_RETURN(const std::optional<Field> indices, op.find("indirectAccessIndexLabeledDs"));
  if (indices) {
    SPYRE_ASSIGN_OR_RETURN(compute.indices, indices->texts(kMaxTensors));
  }
  return Status();
}

Status read_dsc(const Field& dsc, SdscRecord& record) {
  SPYRE_ASSIGN_OR_RETURN(record.dsc_cores_used,
                         optional_integer(dsc, "numCoresUsed_", 1, kMaxCoreId + 1, record.cores_used));
  SPYRE_ASSIGN_OR_RETURN(const std::optional<Field> ids, dsc.find("coreIdsUsed_"));
  if (ids) {
    SPYRE_ASSIGN_OR_RETURN(const auto list, ids->elements(kManyCores));
    for (const Field& id : list) {
      SPYRE_ASSIGN_OR_RETURN(const int64_t core, id.integer(0, kMaxCoreId));
      record.core_ids.push_back(core);
    }
  } else {
    for (int64_t core = 0; core < record.dsc_cores_used; ++core) {
      record.core_ids.push_back(core);
    }
  }
  SPYRE_TRY(read_extents(dsc, record));
  SPYRE_TRY(read_masking(dsc, record));
  SPYRE_TRY(read_layouts(dsc, record));
  SPYRE_ASSIGN_OR_RETURN(const Field tensors, dsc.at("labeledDs_"));
  SPYRE_ASSIGN_OR_RETURN(const auto tensor_list, tensors.elements(kMaxTensors));
  for (const Field& field : tensor_list) {
    SPYRE_ASSIGN_OR_RETURN(LabeledRecord tensor, read_labeled(field));
    record.tensors.push_back(std::move(tensor));
  }
  SPYRE_ASSIGN_OR_RETURN(const Field nodes, dsc.at("scheduleTree_"));
  SPYRE_ASSIGN_OR_RETURN(const auto node_list, nodes.elements(kMaxTensors));
  for (const Field& field : node_list) {
    SPYRE_ASSIGN_OR_RETURN(AllocateRecord node, read_node(field));
    record.nodes.push_back(std::move(node));
  }
  SPYRE_TRY(read_constants(dsc, record));
  return read_compute(dsc, record);
}

}  // namespace

std::optional<int64_t> size_of(const DimSizes& sizes, std::string_view dim) {
  for (const auto& [name, size] : sizes) {
    if (name == dim) {
      return size;
    }
  }
  return std::nullopt;
}

std::string SdscRecord::at(std::string_view field) const {
  return fmt::format("dscs_[0].{}.{}", dsc, field);
}

Result<SdscRecord> read_sdsc(const Json& json, const std::string& file) {
  SdscRecord record;
  record.file = file;
  const Field whole(file, json);
  SPYRE_ASSIGN_OR_RETURN(const auto roots, whole.members(16));
  if (roots.size() != 1) {
    return whole.refuse(fmt::format("{} root keys", roots.size()), "exactly one");
  }
  record.root = roots[0].first;
  const Field& root = roots[0].second;
  SPYRE_TRY(read_cores(root, record));
  SPYRE_ASSIGN_OR_RETURN(const Field list, root.at("dscs_"));
  SPYRE_ASSIGN_OR_RETURN(const auto dscs, list.elements(64));
  record.dsc_count = static_cast<int64_t>(dscs.size());
  if (dscs.size() != 1) {
    return list.refuse(fmt::format("{} entries", dscs.size()), "exactly one");
  }
  SPYRE_ASSIGN_OR_RETURN(const auto named, dscs[0].members(16));
  if (named.size() != 1) {
    return dscs[0].refuse(fmt::format("{} keys", named.size()), "exactly one, the op function's name");
  }
  record.dsc = named[0].first;
  // Paths are told from the file's top, but the root key says nothing a reader needs.
  SPYRE_TRY(read_dsc(named[0].second.told_from(root), record));
  return record;
}

}  // namespace spyre::program
