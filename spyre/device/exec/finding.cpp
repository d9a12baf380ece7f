#include "spyre/device/exec/finding.h"

#include <fmt/format.h>

namespace spyre::exec {

std::string_view to_string(Rule rule) {
  switch (rule) {
    case Rule::kUninitialised:
      return "uninitialised";
    case Rule::kPadding:
      return "padding";
    case Rule::kClobbered:
      return "clobbered";
    case Rule::kLostResult:
      return "lost-result";
    case Rule::kOutOfBounds:
      return "out-of-bounds";
    case Rule::kSharedStick:
      return "shared-stick";
    case Rule::kSpan:
      return "span";
    case Rule::kMisaligned:
      return "misaligned";
    case Rule::kPartialOverlap:
      return "partial-overlap";
    case Rule::kNotHeld:
      return "not-held";
    case Rule::kCoreStart:
      return "core-start";
    case Rule::kLayout:
      return "layout";
    case Rule::kFormat:
      return "format";
    case Rule::kReadOnly:
      return "read-only";
    case Rule::kNotWritten:
      return "not-written";
  }
  return "unknown";
}

std::string to_string(const Party& party) {
  if (party.launch == 0) {
    return fmt::format("the host ({})", party.op);
  }
  std::string text = fmt::format("launch {}, {} ({}), instruction {}, {}", party.launch, party.file, party.op,
                                 party.instruction, party.tensor);
  return party.core < 0 ? text : text + fmt::format(", core {}", party.core);
}

std::string to_string(const Finding& finding) {
  std::string text = fmt::format("{}: {}, {} [{:#x}, {:#x}): {}", to_string(finding.rule),
                                 to_string(finding.party), program::to_string(finding.range.memory),
                                 finding.range.begin, finding.range.end, finding.detail);
  if (finding.other) {
    text += "; the other party: " + to_string(*finding.other);
  }
  return finding.occurrences == 1 ? text : text + fmt::format(" ({} times)", finding.occurrences);
}

}  // namespace spyre::exec
