#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "spyre/ops/ops.h"

/// Which operations the card takes, apart from bytes and addresses: the one statement that the code generator
/// and the card's reader both ask, each about its own form of an op. What the one writes the other therefore
/// reads.
namespace spyre {

/// How a tensor stands to a dimension of the op.
enum class Presence : uint8_t {
  kUnlisted,  ///< it does not name the dimension
  kAbsent,    ///< it names it as broadcast or reduced
  kPresent,
};

/// One op as these rules see it.
struct OpShape {
  struct Dim {
    std::string label;
    int64_t extent = 1;  ///< padded, of the whole op
    int64_t splits = 1;
  };
  struct Tensor {
    std::string name;
    std::vector<Presence> presence;   ///< by dimension
    std::vector<int64_t> per_stick;   ///< by dimension: elements in one stick, 1 outside of the stick
    std::set<int> stick;              ///< dimensions along the stick
    std::vector<int64_t> own_splits;  ///< of a relayout, by dimension; empty: those of the op
    std::set<int> windows;            ///< dimensions read through a sliding window
    bool is_index = false;            ///< read only to find elements of another tensor
    bool through_index = false;       ///< positions come from an index tensor
    bool in_lx = false;

    bool has(int dim) const { return presence[static_cast<size_t>(dim)] == Presence::kPresent; }
    bool lists(int dim) const { return presence[static_cast<size_t>(dim)] != Presence::kUnlisted; }
  };

  const OpInfo* info = nullptr;
  std::vector<Dim> dims;
  std::vector<Tensor> tensors;
  std::vector<int> inputs;  ///< data inputs in operand order
  int output = 0;
};

/// What is wrong with an op. `field` and `tensor` say where; artifacts name the same fields.
struct Illegality {
  std::string field;
  int tensor = -1;  ///< -1: the op as a whole
  std::string found, allowed;
};

/// The most dimensions of one op.
inline constexpr size_t kMostDims = 8;

/// How many loops of each kind a product has. Dimensions of one step are no loops.
struct MatmulLoops {
  int contracted = 0;  ///< both operands, not the result
  int generated = 0;   ///< the right operand and the result
  int preserved = 0;   ///< the left operand and the result
  int shared = 0;      ///< all three, or those the left operand is broadcast along
};
std::optional<Illegality> check_matmul_loops(const MatmulLoops& loops);

/// The first rule an op breaks:
///  - a slice of a stick dimension is whole sticks (an index tensor's may be less than one);
///  - a product has X with its stick on the contracted dimension and W and the result on the generated one,
///  one of
///    each of these, at most two preserved and two shared ones;
///  - a search for the largest has one searched dimension, whole on every core, and one rank dimension;
///  - tensors of a pointwise op or reduction agree on their stick dimensions; a conversion keeps its own;
///  - if one dimension of a stick is broadcast all are; a result is not broadcast unless the op reduces;
///  - both sides of a relayout are in LX.
std::optional<Illegality> check_legality(const OpShape& op);

}  // namespace spyre
