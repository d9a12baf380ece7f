#include "spyre/codegen/superdsc/sdsc_json.h"

#include <fmt/format.h>

#include "spyre/base/json.h"
#include "spyre/codegen/superdsc/constants.h"
#include "spyre/codegen/superdsc/folds.h"
#include "spyre/codegen/superdsc/physical.h"

namespace spyre::superdsc {
namespace {

Json fold_attribute(int64_t factor, std::string_view label) {
  return {{"factor_", factor}, {"label_", label}};
}

class Writer {
 public:
  Writer(const SdscPlan& plan, const OpSymbols& symbols, const SdscPosition& position)
      : plan_(plan), symbols_(symbols), position_(position) {}

  Json file() const {
    Json root = Json::object();
    root[fmt::format("{}_{}", position_.file, plan_.function)] = super_dsc();
    return root;
  }

 private:
  const std::string& label(int dim) const { return plan_.dims[dim].label; }
  bool has_dynamic_dims() const {
    return std::any_of(plan_.dims.begin(), plan_.dims.end(), [](const Dim& d) { return !d.dynamic.empty(); });
  }

  // ---- the outer object ----

  Json super_dsc() const {
    Json out = Json::object();
    out["debug_handle_"] = position_.with_handle ? debug_handle() : Json(nullptr);
    out["sdscFoldProps_"] = Json::array({fold_attribute(1, "time")});
    out["sdscFolds_"] = {{"dim_prop_func", Json::array({{{"Affine", {{"alpha_", 1}, {"beta_", 0}}}}})},
                         {"dim_prop_attr", Json::array({fold_attribute(1, "time")})},
                         {"data_", {{"[0]", "0"}}}};
    out["coreFoldProp_"] = fold_attribute(cores_listed().size(), "core");
    out["coreletFoldProp_"] = fold_attribute(1, "corelet");
    out["numCoresUsed_"] = cores_listed().size();
    Json dsc_of = Json::object();
    Json slice_of = Json::object();
    Json schedule_of = Json::object();
    for (const int64_t core : cores_listed()) {
      dsc_of[std::to_string(core)] = 0;
      schedule_of[std::to_string(core)] = Json::array({Json::array({-1, 0, 0, 0})});
    }
    for (int64_t core = 0; core < plan_.cores; ++core) slice_of[std::to_string(core)] = slices(core);
    out["coreIdToDsc_"] = std::move(dsc_of);
    out["numWkSlicesPerDim_"] = Json::object();
    for (const Dim& dim : plan_.dims) out["numWkSlicesPerDim_"][dim.label] = dim.split;
    out["coreIdToWkSlice_"] = std::move(slice_of);
    out["coreIdToDscSchedule"] = std::move(schedule_of);
    out["dscs_"] = Json::array({{{plan_.function, design_space_config()}}});
    if (has_dynamic_dims()) add_symbolic_maps(out);
    return out;
  }

  // A relayout counts only the cores that produced something; other ops count the cores that work.
  std::vector<int64_t> cores_listed() const {
    if (!plan_.op->completed_producer_cores.empty()) return plan_.op->completed_producer_cores;
    std::vector<int64_t> cores(plan_.cores);
    for (int64_t core = 0; core < plan_.cores; ++core) cores[core] = core;
    return cores;
  }

  Json slices(int64_t core) const {
    Json row = Json::object();
    for (size_t i = 0; i < plan_.dims.size(); ++i) row[plan_.dims[i].label] = plan_.slices[core][i];
    return row;
  }

  Json debug_handle() const {
    if (!plan_.op->debug_handle) return nullptr;
    const DebugHandle& h = *plan_.op->debug_handle;
    return {{"id", std::to_string(h.id)},
            {"source",
             {{"file", h.file},
              {"start_line", h.start_line},
              {"start_col", h.start_col},
              {"end_line", h.end_line},
              {"end_col", h.end_col}}},
            {"aten_op", h.aten_op},
            {"ir_chain", h.ir_chain},
            {"fused_from", h.fused_from},
            {"transform_history", h.transform_history}};
  }

  void add_symbolic_maps(Json& out) const {
    out["datadscs_"] = Json::array();
    out["dimToSymbolMappingOpcodeCorrection_"] = Json::object();
    out["inputSymbolsAndTags_"] = Json::object();
    for (size_t i = 0; i < plan_.dims.size(); ++i) {
      if (plan_.dims[i].dynamic.empty()) continue;
      out["inputSymbolsAndTags_"][std::to_string(symbol_id(position_, symbols_.of_dim[i]))] =
          plan_.dims[i].dynamic;
    }
    out["symbolDefinitions_"] = Json::object();
  }

