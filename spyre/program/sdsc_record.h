#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "spyre/base/json_fwd.h"
#include "spyre/base/result.h"

/// One `sdsc_N.json` as written: names still names, optional parts still optional.
///
/// Reading has three steps, each with one duty:
///
///     JSON text --read_sdsc--> SdscRecord --validate--> (same) --lower--> ProgramOp
///               shape of the file         its rules             everything resolved
///
/// `read_sdsc` accepts what upstream wrote over time: any dim labels, `constantInfo_` as the string "{}",
/// addresses baked or symbolic, numbers as numbers or as decimal strings, optional fields absent. What it
/// refuses cannot be understood at all (a missing list, a word where a number must be).
namespace spyre::program {

/// Sizes per dim, in written order.
using DimSizes = std::vector<std::pair<std::string, int64_t>>;
std::optional<int64_t> size_of(const DimSizes& sizes, std::string_view dim);

/// paddingSizes_ of one dim; -1 where not stated for this core.
struct PaddingRecord {
  int64_t pad_front = 0, pad_back = 0, total_size = 0, stride = 1, dilation = 1;
  int64_t unneeded_front = 0, unneeded_back = 0;
  std::string window_dim;
};

/// primaryDsInfo_ entry: a layout class. The order of `dims` is that of LabeledRecord::scale, nothing more.
struct LayoutRecord {
  std::vector<std::string> dims;
  std::vector<std::string> stick_dims;
  std::vector<int64_t> stick_sizes;
};

/// labeledDs_ entry.
struct LabeledRecord {
  int64_t index = 0;
  std::string name;
  std::string layout;  ///< key into primaryDsInfo_
  std::vector<int64_t> scale;
  double word_length = 0;
  std::string format;
};

/// One level of a coordinate's folds, outermost first.
struct FoldLevel {
  int64_t alpha = 0, beta = 0, factor = 1;
};
struct CoordinateRecord {
  std::string dim;
  int64_t elem_arr = 1;
  size_t functions = 0, attributes = 0;  ///< lengths as written; equal to levels.size() when they agree
  std::vector<FoldLevel> levels;
};

/// scheduleTree_ allocate node.
struct AllocateRecord {
  std::string name;
  int64_t index = 0;  ///< ldsIdx_
  std::string component;
  bool symbolic = false;
  std::vector<std::string> dims;  ///< this tensor's memory order, innermost first
  std::vector<int64_t> max_dim_sizes;
  std::string indirection;           ///< no_indirection, index_tensor, value_tensor
  std::string partner;               ///< relatedIndirectAccessAlloc_
  bool one_start_for_all = false;    ///< the core level of the start address is a Const
  std::map<int64_t, int64_t> start;  ///< core id -> byte address or (negative) symbol id
  std::map<std::string, std::map<int64_t, int64_t>> back_gap;  ///< dim -> core id (-1: all) -> elements
  /// Our own writer's word for a gap with the opposite sense: the padded extent exceeds the physical one. The
  /// same dims are in `back_gap`, as upstream writes them.
  std::map<std::string, std::map<int64_t, int64_t>> shortfall;
  std::vector<CoordinateRecord> coordinates;
  std::map<int64_t, std::map<std::string, int64_t>> core_slices;  ///< relayout only
};

struct ConstantRecord {
  std::string name;
  std::string format;
  int64_t bits = 0;
};

struct ComputeRecord {
  std::string unit, function, format, fidelity;
  std::vector<std::string> inputs, outputs, indices;
};

struct SdscRecord {
  std::string file;
  std::string root;  ///< `0_add`, or the bare op name in older files
  int64_t cores_used = 0;
  std::map<int64_t, int64_t> core_to_dsc;  ///< empty: not written, every core runs entry 0
  std::vector<std::pair<std::string, int64_t>> splits;
  std::map<int64_t, std::map<std::string, int64_t>> core_slices;
  std::map<int64_t, std::vector<std::array<int64_t, 4>>> schedule;
  int64_t dsc_count = 0;

  // The one design-space configuration.
  std::string dsc;  ///< its key
  int64_t dsc_cores_used = 0;
  std::vector<int64_t> core_ids;
  DimSizes extents;
  std::map<std::string, PaddingRecord> padding;
  std::map<std::string, std::vector<std::pair<int64_t, int64_t>>> masking;  ///< dim -> (start, count)
  int64_t mask_constant = -1;
  std::map<std::string, int64_t> extent_symbols;  ///< dim -> symbol id
  DimSizes steady, epilogue;                      ///< dataStageParam_; empty: not written
  std::map<std::string, LayoutRecord> layouts;
  std::vector<AllocateRecord> nodes;
  std::vector<LabeledRecord> tensors;
  std::vector<ConstantRecord> constants;  ///< in id order
  ComputeRecord compute;

  /// "dscs_[0].<dsc>.<field>", for messages.
  std::string at(std::string_view field) const;
};

/// Bounds that keep any input small enough to think about.
inline constexpr int64_t kMaxCoreId = 4095;
inline constexpr int64_t kMaxExtent = int64_t{1} << 40;
inline constexpr size_t kMaxDims = 16;
inline constexpr size_t kMaxTensors = 64;  ///< read; the rule that allows 8 is the validator's

Result<SdscRecord> read_sdsc(const Json& json, const std::string& file);

}  // namespace spyre::program
