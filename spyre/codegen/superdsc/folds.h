#pragma once

#include "spyre/base/json.h"
#include "spyre/codegen/superdsc/plan.h"

/// How the coordinates of a tensor unfold, level by level from cores to lanes.
///
///     coordinate = sum over levels of alpha * index(level)
///
///     rows, 4 over 2 cores:            (2, x2)  (0, x1)  (0, x1)                    (1, x2)
///     columns, 128 in sticks of 64:    (128, x1) (0, x1) (0, x1)  (64, x2)          (1, x64)
///     columns folded to one stick:     (64, x1) (0, x1)  (0, x1)  (64, x1)          (0, x64)   all lanes
///     alike
///                                       core    corelet  row      sticks            lanes
namespace spyre::superdsc {

/// The `coordinates_` object of an allocate node.
Json coordinates_json(const SdscPlan& plan, const Tensor& tensor);

}  // namespace spyre::superdsc
