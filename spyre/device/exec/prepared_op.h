#pragma once

#include <memory>
#include <vector>

#include "spyre/device/exec/card_memory.h"
#include "spyre/device/exec/counters.h"
#include "spyre/device/exec/fast_op.h"

namespace spyre::exec {

/// The scratchpads of a card as spans, each asked for once.
class ScratchpadSpans {
 public:
  explicit ScratchpadSpans(CardMemory& memory) : memory_(memory) {}

  /// Empty where the memory shows none.
  std::span<std::byte> of(int core);

 private:
  CardMemory& memory_;
  std::vector<std::span<std::byte>> spans_;  // [core id]
};

/// Bytes of HBM that an execute touches.
struct HbmRange {
  const std::byte* begin;
  const std::byte* end;
  bool written;

  bool conflicts(const HbmRange& other) const {
    return (written || other.written) && begin < other.end && other.begin < end;
  }
};

/// An op with everything computed that does not depend on addresses. Running it takes three steps: find the
/// bytes, move inputs aside that results would overwrite too early, run. Only the last two touch bytes.
class PreparedOp {
 public:
  /// Takes extents from `shape`, which has no start addresses.
  PreparedOp(BoundOp shape, const VectorKernels& kernels, const Machine& machine);

  const BoundOp& bound() const { return bound_; }
  const OpCounts& counts() const { return counts_; }

  /// Where this execute's bytes are, from the addresses `starts`[tensor * cores + core]. False: this launch
  /// needs the interpreter.
  bool find_places(const std::vector<int64_t>& starts, CardMemory& memory, ScratchpadSpans& scratchpads,
                   Places& places) const;

  /// Whether `ready` has to look at values that ops before this one may write.
  bool data_dependent() const { return kernel_ && kernel_->data_dependent(); }
  /// False: the values that it reads need the interpreter. Needs found places.
  bool ready(const Places& places) const { return kernel_->ready(places); }

  /// Whether an input must be moved aside before results are written.
  bool overwrites_inputs(const Places& places) const;

  /// The whole op, on all threads. Needs found places.
  void run(Places& places) const;

  /// Whether `run_core` exists: each core works on its own slices alone.
  bool core_local() const { return kernel_ && kernel_->core_local(); }
  /// What the core with this id does, on the calling thread. Nothing, if the op does not use it.
  void run_core(const Places& places, int core) const;
  std::vector<HbmRange> hbm_ranges(const Places& places) const;
  /// What one core touches, about.
  int64_t bytes_per_core() const;

 private:
  using Copies = std::vector<std::vector<std::byte>>;

  bool usable() const;
  void find_reach();
  bool find_hbm(int tensor, const std::vector<int64_t>& starts, CardMemory& memory, Places& places) const;
  bool find_lx(int tensor, const std::vector<int64_t>& starts, ScratchpadSpans& scratchpads,
               Places& places) const;
  bool is_overwritten(int input, int core, const Places& places) const;
  void keep_input_readable(int input, Places& places, Copies& copies) const;

  BoundOp bound_;
  OpCounts counts_;
  FastShape shape_;
  std::vector<int> read_;                          // tensors: inputs, and what indexes them
  std::vector<int64_t> reach_;                     // [tensor]: bytes of all cores together
  std::vector<int64_t> core_reach_, core_offset_;  // [tensor * cores + core]
  std::vector<int> position_;                      // [core id]; -1: not used
  std::unique_ptr<FastKernel> kernel_;
};

}  // namespace spyre::exec
