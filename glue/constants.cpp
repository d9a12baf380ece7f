#include "glue/constants.h"

#include <ATen/ops/full.h>

#include <bit>
#include <map>
#include <mutex>
#include <string>
#include <tuple>

#include "glue/device_state.h"
#include "glue/dtype.h"
#include "glue/kernels.h"

namespace spyre::glue {
namespace {

/// Numbers by their bits: a map ordered by `double` would take NaN for every key it meets.
using ConstantKey =
    std::tuple<uint64_t, uint64_t, HostType, std::vector<int64_t>, std::string, c10::DeviceIndex>;

ConstantKey key_of(const KernelArgument& constant, c10::DeviceIndex device) {
  return {std::bit_cast<uint64_t>(constant.fill.start),
          std::bit_cast<uint64_t>(constant.fill.step),
          constant.dtype,
          constant.size,
          constant.layout.to_string() + std::string(to_string(constant.layout.element_arrangement)),
          device};
}

/// The constants that some kernel holds.
class Constants {
 public:
  static Constants& shared() {
    static auto* const constants = new Constants;  // never destroyed: kernels outlive the interpreter's end
    return *constants;
  }

  /// Undefined when there is none.
  at::Tensor find(const ConstantKey& key) const {
    const std::lock_guard lock(mutex_);
    return find_locked(key);
  }

  /// Another thread may have been faster: then its tensor is the answer.
  at::Tensor add(const ConstantKey& key, const at::Tensor& made) {
    const std::lock_guard lock(mutex_);
    if (at::Tensor theirs = find_locked(key); theirs.defined()) {
      return theirs;
    }
    std::erase_if(known_, [](const auto& entry) { return entry.second.expired(); });
    known_.emplace(key, made.getIntrusivePtr());
    return made;
  }

 private:
  at::Tensor find_locked(const ConstantKey& key) const {
    const auto found = known_.find(key);
    return found == known_.end() ? at::Tensor() : at::Tensor(found->second.lock());
  }

  mutable std::mutex mutex_;
  std::map<ConstantKey, c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>> known_;
};

at::Tensor make(const KernelArgument& constant, c10::DeviceIndex device) {
  const c10::ScalarType dtype = dtype_of(constant.dtype);
  const at::Tensor host = at::full(constant.size, constant.fill.start, at::dtype(at::kDouble));
  if (constant.fill.step != 0) {
    auto* const values = static_cast<double*>(host.mutable_data_ptr());
    for (int64_t i = 0; i < host.numel(); ++i) {
      values[i] += static_cast<double>(i) * constant.fill.step;
    }
  }
  at::Tensor tensor =
      empty_with_layout(constant.size, constant.stride, dtype, constant.layout, spyre_device(device));
  copy_from(host.to(dtype), tensor, /*non_blocking=*/false);
  return tensor;
}

}  // namespace

at::Tensor constant_tensor(const KernelArgument& constant, c10::DeviceIndex device) {
  const ConstantKey key = key_of(constant, device);
  at::Tensor found = Constants::shared().find(key);
  // Made without a lock: a full card collects Python's garbage, which may launch kernels.
  return found.defined() ? found : Constants::shared().add(key, make(constant, device));
}

}  // namespace spyre::glue
