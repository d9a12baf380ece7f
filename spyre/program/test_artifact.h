#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "spyre/base/json.h"
#include "spyre/program/element.h"

/// A small writer of sdsc files for tests, shared with nothing else. It says what a test means (dims,
/// layouts, splits) and follows the written rules for the rest: start addresses by "sum of slice * span /
/// splits", folds by their table. The layout formula here works from the tensor's base with global
/// coordinates, the executor's from per-core starts with local ones: each checks the other.
namespace spyre::testing_artifacts {

using namespace program;  // NOLINT: test support of that layer

inline constexpr DataFormat kFp16 = DataFormat::SEN169_FP16;
inline constexpr DataFormat kFp32 = DataFormat::IEEE_FP32;
inline constexpr DataFormat kFp8 = DataFormat::SEN143_FP8;

struct Dim {
  std::string label;
  int64_t extent;
  int64_t splits = 1;
};

struct TensorSpec {
  std::vector<std::string> order;  ///< innermost first, stick dim as its stick index
  std::vector<std::string> stick = {"out"};
  std::vector<int64_t> stick_sizes = {64};
  std::map<std::string, int> scale = {};  ///< 1 where not stated
  DataFormat format = DataFormat::SEN169_FP16;
  int64_t base = 0;  ///< byte address
  bool lx = false;
  std::map<std::string, int64_t> gap = {};
  std::vector<int64_t> max_dim_sizes = {};
  std::string indirection = "no_indirection";
  int partner = -1;
  int64_t elem_arr = 0;  ///< 4: the interleaved fp8 activation stick
  std::map<int, std::map<std::string, int64_t>> own_slices = {};
  std::map<std::string, int64_t> window_extent = {};  ///< physical input rows along a windowed dim

  int scale_of(const std::string& dim) const {
    const auto found = scale.find(dim);
    return found == scale.end() ? 1 : found->second;
  }
  int64_t per_stick(const std::string& dim) const {
    int64_t product = 1;
    for (size_t i = 0; i < stick.size(); ++i) {
      product *= stick[i] == dim ? stick_sizes[i] : 1;
    }
    return product;
  }
};

/// Indices along "mb", whole numbers of 32 bits, by which operand `partner` is read or written.
inline TensorSpec index_tensor(int partner) {
  return {.order = {"mb"},
          .stick = {"mb"},
          .stick_sizes = {32},
          .format = DataFormat::SENUINT32,
          .indirection = "index_tensor",
          .partner = partner};
}

/// The rows, outermost, that operand 0 picks: `page` of them by each of its indices.
inline TensorSpec indexed_rows(int64_t page = 1) {
  return {.order = {"out", "mb"}, .max_dim_sizes = {-1, page}, .indirection = "value_tensor", .partner = 0};
}

struct OpSpec {
  std::string function;
  std::vector<Dim> dims;
  std::vector<TensorSpec> tensors;  ///< inputs, then the output
  std::vector<std::pair<std::string, float>> constants = {};
  std::map<std::string, std::pair<int64_t, int64_t>> mask = {};  ///< dim -> start, count
  float mask_value = 0;
  bool accumulator_listed = false;  ///< reductions list their output as an input
  bool k_fastest = false;           ///< core order: last dim first
  bool symbolic = false;            ///< start addresses are symbols -1, -2, ...
  Json padding = Json::object();    ///< paddingSizes_
  std::map<std::string, int64_t> extent_symbols = {};

