#include "glue/tensor_impl.h"

#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/core/impl/TorchDispatchModeTLS.h>

namespace spyre::glue {

SpyreTensorImpl::SpyreTensorImpl(c10::Storage&& storage, c10::DispatchKeySet keys, caffe2::TypeMeta dtype)
    : c10::TensorImpl(std::move(storage), keys, dtype) {}

SpyreTensorImpl::SpyreTensorImpl(c10::TensorImpl::ImplType view, c10::Storage&& storage,
                                 c10::DispatchKeySet keys, caffe2::TypeMeta dtype)
    : c10::TensorImpl(view, std::move(storage), keys, dtype) {}

template <typename Version>
c10::intrusive_ptr<c10::TensorImpl> SpyreTensorImpl::copy_and_detach(Version&& version,
                                                                     bool allow_metadata_change) const {
  // Dispatch modes (fake tensors, tracing) and tensor subclasses make their own copies; the base class asks them.
  const bool python_decides = key_set().has(c10::DispatchKey::Python) ||
                              (c10::impl::TorchDispatchModeTLS::stack_len() > 0 &&
                               !c10::impl::tls_is_dispatch_key_excluded(c10::DispatchKey::Python));
  if (python_decides) {
    return c10::TensorImpl::shallow_copy_and_detach(std::forward<Version>(version), allow_metadata_change);
  }
  auto copy = c10::make_intrusive<SpyreTensorImpl>(c10::Storage(storage()), key_set(), dtype());
  copy_tensor_metadata(this, copy.get(), std::forward<Version>(version), allow_metadata_change);
  copy->copy_layout_from(this);
  return copy;
}

c10::intrusive_ptr<c10::TensorImpl> SpyreTensorImpl::shallow_copy_and_detach(
    const c10::VariableVersion& version_counter, bool allow_tensor_metadata_change) const {
  return copy_and_detach(version_counter, allow_tensor_metadata_change);
}

c10::intrusive_ptr<c10::TensorImpl> SpyreTensorImpl::shallow_copy_and_detach(
    c10::VariableVersion&& version_counter, bool allow_tensor_metadata_change) const {
  return copy_and_detach(std::move(version_counter), allow_tensor_metadata_change);
}

void SpyreTensorImpl::shallow_copy_from(const c10::intrusive_ptr<c10::TensorImpl>& impl) {
  c10::TensorImpl::shallow_copy_from(impl);
  copy_layout_from(impl.get());
}

void SpyreTensorImpl::copy_layout_from(const c10::TensorImpl* impl) {
  const auto* spyre = dynamic_cast<const SpyreTensorImpl*>(impl);
  own_layout_ = spyre != nullptr ? spyre->own_layout_ : std::nullopt;
  storage_bytes_ = spyre != nullptr && spyre->storage_bytes_;
}

}  // namespace spyre::glue
