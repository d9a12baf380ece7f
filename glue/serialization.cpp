// torch.save keeps the layout: PyTorch stores a tensor's backend metadata as a map from text to bool, so the
// layout travels as one key. The data itself is saved in host order (copy.cpp), so that a file loads
// anywhere.

#include <torch/csrc/jit/serialization/pickler_helper.h>

#include "glue/device_state.h"
#include "glue/error.h"
#include "glue/tensor_access.h"
#include "spyre/base/json.h"

namespace spyre::glue {
namespace {

constexpr std::string_view kKey = "spyre_layout:";

void save_layout(const at::Tensor& tensor, std::unordered_map<std::string, bool>& metadata) {
  metadata[std::string(kKey) + layout_of(tensor).to_json().dump()] = true;
}

void load_layout(const at::Tensor& tensor, std::unordered_map<std::string, bool>& metadata) {
  for (const auto& [key, present] : metadata) {
    if (!key.starts_with(kKey)) {
      continue;
    }
    const Json json = unwrap(parse_json(std::string_view(key).substr(kKey.size()), "saved Spyre layout"));
    const DeviceLayout layout = unwrap(DeviceLayout::from_json(json));
    StorageContext* context = context_of(*tensor.storage().unsafeGetStorageImpl());
    if (context == nullptr || !context->image.has_value() || context->image->layout == layout) {
      return;
    }
    const std::vector<std::byte> elements = read_logical_elements(*context);
    BaseImage image = *context->image;
    image.layout = layout;
    replace_image(*tensor.storage().unsafeGetStorageImpl(), std::move(image));
    write_logical_elements(*context_of(*tensor.storage().unsafeGetStorageImpl()), elements);
    return;
  }
}

const bool registered = [] {
  torch::jit::TensorBackendMetaRegistry(c10::kPrivateUse1, save_layout, load_layout);
  return true;
}();

}  // namespace
}  // namespace spyre::glue
