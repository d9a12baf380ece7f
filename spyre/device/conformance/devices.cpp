// The devices of this tree, and what each cannot do.

#include "spyre/device/conformance/conformance.h"

namespace spyre {
namespace {

SPYRE_DEVICE(memory, [](const Machine& machine) { return make_memory_device(machine); }, {});

SPYRE_DEVICE(fenced_memory,
             [](const Machine& machine) { return make_memory_device(machine, Fence::kStrict); }, {});

SPYRE_DEVICE(null, make_null_device,
             {{"WhatTheHostWritesIsReadBack", "stores nothing by design"},
              {"TwoWindowsOnOneRangeSeeTheSameBytes", "stores nothing by design"},
              {"BytesAtBothEndsOfEverySegmentAreDistinct", "stores nothing by design"},
              {"DiscardKeepsTheNeighbours", "stores nothing by design"},
              {"AProgramComputesInTheMemoryMappedForIt", "computes nothing by design"},
              {"AProgramOutsideItsMemoryFaultsAndTheCardLivesOn", "computes nothing by design"},
              {"ScratchpadsKeepWhatAProgramLeavesUntilTheyAreCleared", "computes nothing by design"}});

}  // namespace
}  // namespace spyre
