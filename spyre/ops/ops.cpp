#include "spyre/ops/ops.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <unordered_map>

namespace spyre {
namespace {

constexpr std::string_view kNonStickSuffix = "nonstick";

constexpr FormatSet kFp16{DataFormat::SEN169_FP16};
constexpr FormatSet kFp32{DataFormat::IEEE_FP32};
constexpr FormatSet kInt32{DataFormat::IEEE_INT32};
constexpr FormatSet kFp8{DataFormat::SEN143_FP8};
constexpr FormatSet kAnyFormat = FormatSet::all();
constexpr std::optional<double> kNoMask;
constexpr int kStick = 1;
constexpr int kNonStick = 2;

std::vector<std::string_view> names_in(std::string_view list) {
  std::vector<std::string_view> names;
  while (!list.empty()) {
    const size_t end = std::min(list.find(','), list.size());
    names.push_back(list.substr(0, end));
    list.remove_prefix(std::min(list.size(), end + 2));
  }
  return names;
}

std::vector<OpInfo> build_table() {
  using enum OpFamily;
  using enum ExUnit;
  std::vector<OpInfo> ops;
#define SPYRE_POINTWISE(name, inputs, formats, constants, mask, meaning)                                   \
  ops.push_back({OpId::name, #name, inputs, kPointwise, kSfp, formats, formats, names_in(constants), mask, \
                 true, false, false});
#define SPYRE_REDUCTION(name, formats, constants, variants, mask, start, meaning)                            \
  ops.push_back({OpId::name, #name, 1, kReduction, kSfp, formats, formats, names_in(constants), mask, false, \
                 ((variants)&kStick) != 0, ((variants)&kNonStick) != 0});
#define SPYRE_CONVERSION(name, from, to) \
  ops.push_back({OpId::name, #name, 1, kConversion, kSfp, from, to, {}, kNoMask, false, false, false});
#define SPYRE_SPECIAL(name, inputs, family, unit, from, to, constants, mask, in_place)                   \
  ops.push_back({OpId::name, #name, inputs, family, unit, from, to, names_in(constants), mask, in_place, \
                 false, false});
#include "spyre/ops/table.def"
  return ops;
}

const std::vector<OpInfo>& table() {
  static const auto& ops =
      *new std::vector<OpInfo>(build_table());  // never destroyed: threads may outlive `exit`
  return ops;
}

const OpInfo* find_base(std::string_view name) {
  using Names = std::unordered_map<std::string_view, const OpInfo*>;
  static const Names& names = *new Names([] {
    Names rows;
    for (const OpInfo& op : table()) rows.emplace(op.name, &op);
    return rows;
  }());
  const auto found = names.find(name);
  return found == names.end() ? nullptr : found->second;
}

}  // namespace

std::string_view to_string(OpFamily family) {
  switch (family) {
    case OpFamily::kPointwise:
      return "pointwise";
    case OpFamily::kReduction:
      return "reduction";
    case OpFamily::kMatmul:
      return "matmul";
    case OpFamily::kConversion:
      return "conversion";
    case OpFamily::kCopy:
      return "copy";
    case OpFamily::kLayerNorm:
      return "layernorm";
    case OpFamily::kTopK:
      return "topk";
    case OpFamily::kQuantScale:
      return "quantscale";
    case OpFamily::kPool:
      return "pool";
    case OpFamily::kConv:
      return "conv";
    case OpFamily::kDepthwise:
      return "depthwise";
    case OpFamily::kShuffle:
      return "shuffle";
  }
  return "unknown";
}

std::string_view to_string(ExUnit unit) {
  return unit == ExUnit::kPt ? "pt" : "sfp";
}

std::string FormatSet::to_string() const {
  if (*this == all()) return "any";
  std::vector<std::string_view> names;
  for (int i = 0; i < kDataFormatCount; ++i) {
    const auto format = static_cast<DataFormat>(i);
    if (contains(format)) names.push_back(spyre::to_string(format));
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

std::span<const OpInfo> all_ops() {
  return table();
}

const OpInfo& info_of(OpId op) {
  return table()[static_cast<size_t>(op)];
}

std::string_view to_string(OpId op) {
  return info_of(op).name;
}

std::optional<OpId> op_from_name(std::string_view base_name) {
  const OpInfo* info = find_base(base_name);
  return info == nullptr ? std::nullopt : std::optional(info->id);
}

const OpInfo* find_op(std::string_view name) {
  if (const OpInfo* op = find_base(name)) return op;
  if (!is_nonstick_name(name)) return nullptr;
  const OpInfo* base = find_base(name.substr(0, name.size() - kNonStickSuffix.size()));
  return base != nullptr && base->nonstick_variant ? base : nullptr;
}

bool is_nonstick_name(std::string_view op_func_name) {
  return op_func_name.ends_with(kNonStickSuffix);
}

std::string op_func_name(const OpInfo& op, bool nonstick) {
  return nonstick ? fmt::format("{}{}", op.name, kNonStickSuffix) : std::string(op.name);
}

}  // namespace spyre
