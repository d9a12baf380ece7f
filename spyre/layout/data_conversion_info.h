#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "spyre/arch/data_format.h"
#include "spyre/base/json_fwd.h"
#include "spyre/base/result.h"
#include "spyre/layout/device_layout.h"
#include "spyre/layout/transfer_plan.h"
#include "spyre/layout/view_geometry.h"

namespace spyre {

/// One loop nest, as the card's runtime writes it: a `Nest` seen from source and destination instead of host
/// and device, with all vectors innermost first.
struct StrideInfo {
  std::vector<int64_t> size;
  std::vector<int64_t> stride_src;
  std::vector<int64_t> stride_dst;
  int64_t offset_src = 0;  ///< elements
  int64_t offset_dst = 0;

  friend bool operator==(const StrideInfo&, const StrideInfo&) = default;
};

/// The descriptor of one transfer ("DCI"): everything the staging code needs, as data that can be printed,
/// stored next to a program and compared. Vectors are innermost first, the reverse of PyTorch's order; the
/// JSON keys are upstream's.
///
///     {"dci_dsName_": "DCI-Tensor-0", "isHostToSen_": true,
///      "dataformat_src_": "IEEE_FP16", "dataformat_dst_": "SEN169_FP16",
///      "input_shape_": [240, 512], "output_shape_": [64, 512, 4],
///      "dcsi_": [{"size_": [64, 512, 3], "stride_src_": [1, 240, 64], "stride_dst_": [1, 64, 32768],
///                 "offset_src_": 0, "offset_dst_": 0}, ...]}
struct DataConversionInfo {
  std::string name = "DCI-Tensor-0";
  bool host_to_device = true;
  DataFormat format_src = DataFormat::INVALID;
  DataFormat format_dst = DataFormat::INVALID;
  std::vector<int64_t> input_shape;
  std::vector<int64_t> output_shape;
  std::vector<StrideInfo> nests;

  Json to_json() const;

  friend bool operator==(const DataConversionInfo&, const DataConversionInfo&) = default;
};

/// Describes the transfer of `view` from or to a host tensor of the same sizes with the given strides, whose
/// elements are `host_format`. Refused: what `plan_nests` refuses or has no nests for.
Result<DataConversionInfo> describe_transfer(const DeviceLayout& layout, const ViewGeometry& view,
                                             std::span<const int64_t> host_strides, DataFormat host_format,
                                             bool host_to_device);

}  // namespace spyre
