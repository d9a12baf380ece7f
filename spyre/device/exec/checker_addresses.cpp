// The checker's rules about addresses: alignment, starts of cores, bounds, span, what the launch says.

#include <fmt/format.h>

#include <algorithm>

#include "spyre/device/exec/checker.h"
#include "spyre/device/exec/checker_parts.h"

namespace spyre::exec {

void Checker::check_starts(const BoundOp& bound, int tensor) {
  const Tensor& t = bound.tensors[tensor];
  const int64_t base =
      bound.start[tensor].empty() ? 0 : bound.start[tensor][0] - slice_offset(bound, tensor, 0);
  for (int core = 0; core < core_count(bound); ++core) {
    const int64_t start = bound.start[tensor][core];
    const StickRun at{start / kStick, 1};
    if (start % start_alignment(t) != 0) {
      report(Rule::kMisaligned, bound, tensor, core, at,
             fmt::format("starts at {:#x}, allowed: a multiple of {}", start, start_alignment(t)));
    }
    const int64_t expected = base + slice_offset(bound, tensor, core);
    if (t.residence == Residence::kHbm && start != expected) {
      report(Rule::kCoreStart, bound, tensor, core, at,
             fmt::format("starts at {:#x}; its slice begins at {:#x}, seen from core {}", start, expected,
                         bound.op->cores[0].core),
             party(bound, tensor, 0));
    }
  }
}

/// Whether the sticks are in memory at all.
bool Checker::check_place(const BoundOp& bound, int tensor, int core, const Footprint& sticks) {
  const Tensor& t = bound.tensors[tensor];
  const bool lx = t.residence == Residence::kLx;
  const int64_t capacity = (lx ? machine_.lx_per_core : machine_.address_space()).count();
  const StickRun hull = hull_of(sticks);
  if (hull.first < 0 || hull.end() > capacity / kStick) {
    report(Rule::kOutOfBounds, bound, tensor, core, hull,
           fmt::format("leaves the {} of {} bytes", lx ? "scratchpad" : "address space", capacity));
    return false;
  }
  const int64_t begin = hull.first * kStick, end = hull.end() * kStick;
  if (!lx && end - begin > machine_.span_limit.count() && !t.through) {
    report(Rule::kSpan, bound, tensor, core, hull,
           fmt::format("spans {} bytes, allowed: {}", end - begin, machine_.span_limit.count()));
  }
  if (lx || (regions_.empty() && allocations_.empty())) {
    return true;
  }
  const Region* region = region_of(begin);
  if (region == nullptr) {
    report(Rule::kOutOfBounds, bound, tensor, core, hull, "is in no argument, pool or allocation");
  } else if (end > region->end) {
    report(Rule::kOutOfBounds, bound, tensor, core, hull,
           fmt::format("leaves {}, which is [{:#x}, {:#x})", region->name, region->begin, region->end));
  }
  return true;
}

void Checker::check_against_region(const BoundOp& bound, int tensor) {
  const Tensor& t = bound.tensors[tensor];
  if (t.residence == Residence::kLx || bound.start[tensor].empty()) {
    return;
  }
  const Region* region = region_of(bound.start[tensor][0]);
  if (region == nullptr || region->arg == nullptr) {
    return;
  }
  const StickRun at{region->begin / kStick, (region->end - region->begin) / kStick};
  const LaunchArg& arg = *region->arg;
  if (tensor == bound.op->output && (arg.role == "input" || arg.is_constant())) {
    report(Rule::kReadOnly, bound, tensor, -1, at,
           fmt::format("writes {}, which the launch specification calls {}", region->name,
                       arg.is_constant() ? "a constant" : "an input"));
  }
  if (is_plain(t) && !views(shape_of(bound, tensor), shape_of(arg, region->begin))) {
    report(Rule::kLayout, bound, tensor, -1, at,
           fmt::format("steps through {} in another way than its device_size says", region->name));
  }
  const bool moves_bits = bound.op->info->family == OpFamily::kCopy;
  if (arg.device_format && *arg.device_format != t.format && !moves_bits) {
    report(Rule::kFormat, bound, tensor, -1, at,
           fmt::format("is {}, but {} holds {}", to_string(t.format), region->name,
                       to_string(*arg.device_format)));
  }
}

}  // namespace spyre::exec
