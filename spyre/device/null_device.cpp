#include <utility>

#include "spyre/device/device.h"
#include "spyre/device/hbm.h"
#include "spyre/device/lx.h"

namespace spyre {
namespace {

class NullDevice final : public Device, private WindowOwner {
 public:
  NullDevice(const Machine& machine, std::unique_ptr<Hbm> addresses)
      : machine_(machine), addresses_(std::move(addresses)), lx_(machine) {}

  std::string_view name() const override { return "null"; }
  const Machine& machine() const override { return machine_; }
  Result<HostWindow> open(DeviceRange range) override {
    SPYRE_TRY(addresses_->open(range));  // only for its checks
    const auto size = static_cast<size_t>(range.size.count());
    return HostWindow(this, {new std::byte[size](), size});
  }
  void discard(DeviceRange) override {}
  const void* token(DeviceAddress address) const override { return addresses_->token(address); }
  std::optional<DeviceAddress> address_of(const void* token) const override {
    return addresses_->address_of(token);
  }
  Result<std::span<std::byte>> lx(int core) override { return lx_.core(core); }
  Result<exec::RunCounts> execute(const ExecuteRequest&) override { return exec::RunCounts(); }
  void clear_lx() override { lx_.reset(); }
  Status reset() override {
    lx_.reset();
    return {};
  }

 private:
  void close_window(std::span<std::byte> bytes) noexcept override { delete[] bytes.data(); }

  Machine machine_;
  std::unique_ptr<Hbm> addresses_;  // tokens and bounds; its bytes are never touched
  Lx lx_;
};

}  // namespace

Result<std::unique_ptr<Device>> make_null_device(const Machine& machine) {
  SPYRE_ASSIGN_OR_RETURN(std::unique_ptr<Hbm> addresses, Hbm::reserve(machine, Fence::kOpen));
  return std::unique_ptr<Device>(std::make_unique<NullDevice>(machine, std::move(addresses)));
}

}  // namespace spyre
