#pragma once

#include <memory>
#include <vector>

#include "spyre/device/exec/bound_op.h"
#include "spyre/device/exec/geometry.h"
#include "spyre/device/exec/vector_kernels.h"

/// What the fast executor knows of an op before it runs, and what a family's fast code must provide.
namespace spyre::exec {

/// Work below this is not worth waking another thread.
inline constexpr int64_t kParallelPoints = 65536, kParallelBytes = 131072;
inline constexpr int kMostLanes = 64;  ///< of a stick of numbers
inline constexpr int64_t kTilePoints =
    16384;  ///< of a tile, the part of a nest that a thread takes at a time

/// Where the bytes of an execute are, as pointers. Cores of HBM tensors are known to lie where their slices
/// say, so that code may also work on all slices at once.
struct Places {
  std::vector<std::byte*> origin;  ///< [tensor]: coordinate 0 of an HBM tensor; null for LX
  std::vector<std::byte*> start;   ///< [tensor * cores + core]: lower corner of a core's box
  int cores = 0;

  std::byte* at(int tensor, int core) const { return start[tensor * cores + core]; }
};

/// Fast code for one op. Holds what depends on the program alone; `run` may be called any number of times.
class FastKernel {
 public:
  virtual ~FastKernel() = default;
  /// Writes every result. Inputs and output overlap only where `elementwise` allows it.
  virtual void run(const Places& places) const = 0;
  /// Whether the code assumes something of values, and if these keep it. Where not, the interpreter runs the execute.
  virtual bool data_dependent() const { return false; }
  virtual bool ready(const Places& /*places*/) const { return true; }
  /// An output may lie exactly on an input of the same layout.
  virtual bool elementwise() const { return false; }
  /// Each core reads and writes its own slices alone, so that cores may run one by one.
  virtual bool core_local() const { return false; }
  /// What the core at this position does, on the calling thread. Needs `core_local`.
  virtual void run_core(const Places& /*places*/, int /*core*/) const {}
};

/// An op with its extents bound, ready for its families to plan.
struct FastShape {
  const BoundOp* bound;            ///< without start addresses
  std::vector<Box> boxes;          ///< [core position]: the work; a copy leaves out what memory lacks
  std::vector<Geometry> geometry;  ///< [tensor]
  const VectorKernels* vectors;

  const ProgramOp& op() const { return *bound->op; }
  int dims() const { return bound->dims(); }
  int cores() const { return static_cast<int>(boxes.size()); }
  const Geometry& input(int i) const { return geometry[op().inputs[i]]; }
  const Geometry& output() const { return geometry[op().output]; }
  /// Every tensor the op uses is in HBM: its slices are parts of one whole.
  bool all_in_hbm() const;
};

/// A piece of work: the box of a core, or of all cores at once (`core` -1) where everything is in HBM.
struct Unit {
  int core = -1;
  Box box;

  /// The first byte of a tensor for this unit.
  std::byte* base(const FastShape& shape, const Places& places, int tensor) const;
};
/// One unit if all slices are parts of a whole, else one for each core that has work.
std::vector<Unit> units_of(const FastShape& shape);

/// One function per family; null where it has no fast code for this op.
std::unique_ptr<FastKernel> plan_pointwise(const FastShape& shape);
std::unique_ptr<FastKernel> plan_reduction(const FastShape& shape);  ///< also the moments of a layer norm
std::unique_ptr<FastKernel> plan_matmul(const FastShape& shape);
std::unique_ptr<FastKernel> plan_conversion(const FastShape& shape);
std::unique_ptr<FastKernel> plan_copy(const FastShape& shape);
std::unique_ptr<FastKernel> plan_indexed_copy(const FastShape& shape);  ///< gathers and scatters
std::unique_ptr<FastKernel> plan_shuffle(const FastShape& shape);
std::unique_ptr<FastKernel> plan_layernorm(const FastShape& shape);

}  // namespace spyre::exec