  const Dim& dim(const std::string& label) const {
    return *std::find_if(dims.begin(), dims.end(), [&](const Dim& d) { return d.label == label; });
  }
  int64_t cores() const {
    int64_t product = 1;
    for (const Dim& d : dims) {
      product *= d.splits;
    }
    return product;
  }
};

using Point = std::map<std::string, int64_t>;

/// Steps a tensor has along a dim in memory.
inline int64_t steps_of(const OpSpec& op, const TensorSpec& t, const std::string& dim) {
  if (t.scale_of(dim) < 0) {
    return 1;
  }
  const auto window = t.window_extent.find(dim);
  const auto gap = t.gap.find(dim);
  const int64_t extent = (window != t.window_extent.end() ? window->second : op.dim(dim).extent) +
                         (gap == t.gap.end() ? 0 : gap->second);
  return (extent + t.per_stick(dim) - 1) / t.per_stick(dim);
}

/// The element of a tensor at a global point, counted from the tensor's base.
inline int64_t element_at(const OpSpec& op, const TensorSpec& t, const Point& g) {
  int64_t lane = 0, weight = 1;
  Point rest = g;
  for (size_t i = 0; i < t.stick.size(); ++i) {
    int64_t& c = rest[t.stick[i]];
    if (t.scale_of(t.stick[i]) > 0) {
      lane += weight * (c % t.stick_sizes[i]);
      c /= t.stick_sizes[i];
    }
    weight *= t.stick_sizes[i];
  }
  if (t.elem_arr == 4) {  // column 64h + 8g + e sits in lane 16g + 8h + e
    lane = 16 * (lane % 64 / 8) + 8 * (lane / 64) + lane % 8;
  }
  int64_t element = lane, stride = weight;
  for (const std::string& dim : t.order) {
    if (t.scale_of(dim) > 0) {
      element += g.at(dim) / t.per_stick(dim) * stride;
    }
    stride *= steps_of(op, t, dim);
  }
  return element;
}

/// Slice of every dim for a core: first dim fastest, or last dim first for K-fast orders.
inline std::map<std::string, int64_t> slice_of(const OpSpec& op, int64_t core) {
  std::vector<Dim> order = op.dims;
  if (op.k_fastest) {
    std::rotate(order.begin(), order.end() - 1, order.end());
  }
  std::map<std::string, int64_t> slice;
  for (const Dim& d : order) {
    slice[d.label] = core % d.splits;
    core /= d.splits;
  }
  return slice;
}

inline int64_t start_of(const OpSpec& op, const TensorSpec& t, int64_t core) {
  if (t.lx) {
    return t.base;
  }
  int64_t element = 0, stride = 1;
  for (const int64_t size : t.stick_sizes) {
    stride *= size;
  }
  const auto slice = slice_of(op, core);
  for (size_t i = 0; i < t.order.size(); ++i) {
    const Dim& d = op.dim(t.order[i]);
    const bool indexed = i < t.max_dim_sizes.size() && t.max_dim_sizes[i] > 0;
    if (t.scale_of(d.label) > 0 && !indexed) {
      int64_t begin = slice.at(d.label) * d.extent / d.splits;
      if (t.window_extent.contains(d.label)) {
        begin *= op.padding[d.label]["stride_"].get<int64_t>();
      }
      element += begin / t.per_stick(d.label) * stride + begin % t.per_stick(d.label);
    }
    stride *= steps_of(op, t, d.label);
  }
  return t.base + element * bits_of(t.format) / 8;
}

inline Json affine(int64_t alpha) {
  return {{"Affine", {{"alpha_", alpha}, {"beta_", 0}}}};
}

inline Json folds_of(const OpSpec& op, const TensorSpec& t, const std::string& label) {
  const Dim& d = op.dim(label);
  const bool stick = t.per_stick(label) > 1;
  const bool present = t.scale_of(label) > 0;
  const int64_t size = present ? d.extent / d.splits : 1, eps = t.per_stick(label);
  std::vector<std::pair<int64_t, int64_t>> levels = {{size, present ? d.splits : 1}, {0, 1}, {0, 1}};
  if (stick && t.elem_arr == 4) {
    for (const auto& level :
         std::vector<std::pair<int64_t, int64_t>>{{128, (size + 127) / 128}, {8, 8}, {64, 2}, {1, 8}}) {
      levels.push_back(level);
    }
  } else if (stick) {
    levels.emplace_back(eps, present ? (size + eps - 1) / eps : 1);
    levels.emplace_back(present ? 1 : 0, eps);
  } else {
    levels.push_back({1, size});
  }
  Json functions = Json::array(), attributes = Json::array();
  for (const auto& [alpha, factor] : levels) {
    functions.push_back(affine(alpha));
    attributes.push_back({{"factor_", factor}, {"label_", "level"}});
  }
  return {{"spatial", 3},
          {"temporal", 0},
          {"elemArr", levels.size() - 3},
          {"padding", "nopad"},
          {"folds", {{"dim_prop_func", functions}, {"dim_prop_attr", attributes}}}};
}

inline Json node_of(const OpSpec& op, int index, int64_t& next_symbol) {
  const TensorSpec& t = op.tensors[index];
  const auto node_name = [&](int i) {
    return fmt::format("allocate-Tensor{}_{}", i, op.tensors[i].lx ? "lx" : "hbm");
  };
  Json data = Json::object(), info = Json::object(), slices = Json::object(), gaps = Json::object();
  std::map<int64_t, int64_t> symbols;
  for (int64_t core = 0; core < op.cores(); ++core) {
    int64_t value = start_of(op, t, core);
    if (op.symbolic && !t.lx) {
      value = symbols.try_emplace(value, next_symbol).first->second;
      next_symbol = std::min(next_symbol, value - 1);
    }
    data[fmt::format("[{}, 0, 0]", core)] = std::to_string(value);
  }
  for (const std::string& label : t.order) {
    info[label] = folds_of(op, t, label);
  }
  for (const auto& [core, slice] : t.own_slices) {
    slices[std::to_string(core)] = slice;
    data[fmt::format("[{}, 0, 0]", core)] = std::to_string(t.base);
  }
  for (const auto& [label, gap] : t.gap) {
    gaps[label] = {{"-1", std::to_string(gap)}};
  }
  Json node = {
      {"nodeType_", "allocate"},
      {"name_", node_name(index)},
      {"prev_", ""},
      {"ldsIdx_", index},
      {"component_", t.lx ? "lx" : "hbm"},
      {"layoutDimOrder_", t.order},
      {"maxDimSizes_", t.max_dim_sizes.empty() ? std::vector<int64_t>(t.order.size(), -1) : t.max_dim_sizes},
      {"indirectAllocType_", t.indirection},
      {"startAddressCoreCorelet_",
       {{"dim_prop_func",
         {{{"Map", Json::object()}}, {{"Const", Json::object()}}, {{"Const", Json::object()}}}},
        {"dim_prop_attr",
         {{{"factor_", op.cores()}, {"label_", "core"}},
          {{"factor_", 1}, {"label_", "corelet"}},
          {{"factor_", 1}, {"label_", "time"}}}},
        {"data_", data}}},
      {"coordinates_", {{"coordInfo", info}, {"coreIdToWkSlice_", slices}}}};
  if (!t.lx && op.symbolic) {
    node["isStartAddrSymbolic_"] = 1;
  }
  if (!gaps.empty()) {
    node["backGapCore_"] = gaps;
  }
  if (t.partner >= 0) {
    node["relatedIndirectAccessAlloc_"] = node_name(t.partner);
  }
  return node;
}

inline Json constants_of(const OpSpec& op, DataFormat format) {
  Json out = Json::object();
  const auto add = [&](const std::string& name, float value) {
    out[std::to_string(out.size())] = {
        {"dataFormat_", to_string(format)},
        {"name_", name},
        {"data_",
         {{"dim_prop_func",
           {{{"Const", Json::object()}}, {{"Const", Json::object()}}, {{"Map", Json::object()}}}},
          {"dim_prop_attr", Json::array()},
          {"data_", {{"[0, 0, 0]", Json::array({std::to_string(encode_element(format, value))})}}}}}};
  };
  for (const auto& [name, value] : op.constants) {
    add(name, value);
  }
  if (!op.mask.empty()) {
    add("samv-maskvalue", op.mask_value);
  }
  return out.empty() ? Json("{}") : out;
}

inline std::string reference(int index) {
  return fmt::format("Tensor{}-idx{}", index, index);
}

/// The sdsc file of an op.
inline Json write_sdsc(const OpSpec& op, int number = 0) {
  const int64_t cores = op.cores();
  const int output = static_cast<int>(op.tensors.size()) - 1;
  const auto data_input = std::find_if(op.tensors.begin(), op.tensors.end(),
                                       [](const TensorSpec& t) { return t.indirection != "index_tensor"; });
  const DataFormat format = data_input->format;
  Json to_dsc = Json::object(), slices = Json::object(), schedule = Json::object(), splits = Json::object();
  Json ids = Json::array(), n = {{"name_", "n"}}, stage = {{"name_", "core"}}, mask = Json::object();
  for (int64_t core = 0; core < cores; ++core) {
    to_dsc[std::to_string(core)] = 0;
    slices[std::to_string(core)] = slice_of(op, core);
    schedule[std::to_string(core)] = Json::array({Json::array({-1, 0, 0, 0})});
    ids.push_back(core);
  }
  for (const Dim& d : op.dims) {
    splits[d.label] = d.splits;
    n[d.label + "_"] = d.extent;
    stage[d.label + "_"] = d.extent / d.splits;
  }
  if (!op.padding.empty()) {
    n["paddingSizes_"] = op.padding;
  }
  for (const auto& [label, range] : op.mask) {
    mask[label] = Json::array({Json::array({range.first, range.second})});
  }
  Json layouts = Json::object(), tensors = Json::array(), nodes = Json::array();
  Json inputs = Json::array(), indices = Json::array();
  int64_t next_symbol = -1 - static_cast<int64_t>(op.extent_symbols.size());
  for (int i = 0; i <= output; ++i) {
    const TensorSpec& t = op.tensors[i];
    layouts[fmt::format("DS{}", i)] = {
        {"layoutDimOrder_", t.order}, {"stickDimOrder_", t.stick}, {"stickSize_", t.stick_sizes}};
    std::vector<int> scale;
    for (const std::string& label : t.order) {
      scale.push_back(t.scale_of(label));
    }
    tensors.push_back({{"ldsIdx_", i},
                       {"dsName_", fmt::format("Tensor{}", i)},
                       {"dsType_", fmt::format("DS{}", i)},
                       {"scale_", scale},
                       {"wordLength", bits_of(t.format) / 8},
                       {"dataFormat_", to_string(t.format)},
                       {"memOrg_", {{t.lx ? "lx" : "hbm", {{"isPresent", 1}}}}}});
    nodes.push_back(node_of(op, i, next_symbol));
    if (t.indirection == "index_tensor") {
      indices.push_back(reference(i));
    } else if (i != output || op.accumulator_listed) {
      inputs.push_back(reference(i));
    }
  }
  Json symbols = Json::object();
  for (const auto& [label, id] : op.extent_symbols) {
    symbols[label] = Json::array({id});
  }
  Json compute = {{"exUnit", "sfp"},
                  {"opFuncName", op.function},
                  {"attributes_", {{"dataFormat_", to_string(format)}, {"fidelity_", "regular"}}},
                  {"location", "Inner"},
                  {"inputLabeledDs", inputs},
                  {"outputLabeledDs", Json::array({reference(output)})}};
  if (!indices.empty()) {
    compute["indirectAccessIndexLabeledDs"] = indices;
  }
  const int64_t mask_id = op.mask.empty() ? -1 : static_cast<int64_t>(op.constants.size());
  Json dsc = {{"numCoresUsed_", cores},
              {"numCoreletsUsed_", 1},
              {"coreIdsUsed_", ids},
              {"N_", n},
              {"coordinateMasking_", mask},
              {"maskingConstId_", mask_id},
              {"dataStageParam_", {{"0", {{"ss_", stage}, {"el_", stage}}}}},
              {"primaryDsInfo_", layouts},
              {"scheduleTree_", nodes},
              {"labeledDs_", tensors},
              {"constantInfo_", constants_of(op, format)},
              {"computeOp_", Json::array({compute})}};
  if (!symbols.empty()) {
    dsc["dimToSymbolMapping_"] = symbols;
  }
  Json dscs = Json::array();
  dscs.push_back(Json{{op.function, dsc}});
  return Json{{fmt::format("{}_{}", number, op.function),
               Json{{"coreFoldProp_", {{"factor_", cores}, {"label_", "core"}}},
                    {"coreletFoldProp_", {{"factor_", 1}, {"label_", "corelet"}}},
                    {"numCoresUsed_", cores},
                    {"coreIdToDsc_", to_dsc},
                    {"numWkSlicesPerDim_", splits},
                    {"coreIdToWkSlice_", slices},
                    {"coreIdToDscSchedule", schedule},
                    {"dscs_", dscs}}}};
}

}  // namespace spyre::testing_artifacts
