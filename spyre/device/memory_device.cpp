#include <utility>

#include "spyre/device/device.h"
#include "spyre/device/hbm.h"
#include "spyre/device/lx.h"

namespace spyre {
namespace {

class MemoryDevice final : public Device {
 public:
  MemoryDevice(const Machine& machine, std::unique_ptr<Hbm> hbm)
      : machine_(machine), hbm_(std::move(hbm)), lx_(machine) {}

  std::string_view name() const override { return "memory"; }
  const Machine& machine() const override { return machine_; }
  Result<HostWindow> open(DeviceRange range) override { return hbm_->open(range); }
  void discard(DeviceRange range) override { hbm_->discard(range); }
  const void* token(DeviceAddress address) const override { return hbm_->token(address); }
  std::optional<DeviceAddress> address_of(const void* token) const override {
    return hbm_->address_of(token);
  }
  Result<std::span<std::byte>> lx(int core) override { return lx_.core(core); }
  Result<exec::RunCounts> execute(const ExecuteRequest& request) override {
    return execute_on([this](int core) { return lx_.core(core); }, request);
  }
  void clear_lx() override { lx_.reset(); }
  Status reset() override {
    hbm_->discard({DeviceAddress(0), hbm_->size()});
    lx_.reset();
    return {};
  }

 private:
  Machine machine_;
  std::unique_ptr<Hbm> hbm_;
  Lx lx_;
};

}  // namespace

Result<std::unique_ptr<Device>> make_memory_device(const Machine& machine, Fence fence) {
  SPYRE_ASSIGN_OR_RETURN(std::unique_ptr<Hbm> hbm, Hbm::reserve(machine, fence));
  return std::unique_ptr<Device>(std::make_unique<MemoryDevice>(machine, std::move(hbm)));
}

}  // namespace spyre
