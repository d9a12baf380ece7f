#include "glue/precompiled.h"

#include <c10/util/StringUtil.h>

#include "glue/error.h"
#include "spyre/base/settings.h"
#include "spyre/runtime/metrics.h"

namespace spyre::glue {
namespace {

constexpr const char* kSetting = "SPYRE_REQUIRE_PRECOMPILED";

Error not_precompiled(const Graph& graph, Compiles what, const std::string& setting) {
  std::vector<std::string> inputs;
  for (const Buffer& buffer : graph.buffers) {
    if (buffer.is_input) {
      inputs.push_back(
          c10::str(buffer.name, " ", to_string(buffer.dtype), "[", c10::Join(", ", buffer.size), "]"));
    }
  }
  const bool eager = what == Compiles::kEagerOperator;
  return Error(ErrorKind::kInvalidArgument,
               c10::str(kSetting, "=", setting, ": ", eager ? "the eager operator '" : "the graph '",
                        graph.name, "' would be compiled for ", c10::Join(", ", inputs)))
      .try_instead(eager ? c10::str(kSetting, "=1, which lets eager operators be compiled")
                         : "torch_spyre.load of a package that was saved after a call with these shapes, or "
                           "without the setting");
}

}  // namespace

void note_compilation(const Graph& graph, Compiles what) {
  static const std::string setting = unwrap(read_string(kSetting));
  if (setting == "all" || (setting == "1" && what == Compiles::kProgram)) {
    raise(not_precompiled(graph, what, setting));
  }
  if (what == Compiles::kProgram) count(Metric::kGraphsCompiled);
}

}  // namespace spyre::glue
