#pragma once

#include "spyre/base/result.h"

namespace spyre {

/// fork() copies memory but not threads, and a card's memory is not copied at all: a child made after the
/// parent started a runtime holds handles to a card it does not have, and mutexes nobody will unlock.
///
/// Such a child is *bad*: every use of the runtime answers kBadFork, and destroying inherited handles does
/// nothing. A child made before the runtime started is an ordinary process. A process that wants both uses
/// the `spawn` start method.

/// True in a child forked after `watch_for_forks`.
bool forked_after_start();

/// From now on children of this process are bad. Idempotent; called when a runtime starts.
void watch_for_forks();

/// Success, or kBadFork with what to do instead. Takes no lock.
Status check_process();

}  // namespace spyre
