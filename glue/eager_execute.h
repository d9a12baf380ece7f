#pragma once

#include <vector>

#include "glue/eager_cache.h"
#include "glue/eager_request.h"

namespace spyre::glue {

/// Runs a call as its plan says: queues the kernel and returns the operator's results. What the kernel could not write where
/// it belongs is copied there.
std::vector<at::Tensor> execute(const EagerPlan& plan, const EagerCall& call);

}  // namespace spyre::glue
