#pragma once

#include <cstddef>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>

#include "spyre/base/result.h"
#include "spyre/device/execute.h"

namespace spyre {

/// Programs by the bytes of their image, so that what is loaded many times is decoded once: the same kernel
/// compiled again, prepared for another stream, or prepared on another card of the same machine.
///
/// The key is the image itself, not a digest: two programs are one only when every byte agrees. When the
/// limits are passed the least recently used program is forgotten; who still runs it keeps it.
///
/// Any thread; two that ask for the same new image decode it once, and one waits. The lock is not held while
/// decoding: other images stay reachable.
class ProgramCache {
 public:
  struct Limits {
    size_t programs = 1024;
    Bytes image_bytes = mebibytes(256);
  };
  struct Stats {
    int64_t hits = 0, misses = 0;
    size_t programs = 0;
  };

  explicit ProgramCache(const Machine& machine) : ProgramCache(machine, Limits()) {}
  ProgramCache(const Machine& machine, Limits limits) : machine_(machine), limits_(limits) {}

  /// The program of the image at the start of `memory`. An image that cannot be decoded is not kept; the
  /// errors are those of LoadedProgram::load.
  Result<LoadedProgramRef> get(std::span<const std::byte> memory);

  Stats stats() const;

 private:
  struct Slot {
    std::mutex mutex;  // held while decoding; taken without holding the cache's lock
    LoadedProgramRef program;
  };
  struct Entry {
    std::shared_ptr<Slot> slot;
    std::list<const std::string*>::iterator age;
  };

  std::shared_ptr<Slot> find_or_add(std::string image);
  void forget(const std::string& image, const Slot* slot);
  void shrink_locked();

  const Machine& machine_;
  const Limits limits_;
  mutable std::mutex mutex_;  // guards everything below; a leaf
  std::unordered_map<std::string, Entry> entries_;
  std::list<const std::string*> oldest_first_;  // keys of entries_
  int64_t image_bytes_ = 0;
  Stats stats_;
};

}  // namespace spyre
