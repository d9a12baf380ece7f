#include "spyre/layout/data_conversion_info.h"

#include <utility>

#include "spyre/base/json.h"
#include "spyre/layout/element_map.h"

namespace spyre {
namespace {

std::vector<int64_t> reversed(std::span<const int64_t> values) {
  return {values.rbegin(), values.rend()};
}

StrideInfo stride_info(const Nest& nest, bool host_to_device) {
  StrideInfo info = {.size = reversed(nest.counts),
                     .stride_src = reversed(nest.host_strides),
                     .stride_dst = reversed(nest.device_strides),
                     .offset_src = nest.host_offset,
                     .offset_dst = nest.device_offset};
  if (!host_to_device) {
    std::swap(info.stride_src, info.stride_dst);
    std::swap(info.offset_src, info.offset_dst);
  }
  return info;
}

}  // namespace

Json DataConversionInfo::to_json() const {
  Json json;
  json["dci_dsName_"] = name;
  json["isHostToSen_"] = host_to_device;
  json["dataformat_src_"] = to_string(format_src);
  json["dataformat_dst_"] = to_string(format_dst);
  json["input_shape_"] = input_shape;
  json["output_shape_"] = output_shape;
  json["dcsi_"] = Json::array();
  for (const StrideInfo& nest : nests) {
    Json item;
    item["size_"] = nest.size;
    item["stride_src_"] = nest.stride_src;
    item["stride_dst_"] = nest.stride_dst;
    item["offset_src_"] = nest.offset_src;
    item["offset_dst_"] = nest.offset_dst;
    json["dcsi_"].push_back(std::move(item));
  }
  return json;
}

Result<DataConversionInfo> describe_transfer(const DeviceLayout& layout, const ViewGeometry& view,
                                             std::span<const int64_t> host_strides, DataFormat host_format,
                                             bool host_to_device) {
  SPYRE_ASSIGN_OR_RETURN(const ElementMap map, ElementMap::of(layout));
  SPYRE_ASSIGN_OR_RETURN(const std::optional<std::vector<Nest>> nests, plan_nests(map, view, host_strides));
  if (!nests) {
    return Error(ErrorKind::kUnsupported,
                 "No loop nests for this view: its axes do not fall on axes of the layout");
  }
  DataConversionInfo info = {.host_to_device = host_to_device,
                             .format_src = host_format,
                             .format_dst = layout.device_dtype,
                             .input_shape = reversed(view.sizes),
                             .output_shape = reversed(layout.device_size)};
  if (!host_to_device) {
    std::swap(info.format_src, info.format_dst);
    std::swap(info.input_shape, info.output_shape);
  }
  for (const Nest& nest : *nests) {
    info.nests.push_back(stride_info(nest, host_to_device));
  }
  return info;
}

}  // namespace spyre