  // ---- the one design space ----

  Json design_space_config() const {
    Json out = Json::object();
    out["numCoresUsed_"] = cores_listed().size();
    out["numCoreletsUsed_"] = 1;
    out["coreIdsUsed_"] = cores_listed();
    out["N_"] = total_sizes();
    out["coordinateMasking_"] = Json::object();
    if (plan_.mask) {
      out["coordinateMasking_"][label(plan_.mask->dim)] =
          Json::array({Json::array({plan_.mask->start, plan_.mask->count})});
    }
    out["maskingConstId_"] = plan_.mask ? static_cast<int64_t>(plan_.constants.size()) - 1 : -1;
    if (has_dynamic_dims()) out["dimToSymbolMapping_"] = dim_symbols();
    out["dataStageParam_"] = {{"0", {{"ss_", stage()}, {"el_", stage()}}}};
    out["primaryDsInfo_"] = layout_classes();
    if (plan_.is(OpFamily::kPool) || plan_.is(OpFamily::kConv)) out["pdsRelation_"] = {{"isPdsReuse", 1}};
    out["scheduleTree_"] = Json::array();
    out["labeledDs_"] = Json::array();
    for (size_t i = 0; i < plan_.tensors.size(); ++i) {
      out["scheduleTree_"].push_back(allocate_node(i));
      out["labeledDs_"].push_back(labeled_tensor(i));
    }
    out["constantInfo_"] = constants();
    out["computeOp_"] = Json::array({compute_op()});
    return out;
  }

  Json total_sizes() const {
    Json out = {{"name_", "n"}};
    for (const Dim& dim : plan_.dims) out[dim.label + "_"] = dim.extent;
    if (plan_.has_window()) out["paddingSizes_"] = window_sizes(false);
    return out;
  }

  Json stage() const {
    Json out = {{"name_", "core"}};
    for (const Dim& dim : plan_.dims) out[dim.label + "_"] = dim.per_core();
    out["symbolicDimInfo_"] = Json::object();
    for (const Dim& dim : plan_.dims) {
      if (dim.dynamic.empty()) continue;
      out["symbolicDimInfo_"][dim.label] = {
          {"maxSize_", dim.bound.max / dim.split},
          {"granularity_", std::max<int64_t>(1, dim.bound.granularity / dim.split)}};
    }
    for (const char* empty : {"maxSymbolicVolume_", "coreletSplit_", "rowSplit_", "peSfpSplit_"}) {
      out[empty] = Json::object();
    }
    out["paddingSizes_"] = plan_.has_window() ? window_sizes(true) : Json::object();
    return out;
  }

  // Windows along i and j, for the whole op or for one core.
  Json window_sizes(bool per_core) const {
    Json out = Json::object();
    for (size_t i = 0; i < plan_.dims.size(); ++i) {
      const auto window = window_along(plan_, static_cast<int>(i));
      if (!window) continue;
      const Dim& dim = plan_.dims[i];
      const bool cut = per_core && dim.split > 1;
      const int64_t outputs = per_core ? dim.per_core() : dim.extent;
      Json entry = {
          {"padFront_", cut ? -1 : window->pad_front},
          {"padBack_", cut ? -1 : window->pad_back},
          {"totalSize_", (outputs - 1) * window->stride + window->dilation * (window->kernel - 1) + 1},
          {"stride_", window->stride},
          {"dilation_", window->dilation},
          {"windowDim_", window->window_dim}};
      if (plan_.is(OpFamily::kDepthwise)) {
        for (const char* none : {"unneededPad_", "unneededPadFront_", "unneededPadBack_"}) entry[none] = 0;
      }
      out[dim.label] = std::move(entry);
    }
    return out;
  }

  Json dim_symbols() const {
    Json out = Json::object();
    for (size_t i = 0; i < plan_.dims.size(); ++i) {
      if (symbols_.of_dim[i] < 0) continue;
      out[plan_.dims[i].label] = Json::array({symbol_id(position_, symbols_.of_dim[i])});
    }
    return out;
  }

  Json layout_classes() const {
    Json out = Json::object();
    for (const LayoutClass& layout : plan_.layouts) {
      Json entry = {{"layoutDimOrder_", Json::array()},
                    {"stickDimOrder_", Json::array()},
                    {"stickSize_", Json::array()}};
      for (const int dim : layout.dims) entry["layoutDimOrder_"].push_back(label(dim));
      for (const StickPart& part : layout.stick) {
        entry["stickDimOrder_"].push_back(label(part.dim));
        entry["stickSize_"].push_back(part.size);
      }
      if (plan_.is(OpFamily::kPool) || plan_.is(OpFamily::kConv)) entry["stickRepl_"] = Json::array({1});
      out[layout.label] = std::move(entry);
    }
    return out;
  }

