#pragma once

#include <cstdint>
#include <functional>

namespace spyre {

/// Runs `body(begin, end)` over pieces of [0, count) on the process-wide workers and on the calling thread,
/// and returns when all are done. Pieces are never smaller than `grain`, except the last. How the range is
/// cut never depends on timing, so work that is a function of (begin, end) alone gives the same answer every
/// time.
///
/// Nested calls run on the calling thread alone. An exception thrown by `body` is rethrown here, once.
void parallel_for(int64_t count, int64_t grain, const std::function<void(int64_t begin, int64_t end)>& body);

/// How many threads `parallel_for` uses, the caller included. Starts as the number of CPUs this process may
/// use.
int parallel_threads();

/// Changes it; takes effect with the next `parallel_for`. At least 1.
void set_parallel_threads(int threads);

}  // namespace spyre
