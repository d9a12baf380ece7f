#pragma once

#include <array>
#include <bitset>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <optional>

#include "spyre/device/exec/bound_op.h"
#include "spyre/device/exec/card_memory.h"

/// Elements of tensors, as cores read and write them.
///
/// All inputs of an op are read before any output is written: reads go to memory, writes collect in a
/// `WriteBuffer` that is committed when every core is done. An output may therefore lie on top of an input.
///
/// Failures do not interrupt the loops over elements. The first one is kept as the run's *fault*, later reads
/// give zero, and the loops look at it once per row.
namespace spyre::exec {

/// The first failure of an execute.
class Fault {
 public:
  bool raised() const { return error_.has_value(); }
  void raise(Error error) {
    if (!error_) {
      error_ = std::move(error);
    }
  }
  Status status() const { return error_ ? Status(*error_) : Status(); }

 private:
  std::optional<Error> error_;
};

/// A result as it is stored: NaN is the quiet one without sign.
inline float without_nan_sign(float value) {
  return std::isnan(value) ? std::numeric_limits<float>::quiet_NaN() : value;
}

/// The element of `tensor` at a local coordinate (one entry per dim of the op, relative to the core's slice):
/// its distance from the tensor's start in elements.
int64_t element_of(const Tensor& tensor, const Coordinate& local);

/// Where an element lies: byte address in HBM, or offset in the core's LX.
struct Place {
  int64_t address = 0;
  bool exists = true;  ///< false: in the padding of a sliding window, reads as zero
};

/// One tensor as one core sees it.
class Operand {
 public:
  Operand(const BoundOp& bound, int tensor, int core, CardMemory& memory, Fault& fault);

  /// The bits of the element at a global coordinate.
  uint64_t raw(const Coordinate& global);
  /// Its value; masks of the op are the caller's business.
  float value(const Coordinate& global);
  /// The value in a given lane of the stick that holds the coordinate: for tensors that keep several results
  /// in one stick.
  float lane(const Coordinate& global, int lane);

  Place place(const Coordinate& global);
  const Tensor& tensor() const { return tensor_; }
  int core() const { return core_id_; }
  uint64_t raw_at(int64_t address);

 private:
  int64_t indexed_coordinate(const Coordinate& global, const TensorDim& dim);

  const BoundOp& bound_;
  const Tensor& tensor_;
  int core_id_;
  int64_t start_;
  Box held_;
  CardMemory& memory_;
  Fault& fault_;
  std::optional<int64_t> cached_;  // address of the stick in stick_
  std::array<std::byte, 128> stick_{};
  std::unique_ptr<Operand> index_;  // of a gather or scatter
};

/// What an execute wrote, by stick, until it is committed.
class WriteBuffer {
 public:
  /// Stores the low `bytes` of `bits`, on behalf of a core, in HBM or in that core's LX.
  void store(Residence residence, int core, int64_t address, uint64_t bits, int bytes);
  /// Writes everything, in ascending address order; only bytes that were stored.
  Status commit(const BoundOp& bound, CardMemory& memory) const;

 private:
  struct Stick {
    std::array<std::byte, 128> bytes{};
    std::bitset<128> stored;
    int core = 0;  // the last one to store here
  };
  // Key: core, or -1 for HBM, and address of the stick.
  std::map<std::pair<int, int64_t>, Stick> sticks_;
  std::pair<int, int64_t> last_key_{-2, 0};
  Stick* last_ = nullptr;
};

/// Writes the output tensor of one core into the buffer.
class Sink {
 public:
  Sink(const BoundOp& bound, int core, CardMemory& memory, Fault& fault, WriteBuffer& buffer)
      : operand_(bound, bound.op->output, core, memory, fault), buffer_(buffer) {}

  void raw(const Coordinate& global, uint64_t bits);
  /// Rounds once to the format of the output.
  void value(const Coordinate& global, float value);
  /// A value in a given lane of the stick that holds the coordinate.
  void lane(const Coordinate& global, int lane, float value);
  /// The value of a reduced stick: all lanes of it.
  void whole_stick(const Coordinate& global, float value);
  const Tensor& tensor() const { return operand_.tensor(); }

 private:
  void store_at(int64_t address, uint64_t bits);

  Operand operand_;
  WriteBuffer& buffer_;
};

}  // namespace spyre::exec