  // ---- tensors ----

  static std::string node_name(const Tensor& tensor, size_t i) {
    return fmt::format("allocate-Tensor{}_{}", i, tensor.in_lx() ? "lx" : "hbm");
  }

  Json allocate_node(size_t i) const {
    const Tensor& tensor = plan_.tensors[i];
    Json out = {{"nodeType_", "allocate"},
                {"name_", node_name(tensor, i)},
                {"prev_", ""},
                {"ldsIdx_", i},
                {"component_", tensor.in_lx() ? "lx" : "hbm"}};
    if (!tensor.in_lx()) out["isStartAddrSymbolic_"] = 1;
    out["layoutDimOrder_"] = Json::array();
    out["maxDimSizes_"] = Json::array();
    for (const TensorDim& d : tensor.dims) {
      out["layoutDimOrder_"].push_back(label(d.dim));
      out["maxDimSizes_"].push_back(d.max_size);
    }
    add_indirection(tensor, out);
    out["startAddressCoreCorelet_"] = start_addresses(tensor, i);
    add_window_padding(tensor, out);
    add_gaps(tensor, out);
    out["coordinates_"] = coordinates_json(plan_, tensor);
    return out;
  }

  void add_indirection(const Tensor& tensor, Json& out) const {
    if (tensor.indirection == Indirection::kNone || tensor.partner < 0) {
      out["indirectAllocType_"] = "no_indirection";
      return;
    }
    const bool index = tensor.indirection == Indirection::kIndex;
    out["indirectAllocType_"] = index ? "index_tensor" : "value_tensor";
    out["relatedIndirectAccessAlloc_"] = node_name(plan_.tensors[tensor.partner], tensor.partner);
    if (index) out["indexTensorType_"] = "index";
  }

  Json start_addresses(const Tensor& tensor, size_t i) const {
    Json data = Json::object();
    const std::vector<int64_t> cores = cores_listed();
    for (int64_t core = 0; core < static_cast<int64_t>(cores.size()); ++core) {
      const int64_t value = tensor.in_lx() ? tensor.arg->allocation.value + slice_offset_bytes(plan_, tensor)
                                           : symbol_id(position_, symbols_.of_tensor[i][core]);
      data[fmt::format("[{}, 0, 0]", cores[core])] = std::to_string(value);
    }
    return {
        {"dim_prop_func",
         Json::array({{{"Map", Json::object()}}, {{"Const", Json::object()}}, {{"Const", Json::object()}}})},
        {"dim_prop_attr", Json::array({fold_attribute(cores.size(), "core"), fold_attribute(1, "corelet"),
                                       fold_attribute(1, "time")})},
        {"data_", std::move(data)}};
  }

  void add_window_padding(const Tensor& tensor, Json& out) const {
    if (!is_windowed_input(plan_, tensor)) return;
    const WindowParams& w = *plan_.op->window;
    const bool kept_zero = plan_.is(OpFamily::kDepthwise) && (w.pad_i != 0 || w.pad_j != 0);
    out["padding_"] = Json::object();
    for (const TensorDim& d : tensor.dims) {
      if (!window_along(plan_, d.dim)) continue;
      out["padding_"][label(d.dim)] = kept_zero ? "padded_nozeropad" : "padded_fullspan_wunneeded";
    }
  }

  // A gap is physical minus iterated extent. A restickify iterates past what is there: upstream states that
  // shortfall as a positive gap too, so a key of our own tells the two apart.
  void add_gaps(const Tensor& tensor, Json& out) const {
    if (plan_.is(OpFamily::kConv) || plan_.is(OpFamily::kDepthwise)) return;
    Json gaps = Json::object();
    Json shortfalls = Json::object();
    for (const TensorDim& d : tensor.dims) {
      const int64_t gap = d.gap;
      // Of a table the card learns here how many rows it has, even if they are as many as positions.
      if (gap == 0 && d.max_size != 1) continue;
      const bool shortfall = gap < 0 && plan_.is_restickify();
      gaps[label(d.dim)] = per_core_gap(tensor, shortfall ? -gap : gap);
      if (shortfall) shortfalls[label(d.dim)] = per_core_gap(tensor, -gap);
    }
    if (!gaps.empty()) out["backGapCore_"] = std::move(gaps);
    if (!shortfalls.empty()) out["spyreShortfallCore_"] = std::move(shortfalls);
  }

  Json per_core_gap(const Tensor& tensor, int64_t gap) const {
    if (!tensor.in_lx()) return {{"-1", std::to_string(gap)}};
    Json out = Json::object();
    for (const int64_t core : cores_listed()) out[std::to_string(core)] = std::to_string(gap);
    return out;
  }

