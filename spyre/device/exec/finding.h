#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "spyre/program/device_program.h"

/// What the checker reports: plain data, so that a tool can sort it, a test can compare it, a person can read
/// `to_string`.
namespace spyre::exec {

/// The rules a program must keep at run time. Each is something the executors let pass because a card would.
enum class Rule : uint8_t {
  kUninitialised,   ///< reads sticks that nobody wrote
  kPadding,         ///< values beyond the logical extent reach a result
  kClobbered,       ///< reads a buffer that another one was partly written over
  kLostResult,      ///< writes over a result that nobody has read
  kOutOfBounds,     ///< leaves its allocation, the scratchpad or the address space
  kSharedStick,     ///< two cores write one stick, and share no reduction
  kSpan,            ///< a core reaches further than it can
  kMisaligned,      ///< does not start on a stick
  kPartialOverlap,  ///< the result lies on an input, but not exactly, or the op cannot work in place
  kNotHeld,         ///< reads from its LX what another core holds
  kCoreStart,       ///< a core starts where its slice does not
  kLayout,          ///< reads or writes a buffer with other strides than it has
  kFormat,          ///< reads a buffer as another number format than it holds
  kReadOnly,        ///< writes an argument that is only an input
  kNotWritten,      ///< an output argument that the launch did not write whole
};
std::string_view to_string(Rule rule);

/// Who did it: one tensor of one execute on one core, or the host.
struct Party {
  int64_t launch = 0;       ///< launches are counted from 1; 0: the host
  int64_t instruction = 0;  ///< executes before it in its launch
  std::string file, op;     ///< "sdsc_0.json", "add"; for the host what was said to it
  std::string tensor;
  int core = -1;  ///< id; -1 where it is not one core's doing

  friend bool operator==(const Party&, const Party&) = default;
};
std::string to_string(const Party& party);

/// Bytes [begin, end) of device memory or of the scratchpad of the party's core.
struct AddressRange {
  program::Residence memory = program::Residence::kHbm;
  int64_t begin = 0, end = 0;

  friend bool operator==(const AddressRange&, const AddressRange&) = default;
};

struct Finding {
  Rule rule = Rule::kUninitialised;
  Party party;
  AddressRange range;
  std::optional<Party> other;  ///< who wrote, owns or holds it, where there is one
  std::string detail;
  /// How often the same rule was broken by the same tensor of the same op: by other cores, in other rounds of
  /// a loop. Only the first time is reported.
  int64_t occurrences = 1;

  friend bool operator==(const Finding&, const Finding&) = default;
};

/// "uninitialised: sdsc_1.json (exp), instruction 1, Tensor0, core 0, LX [0x0, 0x200): ...", one line.
std::string to_string(const Finding& finding);

}  // namespace spyre::exec
