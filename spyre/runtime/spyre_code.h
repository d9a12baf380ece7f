#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "spyre/arch/machine.h"
#include "spyre/base/json_fwd.h"
#include "spyre/base/result.h"
#include "spyre/base/units.h"

/// `spyrecode.json`, read: what loading a kernel takes, and the steps each launch goes through.
///
///     JobPreparationPlan   Allocate, InitTransfer...      one program region; what goes into it; once
///     JobExecPlan          ComputeOnHost   -> HostCompute   launch arguments become a blob in a host buffer
///                          DataTransfer    -> H2D, D2H      between a host buffer and the program region;
///                          D2H also
///                                                           from a launch tensor
///                          ComputeOnDevice -> Compute       the program at an offset of the region runs
///
/// In the file every number is a decimal string, and device pointers are addresses in the program segment;
/// here they are offsets into the program region. What a D2H reads may also lie in another segment: segment i
/// stands for launch tensor i. Host buffers are named there and numbered here.
namespace spyre {

/// Where one value of the correction blob comes from: `hcm.vdci.parameters`, in signature order.
struct ParameterSource {
  enum class Kind { kPool, kKernel, kDimension, kLoopDimension };
  Kind kind = Kind::kKernel;
  int64_t arg_index = -1;  ///< of the argument, or of the one whose shape has the extent
  int64_t dim_index = -1;  ///< of the extent in that shape
  std::string symbol;      ///< the extent's name, for messages
  int64_t granularity = 1, max_value = INT64_MAX;

  bool is_address() const { return kind == Kind::kPool || kind == Kind::kKernel; }
  friend bool operator==(const ParameterSource&, const ParameterSource&) = default;
};

/// Fills a host buffer from the launch arguments: one little-endian int64 per parameter, zeros behind.
struct HostCompute {
  int buffer = 0;
  std::optional<int> input;  ///< the buffer it reads; none: the launch arguments
  std::vector<int64_t> input_shape;
  /// None where the plan does not say: then the blob is the addresses of all launch arguments in order.
  std::optional<std::vector<ParameterSource>> parameters;
};

struct Transfer {
  bool to_host = false;
  int buffer = 0;
  std::optional<int> tensor;  ///< the launch tensor it reads; none: the program region
  Bytes offset;               ///< in that tensor or region
  Bytes size;
};

struct Compute {
  Bytes entry;  ///< offset of the program image in the region
  /// It leaves something in LX for a later Compute: no other launch may have the cores before that one ran.
  bool non_terminal = false;
};

/// Prep steps make the program ready; Dev steps run on the card.
enum class StepRole { kPrep, kDev };

struct JobStep {
  std::variant<HostCompute, Transfer, Compute> what;
  /// Steps wait for the one before. Always so today; kept because plans will want to overlap.
  bool pipeline_barrier = true;
  std::string name;  ///< what profiles call it: the command's own, or empty

  StepRole role() const;
  std::string_view type() const;  ///< HostCompute, H2D, D2H, Compute
};

struct InitTransfer {
  std::string file;  ///< beside spyrecode.json
  Bytes offset, size;
};

struct SpyreCode {
  Bytes allocation;  ///< of the program region
  std::vector<InitTransfer> init;
  std::vector<JobStep> steps;
  std::vector<Bytes> buffers;  ///< sizes of the host buffers
};

/// Reads the two plans. Refused, naming the field: a missing array or property, a number that is no decimal
/// string, an unknown command, a pointer outside the program region or not at a stick, a handle used before
/// or twice. Errors of JobExecPlan begin with `Failed to parse SpyreCode command:`.
///
/// The order: what a transfer to the card sends was computed or fetched before. A plan need not compute on
/// the card; in one that does, every Prep step and every non-terminal Compute has a Compute after it.
Result<SpyreCode> read_spyre_code(const Json& json, const std::string& file, const Machine& machine);

}  // namespace spyre