  Json labeled_tensor(size_t i) const {
    const Tensor& tensor = plan_.tensors[i];
    Json scale = Json::array();
    for (const LayoutClass& layout : plan_.layouts) {
      if (layout.label != tensor.layout) continue;
      for (const int dim : layout.dims) scale.push_back(tensor.find(dim)->scale);
    }
    return {{"ldsIdx_", i},
            {"dsName_", fmt::format("Tensor{}", i)},
            {"dsType_", tensor.layout},
            {"scale_", std::move(scale)},
            {"wordLength", tensor.word_length},
            {"dataFormat_", to_string(format_label(tensor))},
            {"memOrg_", memory(tensor, i)}};
  }

  // Copies move bits, so 32-bit integers travel under the float name; indices have a name of their own.
  DataFormat format_label(const Tensor& tensor) const {
    if (tensor.indirection == Indirection::kIndex) return DataFormat::SENUINT32;
    const bool relabelled = plan_.info->id == OpId::identity && tensor.arg->format == DataFormat::IEEE_INT32;
    return relabelled ? DataFormat::IEEE_FP32 : tensor.arg->format;
  }

  Json memory(const Tensor& tensor, size_t i) const {
    Json present = {{"isPresent", 1}};
    if (plan_.is(OpFamily::kPool) || plan_.is(OpFamily::kConv) || plan_.is(OpFamily::kDepthwise)) {
      const WindowParams& w = *plan_.op->window;
      const bool padded = is_windowed_input(plan_, tensor) && (w.pad_i != 0 || w.pad_j != 0);
      present["isPadded"] = padded ? 1 : 0;
      present["isZeroPadded"] = 0;
      present["dsOffset"] = 0;
      present["allocateNode_"] = node_name(tensor, i);
    }
    if (tensor.in_lx()) return {{"lx", std::move(present)}};
    if (tensor.indirection == Indirection::kIndex) return {{"hbm", std::move(present)}};
    return {{"hbm", std::move(present)}, {"lx", {{"isPresent", 1}}}};
  }

  // ---- constants and the compute op ----

  Json constants() const {
    if (plan_.constants.empty()) return "{}";
    Json out = Json::object();
    for (size_t i = 0; i < plan_.constants.size(); ++i) {
      const Constant& constant = plan_.constants[i];
      Json data = {{"dim_prop_func", Json::array({{{"Const", Json::object()}},
                                                  {{"Const", Json::object()}},
                                                  {{"Map", Json::object()}}})},
                   {"dim_prop_attr", Json::array({fold_attribute(cores_listed().size(), "core"),
                                                  fold_attribute(1, "corelet"), fold_attribute(1, "time")})},
                   {"data_", {{"[0, 0, 0]", Json::array({std::to_string(constant.bits)})}}}};
      out[std::to_string(static_cast<int64_t>(i))] = {
          {"dataFormat_", to_string(plan_.format)}, {"name_", constant.name}, {"data_", std::move(data)}};
    }
    return out;
  }

  // Reductions list the output as an input too: the slot of the running result.
  size_t listed_inputs() const {
    const bool accumulates =
        plan_.is(OpFamily::kReduction) || plan_.is(OpFamily::kDepthwise) || plan_.info->id == OpId::exx2;
    return plan_.tensors.size() - (accumulates ? 0 : 1);
  }

  Json compute_op() const {
    const auto reference = [](size_t i) { return fmt::format("Tensor{}-idx{}", i, i); };
    Json inputs = Json::array();
    Json indices = Json::array();
    for (size_t i = 0; i < listed_inputs(); ++i) {
      (plan_.tensors[i].indirection == Indirection::kIndex ? indices : inputs).push_back(reference(i));
    }
    Json out = {{"exUnit", to_string(plan_.info->unit)},
                {"opFuncName", plan_.function},
                {"attributes_", {{"dataFormat_", to_string(plan_.format)}, {"fidelity_", "regular"}}},
                {"location", "Inner"},
                {"inputLabeledDs", std::move(inputs)},
                {"outputLabeledDs", Json::array({reference(plan_.tensors.size() - 1)})}};
    if (!indices.empty()) out["indirectAccessIndexLabeledDs"] = std::move(indices);
    return out;
  }

  const SdscPlan& plan_;
  const OpSymbols& symbols_;
  const SdscPosition& position_;
};

}  // namespace

Json sdsc_json(const SdscPlan& plan, const OpSymbols& symbols, const SdscPosition& position) {
  return Writer(plan, symbols, position).file();
}

}  // namespace spyre::superdsc
