#pragma once

#include <string>
#include <string_view>

#include "spyre/base/result.h"
#include "spyre/opspec/opspec.h"

/// The text form of kernels: `parse_kernel(to_text(k)) == k` for every kernel.
///
///     # Broadcast add, rows split over two cores.
///     kernel bias_add {
///       argument 0 { role=input dtype=float16 shape=[4, 128] device_size=[2, 4, 64] stride_map=[64, 128, 1]
///       }
///       ...
///       op add {
///         iteration_space={c0: (4, 2), c1: (128, 1)}
///         core_id_to_work_slice={c0: Mod(core_id, 2), c1: 0}
///         in X { device_size=[2, 4, 64] coords=[floor(c1/64), c0, Mod(c1, 64)] hbm=0 }
///         in b { device_size=[2, 64] coords=[floor(c1/64), Mod(c1, 64)] hbm=1 }
///         out Y { device_size=[2, 4, 64] coords=[floor(c1/64), c0, Mod(c1, 64)] hbm=2 }
///       }
///     }
///
/// Attributes may come in any order, each at most once; one that is left out has its default (format
/// SEN169_FP16, arrangement STANDARD, is_reduction False, empty lists). `loop 4 { ... }` repeats its body;
/// `loop s0 max=512 granularity=64 { ... }` runs s0 / 64 times. A dynamic extent is written by name and
/// bounded: `iteration_space={c0: (s0, 1)} symbolic_dim_bounds={s0: (512, 64)}`. `#` starts a comment.
///
/// An argument that is a view also has `stride=[...] offset=N storage=N`; a constant has its value,
/// `role=constant fill=(start, step)`.
namespace spyre {

std::string to_text(const Kernel& kernel);
std::string to_text(const OpSpec& op);

/// `origin` (a file name, say) starts the message of a failure, followed by the line.
Result<Kernel> parse_kernel(std::string_view text, std::string_view origin);
Result<OpSpec> parse_op(std::string_view text, std::string_view origin);

}  // namespace spyre
