#pragma once

#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "spyre/base/result.h"
#include "spyre/graph/device_graph.h"

/// Builds the device nodes that one captured node becomes.
namespace spyre {

/// How a value is held on the card. Booleans are numbers, 0 or 1, in either float. The card computes with the
/// first three; what it only moves (fp8, int8, int16, uint8) is kBits, and stays of the type it has.
enum class Held : uint8_t { kFp16, kFp32, kInt32, kBits };

Held held_as(HostType type);

/// A value of the body: an element of a buffer, or a number that has no buffer yet.
struct Operand {
  std::optional<Access> access;  ///< none: the constant `value`
  double value = 0;
  HostType type = HostType::kFloat16;  ///< what the program calls it
  Held held = Held::kFp16;
  double most = std::numeric_limits<double>::infinity();  ///< its magnitude is known not to exceed this
  /// An index that the program must not get past: at least 0 and less than this, which nothing has checked
  /// yet.
  std::optional<int64_t> below;

  bool is_constant() const { return !access.has_value(); }
};

class OpEmitter {
 public:
  /// New nodes are appended to `out`, in execution order.
  OpEmitter(GraphBuffers& graph, const Node& node, std::vector<DeviceNode>& out);

  /// Appends the value of the next instruction, so that index expressions can name it.
  void define(Operand value);
  /// The value of an instruction, checked if it is an index that must exist.
  const Operand& value(int position);

  Result<Operand> load(const Instruction& load);
  Operand constant(double value, HostType type) const;
  /// Positions as values: the sum of one ramp per loop. Refuses quotients and remainders of loops.
  Result<Operand> ramp(const Expr& index, HostType type);

  /// One operation into a new buffer, over the loops its operands use. The result is held as its inputs are,
  /// unless `held` says otherwise.
  Operand op(OpId id, const std::vector<Operand>& operands, std::optional<Held> held = {},
             std::vector<std::pair<std::string, double>> attributes = {});
  /// One reduction over the given loops, held likewise.
  Operand reduce(OpId id, const std::vector<Operand>& operands, const std::vector<std::string>& loops,
                 std::vector<std::pair<std::string, double>> attributes = {}, std::optional<Held> held = {});
  /// One reduction over `count` iterations of a loop from `first` on; its operands' indices are affine in it.
  Operand reduce_part(OpId id, std::vector<Operand> operands, const std::string& loop, int64_t first,
                      int64_t count, Held held);
  /// The same value, held otherwise. A conversion to integer drops the fraction, as PyTorch does. Not for kBits.
  Operand hold(const Operand& value, Held held);
  /// What the program converts: every pair of types has a way here, or is refused. Narrowing to 16 bits
  /// saturates, because an infinity would become NaN.
  Result<Operand> convert(const Operand& value, HostType type);

  /// Ends the node: `value` goes where the node stores. A node that reads other elements of its own target
  /// has read them all before the first is written.
  Status store(const Operand& value);

  const Node& node() const { return node_; }
  /// Reduced loops of the node with more than one iteration.
  std::vector<std::string> reduced_loops() const;
  int64_t extent(std::string_view loop) const;
  /// A loop besides those of the node, outside of them; what is made along it has to be reduced before it is stored.
  std::string add_loop(std::string_view name, int64_t extent);
  bool uses(const Operand& operand, std::string_view loop) const;
  /// Whether an integer is known to be one that fp32 holds: none beyond 2^24.
  static bool is_exact_float(const Operand& integer);

  Error refuse(std::string_view message) const;

 private:
  bool reads_elsewhere(const DeviceOp& maker) const;
  Operand whole_part(const Operand& fp32);
  Access materialize(const Operand& operand);
  const Operand& value_named(std::string_view name) const;
  /// Makes the values that an index reads through ready for addresses in `buffer`.
  Status hold_indices(BufferId buffer, const Expr& index);
  bool ends_with_table(const Operand& position, BufferId buffer, const Expr& index,
                       std::string_view name) const;
  Operand checked(Operand index);
  Operand first_of_table(const Access& row);
  void take_indices(DeviceOp& op, Expr& index);
  std::vector<Loop> loops_of(const std::vector<Operand>& operands) const;
  Operand emit(OpId id, bool reduces, std::vector<Loop> loops, const std::vector<Operand>& operands,
               Held held, std::vector<std::pair<std::string, double>> attributes);

  GraphBuffers& graph_;
  const Node& node_;
  std::vector<DeviceNode>& out_;
  std::vector<Loop> loops_;  // the node's, and those added
  size_t first_;             // of this node's replacements in out_
  std::vector<Operand> values_;
};

}  // namespace spyre
