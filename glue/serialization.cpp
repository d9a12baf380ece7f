// torch.save keeps the layout: PyTorch stores a tensor's backend metadata as a map from text to bool, so the
// layout travels as one key. The data itself is saved in host order (copy.cpp), so that a file loads
// anywhere.

#include <ATen/EmptyTensor.h>
#include <torch/csrc/jit/serialization/pickler_helper.h>

#include "glue/device_state.h"
#include "glue/error.h"
#include "glue/tensor_access.h"
#include "spyre/base/json.h"
#include "spyre/layout/convert.h"
#include "spyre/layout/element_map.h"

namespace spyre::glue {
namespace {

constexpr std::string_view kLayoutKey = "spyre_layout:";
constexpr std::string_view kElementsKey = "spyre_elements:";

using Metadata = std::unordered_map<std::string, bool>;

std::optional<std::string> value_of(std::string_view name, const Metadata& metadata) {
  for (const auto& [key, present] : metadata) {
    if (key.starts_with(name)) {
      return key.substr(name.size());
    }
  }
  return std::nullopt;
}

void save_layout(const at::Tensor& tensor, Metadata& metadata) {
  const StorageContext* context = context_of(*tensor.storage().unsafeGetStorageImpl());
  if (context == nullptr || !context->image.has_value()) {
    return;
  }
  metadata[std::string(kLayoutKey) + layout_of(tensor).to_json().dump()] = true;
  metadata[std::string(kElementsKey) + std::to_string(context->image->numel)] = true;
}

/// A file may say anything: what it says must be able to hold the tensor, in memory in proportion to the file.
void check_saved_image(const BaseImage& image, const at::Tensor& tensor) {
  const auto needed = static_cast<int64_t>(
      at::detail::computeStorageNbytes(tensor.sizes(), tensor.strides(), 1, tensor.storage_offset()));
  TORCH_CHECK(needed <= image.numel, "a saved Spyre tensor of sizes ", tensor.sizes(), " needs a storage of ",
              needed, " elements, the file says ", image.numel);
  check(check_holds(image.layout, image.numel));
  // At most one element in each of two sticks, or as many bytes as the file has.
  const Bytes size = storage_bytes_of(image);
  const Bytes most =
      std::max(Bytes(static_cast<int64_t>(tensor.storage().nbytes())), kStickBytes * 2 * image.numel);
  TORCH_CHECK(size <= most, "a saved Spyre layout of ", size.count(), " bytes is too large for ", image.numel,
              " elements: ", image.layout.to_string());
}

void load_layout(const at::Tensor& tensor, Metadata& metadata) {
  c10::StorageImpl& storage = *tensor.storage().unsafeGetStorageImpl();
  const StorageContext* context = context_of(storage);
  const auto layout = value_of(kLayoutKey, metadata);
  const auto elements = value_of(kElementsKey, metadata);
  if (context == nullptr || !context->image.has_value() || !layout.has_value() || !elements.has_value()) {
    return;
  }
  BaseImage image = *context->image;
  image.layout = unwrap(DeviceLayout::from_json(unwrap(parse_json(*layout, "saved Spyre layout"))));
  check(image.layout.check_well_formed());
  const Json count = unwrap(parse_json(*elements, "saved Spyre element count"));
  TORCH_CHECK(count.is_number_integer(), "a saved Spyre element count is not a number: ", *elements);
  image.numel = count.get<int64_t>();
  TORCH_CHECK(image.numel >= 0 && image.numel <= context->image->numel, "a saved Spyre storage of ",
              context->image->numel, " elements says it has ", image.numel);
  if (image.layout == context->image->layout && image.numel == context->image->numel) {
    return;
  }
  check_saved_image(image, tensor);
  // What no host writes, say a comparison's result as float32, keeps its values and gets the default layout.
  if (!find_conversion(image.type, image.layout.device_dtype, Direction::kHostToDevice, number_policy())
           .ok()) {
    return;
  }
  const std::vector<std::byte> bytes = read_logical_elements(*context);
  replace_image(storage, std::move(image));
  write_logical_elements(*context_of(storage), bytes);
}

const bool serialization_registered = [] {
  torch::jit::TensorBackendMetaRegistry(c10::kPrivateUse1, save_layout, load_layout);
  return true;
}();

}  // namespace
}  // namespace spyre::glue
