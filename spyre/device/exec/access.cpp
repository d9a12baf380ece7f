#include "spyre/device/exec/access.h"

#include <fmt/format.h>

#include <cstring>

#include "spyre/program/element.h"

namespace spyre::exec {
namespace {

int element_bytes(const Tensor& tensor) {
  return bits_of(tensor.format) / 8;
}

/// The number of the lane that holds a coordinate, before any reordering: digits innermost first.
int64_t standard_lane(const Tensor& tensor, const Coordinate& local) {
  int64_t lane = 0, weight = 1;
  for (const StickDigit& digit : tensor.stick) {
    lane += digit.present ? weight * (local[digit.dim] / digit.divisor % digit.size) : 0;
    weight *= digit.size;
  }
  return lane;
}

}  // namespace

int64_t element_of(const Tensor& tensor, const Coordinate& local) {
  int64_t element = standard_lane(tensor, local);
  if (!tensor.lane_of.empty()) {
    element = tensor.lane_of[element];
  }
  for (const TensorDim& dim : tensor.dims) {
    if (dim.stride != 0) {  // 0 where the dim is absent
      element += local[dim.dim] / dim.per_stick * dim.stride;
    }
  }
  return element;
}

// ---- Operand
// ------------------------------------------------------------------------------------------------

Operand::Operand(const BoundOp& bound, int tensor, int core, CardMemory& memory, Fault& fault)
    : bound_(bound),
      tensor_(bound.tensors[tensor]),
      core_id_(bound.op->cores[core].core),
      start_(bound.start[tensor][core]),
      held_(bound.held(tensor, core)),
      memory_(memory),
      fault_(fault) {
  if (tensor_.through) {
    index_ = std::make_unique<Operand>(bound, tensor_.through->index_tensor, core, memory, fault);
  }
}

int64_t Operand::indexed_coordinate(const Coordinate& global, const TensorDim& dim) {
  const auto index = static_cast<int64_t>(index_->raw(global));
  const int64_t page = tensor_.through->page;
  // The table's length is known where a launch specification or a gap states it; else memory sets the limit.
  const int64_t rows = dim.extent * dim.per_stick / page;
  if (dim.gap_declared && index >= rows) {
    fault_.raise(device_fault(bound_, core_id_, static_cast<uint64_t>(index_->place(global).address),
                              fmt::format("index {} into {}, which has {} rows", index, tensor_.name, rows)));
    return 0;
  }
  return index * page + global[dim.dim] % page;
}

Place Operand::place(const Coordinate& global) {
  Coordinate local;  // entries past the op's dims are never looked at
  for (int d = 0; d < bound_.dims(); ++d) {
    local[d] = global[d] - held_.lower[d];
  }
  for (const TensorDim& dim : tensor_.dims) {
    if (dim.indexed) {
      local[dim.dim] = indexed_coordinate(global, dim);
    } else if (dim.window) {
      const Window& w = *dim.window;
      const int64_t reach = global[w.window_dim] * w.dilation - w.pad_front;
      const int64_t row = global[dim.dim] * w.stride + reach;
      if (row < 0 || row >= w.input_extent) {
        return {.exists = false};
      }
      local[dim.dim] = local[dim.dim] * w.stride + reach;
    }
  }
  return {.address = start_ + element_of(tensor_, local) * element_bytes(tensor_)};
}

uint64_t Operand::raw_at(int64_t address) {
  const int64_t base = address & ~(kStick - 1);
  if (cached_ != base) {
    const Status read = tensor_.residence == Residence::kHbm
                            ? memory_.read_hbm(static_cast<uint64_t>(base), stick_)
                            : memory_.read_lx(core_id_, static_cast<uint64_t>(base), stick_);
    if (!read.ok()) {
      fault_.raise(device_fault(bound_, core_id_, static_cast<uint64_t>(base),
                                fmt::format("reading {} from {}: {}", tensor_.name,
                                            to_string(tensor_.residence), read.error().message)));
      return 0;
    }
    cached_ = base;
  }
  uint64_t bits = 0;
  std::memcpy(&bits, stick_.data() + (address - base), element_bytes(tensor_));
  return bits;
}

uint64_t Operand::raw(const Coordinate& global) {
  const Place at = place(global);
  return at.exists && !fault_.raised() ? raw_at(at.address) : 0;
}

float Operand::value(const Coordinate& global) {
  return decode_element(tensor_.format, static_cast<uint32_t>(raw(global)));
}

float Operand::lane(const Coordinate& global, int lane) {
  const int64_t stick = place(global).address & ~(kStick - 1);
  const uint64_t bits = fault_.raised() ? 0 : raw_at(stick + lane * element_bytes(tensor_));
  return decode_element(tensor_.format, static_cast<uint32_t>(bits));
}

// ---- WriteBuffer
// --------------------------------------------------------------------------------------------

void WriteBuffer::store(Residence residence, int core, int64_t address, uint64_t bits, int bytes) {
  const std::pair<int, int64_t> key(residence == Residence::kHbm ? -1 : core, address & ~(kStick - 1));
  if (key != last_key_ || last_ == nullptr) {
    last_ = &sticks_[key];
    last_key_ = key;
  }
  last_->core = core;
  const auto at = static_cast<size_t>(address - key.second);
  std::memcpy(last_->bytes.data() + at, &bits, bytes);
  for (int i = 0; i < bytes; ++i) {
    last_->stored.set(at + i);
  }
}

Status WriteBuffer::commit(const BoundOp& bound, CardMemory& memory) const {
  for (const auto& [key, stick] : sticks_) {
    const auto& [space, address] = key;
    for (size_t begin = 0; begin < 128;) {
      size_t end = begin;
      while (end < 128 && stick.stored[end]) {
        ++end;
      }
      if (end > begin) {
        const std::span<const std::byte> bytes(stick.bytes.data() + begin, end - begin);
        const auto at = static_cast<uint64_t>(address) + begin;
        const Status written = space < 0 ? memory.write_hbm(at, bytes) : memory.write_lx(space, at, bytes);
        if (!written.ok()) {
          return device_fault(bound, stick.core, at, "writing the result: " + written.error().message);
        }
      }
      begin = end + 1;
    }
  }
  return Status();
}

// ---- Sink
// ---------------------------------------------------------------------------------------------------

void Sink::store_at(int64_t address, uint64_t bits) {
  buffer_.store(tensor().residence, operand_.core(), address, bits, element_bytes(tensor()));
}

void Sink::raw(const Coordinate& global, uint64_t bits) {
  store_at(operand_.place(global).address, bits);
}

void Sink::value(const Coordinate& global, float value) {
  raw(global, encode_element(tensor().format, without_nan_sign(value)));
}

void Sink::lane(const Coordinate& global, int lane, float value) {
  const int64_t stick = operand_.place(global).address & ~(kStick - 1);
  store_at(stick + lane * element_bytes(tensor()), encode_element(tensor().format, without_nan_sign(value)));
}

void Sink::whole_stick(const Coordinate& global, float value) {
  for (int i = 0; i < tensor().lanes(); ++i) {
    lane(global, i, value);
  }
}

}  // namespace spyre::exec
