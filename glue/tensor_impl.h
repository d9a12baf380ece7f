#pragma once

#include <c10/core/TensorImpl.h>

#include <optional>

#include "spyre/layout/device_layout.h"

namespace spyre::glue {

/// A tensor on the card: PyTorch's sizes, strides and storage offset count *logical host elements*, and a
/// DeviceLayout says where those live on the card.
///
/// Usually the layout is the storage's (storage.h) and this class adds nothing; a tensor carries one of its own when
/// somebody set it (`set_spyre_tensor_layout`, `as_strided_with_layout`). It then travels with every detach, alias
/// and shallow copy.
class SpyreTensorImpl final : public c10::TensorImpl {
 public:
  SpyreTensorImpl(c10::Storage&& storage, c10::DispatchKeySet keys, caffe2::TypeMeta dtype);
  /// A view of the same storage; see as_view.
  SpyreTensorImpl(c10::TensorImpl::ImplType view, c10::Storage&& storage, c10::DispatchKeySet keys,
                  caffe2::TypeMeta dtype);

  const std::optional<DeviceLayout>& own_layout() const { return own_layout_; }
  void set_own_layout(std::optional<DeviceLayout> layout) { own_layout_ = std::move(layout); }

  /// True for the uint8 tensor PyTorch makes of a whole storage to copy its bytes (`Storage.copy_`, torch.save).
  /// Copies of such a tensor move the storage's logical elements, whatever their type.
  bool is_storage_bytes() const { return storage_bytes_; }
  void set_storage_bytes(bool value) { storage_bytes_ = value; }

  c10::intrusive_ptr<c10::TensorImpl> shallow_copy_and_detach(
      const c10::VariableVersion& version_counter, bool allow_tensor_metadata_change) const override;
  c10::intrusive_ptr<c10::TensorImpl> shallow_copy_and_detach(
      c10::VariableVersion&& version_counter, bool allow_tensor_metadata_change) const override;
  void shallow_copy_from(const c10::intrusive_ptr<c10::TensorImpl>& impl) override;

 private:
  template <typename Version>
  c10::intrusive_ptr<c10::TensorImpl> copy_and_detach(Version&& version, bool allow_metadata_change) const;
  void copy_layout_from(const c10::TensorImpl* impl);

  std::optional<DeviceLayout> own_layout_;
  bool storage_bytes_ = false;
};

}  // namespace spyre::glue
