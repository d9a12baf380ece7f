#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "spyre/base/result.h"
#include "spyre/device/execute.h"
#include "spyre/runtime/activity_log.h"
#include "spyre/runtime/card.h"
#include "spyre/runtime/event.h"
#include "spyre/runtime/kernel_times.h"
#include "spyre/runtime/memory.h"
#include "spyre/runtime/pinned_buffer.h"
#include "spyre/runtime/spyre_code.h"

namespace spyre {

/// A kernel loaded onto one card: its program region, its steps, its host buffers. Made once by
/// `prepare_kernel`, launched any number of times by `launch` (launch.h), from any thread, on any stream of
/// the card.
///
///     program region   [ correction | program image ......... ]      MemoryKind::kProgram, one block
///                         ^ H2D, each launch    ^ Compute decodes it from here
///
/// The region and the buffers are shared by all launches of the plan, so launches of one plan never overlap,
/// whatever their streams; launches of different plans may. The region goes when the last reference goes;
/// queued launches hold one.
class JobPlan {
 public:
  /// Made by prepare_kernel only.
  struct Parts {
    Card* card = nullptr;
    SpyreCode code;
    std::vector<int> arg_order;          ///< arg_index of each launch tensor; empty: they count from 0
    std::map<int, MemoryRef> constants;  ///< by arg_index; the plan's own, no caller passes them
    MemoryRef memory;
    std::vector<PinnedBuffer> buffers;
    std::string kernel_name;
    std::shared_ptr<Event> ready;  ///< when the program region is filled
    /// Of each step that computes, from the image that was loaded. Null: other steps, images that cannot be decoded,
    /// and all where the card has no clock.
    std::vector<std::unique_ptr<KernelTimes>> times;
    KernelFactsRef facts;  ///< PrepareOptions::facts
  };
  explicit JobPlan(Parts parts);

  Card& card() const { return *parts_.card; }
  const std::vector<JobStep>& steps() const { return parts_.code.steps; }
  Bytes job_allocation_size() const { return parts_.code.allocation; }
  size_t pinned_buffers() const { return parts_.buffers.size(); }

  /// What profiles and faults call a step: its own name if the plan gives one, else `<kernel name>#<step>`.
  std::string step_name(size_t step) const;

  /// False when the stream that should have filled the program region failed before: such a plan never runs.
  bool can_load() const { return parts_.ready->reached().ok(); }

  /// Makes later work of a stream wait until the program region is filled; nothing to do once it is. The
  /// error of the stream that should have filled it, where that failed: such a plan never runs.
  Status block_until_loaded(const StreamRef& stream) const;

  /// What the last launch moved and computed, op by op; empty before the first, after one that failed, and
  /// while the card does not count. Takes the plan's lock: waits for a launch that runs.
  exec::RunCounts last_run_counts() const;

  /// The programs of the last launch, one per bundle; their operations are those of last_run_counts, in
  /// order. Empty before the first launch. For reports.
  std::vector<LoadedProgramRef> last_programs() const;

 private:
  friend class Launcher;

  Parts parts_;
  mutable std::mutex mutex_;               // held for the length of a launch; taken before the card's cores
  std::vector<LoadedProgramRef> decoded_;  // per step; null: the region changed since, or never decoded
  std::vector<Bytes> decoded_size_;        // bytes of the image behind decoded_
  exec::RunCounts last_counts_;
  std::vector<LoadedProgramRef> last_programs_;
};

using JobPlanRef = std::shared_ptr<JobPlan>;

struct PrepareOptions {
  StreamRef stream;         ///< orders the copy of the image; null: the card's default stream
  std::string kernel_name;  ///< for profiles and faults; empty: `<parent>/<directory>/bundle.mlir`
  KernelFactsRef facts;     ///< for profiles
};

/// Loads the kernel in a directory with `spyrecode.json` and its binaries: reads the plan, takes one program
/// region, queues the copies into it, makes the constants that `launch_spec.json` describes. Returns before
/// they are done; launches wait for them.
///
/// What can be seen from the files is refused here: kNotFound for a missing directory or file, spyre_code.h
/// for the plan, a binary of another size than the plan says, a constant that has no whole layout. Whether
/// the image is a program the card sees when it runs it.
Result<JobPlanRef> prepare_kernel(Card& card, const std::filesystem::path& directory,
                                  PrepareOptions options = {});

/// The same from files in memory, by their names in that directory.
Result<JobPlanRef> prepare_kernel(Card& card, const std::map<std::string, std::string>& files,
                                  PrepareOptions options);

}  // namespace spyre
