#include "glue/eager_key.h"

#include <ATen/core/Tensor.h>
#include <c10/core/DefaultDtype.h>

#include <bit>

#include "glue/eager_call.h"
#include "glue/error.h"
#include "glue/tensor_access.h"
#include "spyre/base/settings.h"

namespace spyre::glue {
namespace {

enum class Tag : int64_t {
  kNone = 1,
  kTensor,
  kCpuNumber,
  kTensors,
  kInt,
  kDouble,
  kBool,
  kText,
  kInts,
  kDevice
};

/// Settings that change code, as they are now. Few and short: reading them costs less than a microsecond.
size_t settings_fingerprint() {
  size_t hash = 0;
  for (const Setting& setting : all_settings()) {
    if (!setting.changes_code) {
      continue;
    }
    hash = hash * 31 + std::hash<std::string>()(to_string(unwrap(read_setting(setting.name))));
  }
  return hash;
}

class Writer {
 public:
  bool add(const c10::IValue& value) {
    if (value.isNone()) {
      return add(Tag::kNone);
    }
    if (value.isTensor()) {
      return tensor(value.toTensor());
    }
    if (value.isTensorList()) {
      const auto tensors = value.toTensorList();
      add(Tag::kTensors, static_cast<int64_t>(tensors.size()));
      for (const at::Tensor& t : tensors) {
        if (!tensor(t)) {
          return false;
        }
      }
      return true;
    }
    if (value.isOptionalTensorList()) {
      const auto tensors = value.toOptionalTensorList();
      add(Tag::kTensors, static_cast<int64_t>(tensors.size()));
      for (const std::optional<at::Tensor>& t : tensors) {
        if (!tensor(t.value_or(at::Tensor()))) {
          return false;
        }
      }
      return true;
    }
    if (value.isInt()) {
      return add(Tag::kInt, value.toInt());
    }
    if (value.isDouble()) {
      return add(Tag::kDouble, std::bit_cast<int64_t>(value.toDouble()));
    }
    if (value.isBool()) {
      return add(Tag::kBool, value.toBool() ? 1 : 0);
    }
    if (value.isString()) {
      return add(Tag::kText, static_cast<int64_t>(std::hash<std::string>()(value.toStringRef())));
    }
    if (value.isIntList()) {
      return ints(value.toIntVector());
    }
    if (value.isBoolList()) {
      std::vector<int64_t> flags;
      for (const bool flag : value.toBoolList()) {
        flags.push_back(flag ? 1 : 0);
      }
      return ints(flags);
    }
    if (value.isDevice()) {
      return add(Tag::kDevice, value.toDevice().index());
    }
    return false;
  }

  bool add(Tag tag, int64_t word = 0) {
    words.push_back(static_cast<int64_t>(tag));
    words.push_back(word);
    return true;
  }

  std::vector<int64_t> words;

 private:
  bool ints(c10::IntArrayRef values) {
    add(Tag::kInts, static_cast<int64_t>(values.size()));
    words.insert(words.end(), values.begin(), values.end());
    return true;
  }

  bool tensor(const at::Tensor& tensor) {
    if (!tensor.defined()) {
      return add(Tag::kNone);
    }
    const int64_t type = static_cast<int64_t>(tensor.scalar_type()) * 2 +
                         (tensor.unsafeGetTensorImpl()->is_wrapped_number() ? 1 : 0);
    if (tensor.device().is_cpu() && tensor.dim() == 0) {
      add(Tag::kCpuNumber, type);
      if (tensor.is_complex()) {
        return false;
      }
      words.push_back(std::bit_cast<int64_t>(tensor.item().toDouble()));
      return true;
    }
    if (!tensor.device().is_privateuseone()) {
      return false;
    }
    add(Tag::kTensor, type);
    words.push_back(tensor.device().index());
    words.push_back(tensor.storage_offset());
    // Whether anything lies behind the tensor's last stick decides how it may be written.
    const StorageContext* context = context_of(*tensor.storage().unsafeGetStorageImpl());
    words.push_back(context != nullptr && context->image ? context->image->numel : 0);
    words.push_back(alias(tensor));
    ints(tensor.sizes());
    ints(tensor.strides());
    const DeviceLayout layout = layout_of(tensor);
    words.push_back(static_cast<int64_t>(layout.device_dtype) * 16 +
                    static_cast<int64_t>(layout.element_arrangement));
    ints(layout.device_size);
    return ints(layout.stride_map);
  }

  /// The number of the first tensor with the same memory.
  int64_t alias(const at::Tensor& tensor) {
    const c10::StorageImpl* storage = tensor.storage().unsafeGetStorageImpl();
    for (size_t i = 0; i < storages_.size(); ++i) {
      if (storages_[i] == storage) {
        return static_cast<int64_t>(i);
      }
    }
    storages_.push_back(storage);
    return static_cast<int64_t>(storages_.size()) - 1;
  }

  std::vector<const c10::StorageImpl*> storages_;
};

}  // namespace

std::optional<EagerKey> eager_key(const void* op, std::span<const c10::IValue> arguments) {
  Writer writer;
  writer.words.reserve(64);
  writer.words.push_back(static_cast<int64_t>(reinterpret_cast<intptr_t>(op)));
  writer.words.push_back(static_cast<int64_t>(settings_fingerprint()));
  writer.words.push_back(static_cast<int64_t>(c10::get_default_dtype_as_scalartype()));
  writer.words.push_back(form_options().float32_parts);
  for (const c10::IValue& value : arguments) {
    if (!writer.add(value)) {
      return std::nullopt;
    }
  }
  EagerKey key{.words = std::move(writer.words)};
  for (const int64_t word : key.words) {
    key.hash = (key.hash ^ static_cast<size_t>(word)) * 0x9e3779b97f4a7c15ULL;
    key.hash ^= key.hash >> 32;
  }
  return key;
}

}  // namespace spyre::glue
