#include "spyre/passes/divide/node_part.h"

namespace spyre {

DeviceNode part_of(const DeviceNode& node, const std::string& loop, int64_t begin, int64_t extent,
                   std::string_view suffix) {
  DeviceNode part = node;
  part.name += suffix;
  make_step_of(node, part);
  for (Loop& l : part.loops) {
    if (l.name == loop) l.extent = extent;
  }
  for_each_access(part.op, [&](Access& access) { access.index = shifted(access.index, loop, begin); });
  return part;
}

}  // namespace spyre
