#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>

#include "spyre/arch/machine.h"
#include "spyre/device/exec/card_memory.h"
#include "spyre/device/exec/counters.h"
#include "spyre/program/device_program.h"

/// The slow executor: one element at a time, straight from the definitions. It is the judge of every faster
/// one.
///
/// What it defines:
///  - Elements are widened to fp32, computed in fp32, rounded once to the format of the result. A result that
///    is not a number is the quiet NaN without sign, whatever its operands were: which of two NaN operands
///    survives an addition depends on how a compiler orders them, so signs and payloads of NaN carry no
///    meaning.
///  - Reductions run in a fixed order. Within a core's slice, ascending along the reduced dims (in the order
///  of
///    N_, the last one fastest). Where the stick itself is reduced, each of its lanes does so for the
///    elements it holds, and the lanes then fold in halves: lane i with lane i + 32, then i + 16, and so on,
///    of 64. The partial results of a group of cores are then folded in ascending slice order.
///  - Contractions add their products in ascending order too, one chain per result whatever the sticks are.
///  - An execute is a barrier: its inputs are read before anything is written, and its results are in memory
///    before the next one starts.
///  - The whole padded iteration space is computed. Padding lanes hold what the arithmetic gives; they never
///  trap.
///  - A card driven wrongly stops: kDeviceFault with core, address and instruction. Memory keeps the results
///  of the
///    executes before; the faulting one has written nothing, unless it is its writes that fault.
namespace spyre::exec {

/// What a launch passes, and what it must know of the card.
struct LaunchValues {
  std::vector<int64_t> parameters;  ///< addresses and extents, in signature order
  int64_t pool_base = 0;            ///< address of the bundle's own pool, if it asks for one
};

/// How reductions and contractions add up. The order of a sum follows from the layouts and divisions that a compiler
/// chose, and decides about its last bits.
enum class Sums : uint8_t {
  kInOrder,    ///< as defined above
  kInDoubles,  ///< in doubles, rounded to fp32 once: what differs now did not differ by the order of a sum
};

/// How many executes the fast executor ran itself, and how many it left to the interpreter.
struct PathCounts {
  int64_t fast = 0, interpreted = 0;
  std::map<std::string, int64_t> interpreted_ops;  ///< those, by the name of their op function
};

struct RunOptions {
  const Machine* machine = &spyre_card();
  /// Points of the iteration space that one execute may have. A program that asks for more faults instead of
  /// running for years.
  int64_t max_points = int64_t{1} << 40;
  /// Called after each execute with what it ran and what it counted; for traces and the timing model.
  std::function<void(const BoundOp&, const OpCounts&)> observe;
  /// Whether to add up what moved. Without it the result of a run has no counts.
  bool count = true;
  /// Where to add up how executes ran, if anyone asks. The interpreter leaves it alone.
  PathCounts* paths = nullptr;
  /// Other than in order: only the interpreter, only for those who ask why results differ.
  Sums sums = Sums::kInOrder;
  /// False: an execute that the fast executor would leave to the interpreter is refused (kUnsupported).
  bool may_interpret = true;
};

/// Runs a program to its end.
Result<RunCounts> interpret(const DeviceProgram& program, const LaunchValues& launch, CardMemory& memory,
                            const RunOptions& options = {});

/// Called for each execute with the number of its op, the values of its symbols, and how many came before.
using VisitExecute = std::function<Status(int op, const SymbolValues& symbols, int64_t instruction)>;

/// Walks the steps of a program in execution order with every symbol evaluated, loops counted out. What
/// `interpret` and every other executor runs on.
Status walk_program(const DeviceProgram& program, const LaunchValues& launch, const VisitExecute& execute);

/// Refuses, as a fault, an execute with more points of work than allowed. What every executor asks first.
Status check_points(const BoundOp& bound, int64_t allowed);

/// Runs one bound op.
Status interpret_op(const BoundOp& bound, CardMemory& memory);

}  // namespace spyre::exec
