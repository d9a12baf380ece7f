#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "spyre/base/result.h"
#include "spyre/base/units.h"
#include "spyre/device/address.h"
#include "spyre/device/host_window.h"

namespace spyre {

class Allocator;

/// What a piece of device memory is for. Programs live in a segment of their own.
enum class MemoryKind { kTensor, kProgram };

/// One allocation on one card. The block goes back to its allocator when the last reference goes, or earlier
/// by `release`.
///
/// No member gives away a host pointer to device bytes: `token()` may be compared, offset and mapped back,
/// and faults when dereferenced; the bytes themselves are reached through `transfer` (transfer.h).
///
/// Harmless after the runtime is gone, in any order: the bookkeeping lives as long as its last block. Zero
/// bytes are never allocated: the allocator answers such a request with a null MemoryRef.
class Memory {
 public:
  /// Made by Allocator only; the argument says so.
  struct FromAllocator {
    std::shared_ptr<Allocator> allocator;
    MemoryKind kind;
    Bytes requested, rounded;
    DeviceAddress address;
    const void* token;
    int device_index;
  };
  explicit Memory(FromAllocator made) : made_(std::move(made)) {}
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  int device_index() const { return made_.device_index; }
  MemoryKind kind() const { return made_.kind; }
  Bytes requested() const { return made_.requested; }  ///< what was asked for: the bound of every copy
  Bytes rounded() const { return made_.rounded; }      ///< what it costs: whole sticks of 128 bytes
  DeviceAddress address() const { return made_.address; }
  const void* token() const { return made_.token; }

  /// What an out-of-memory report calls this block, say `float16[1024, 256]`. May change at any time.
  void describe(std::string text);
  std::string description() const;

  /// Gives the block back now, although references remain: every later use answers kUseAfterFree. Work that
  /// is reading or writing the block at this moment finishes first; the block is free after that.
  void release();
  bool released() const;

  /// For work already in its place on a stream; everyone else uses `transfer`, which puts it there.
  ///
  /// The bytes [offset, offset + size) while the access lives; the block cannot go back to the allocator
  /// meanwhile. kOutOfRange beyond `requested()`, kUseAfterFree once released. Who holds an access holds a
  /// reference too.
  class Access {
   public:
    Access(Access&& other) noexcept = default;
    Access& operator=(Access&&) = delete;
    ~Access();
    std::span<std::byte> bytes() const { return window_.bytes(); }

   private:
    friend class Memory;
    Access(Memory* memory, HostWindow window) : memory_(memory), window_(std::move(window)) {}
    struct Forget {
      void operator()(Memory*) const {}
    };
    std::unique_ptr<Memory, Forget> memory_;  // null once moved from
    HostWindow window_;
  };
  Result<Access> open(Bytes offset, Bytes size);

  /// The check `open` starts with, for callers that want to refuse before they queue.
  Status check_range(Bytes offset, Bytes size) const;

 private:
  bool pin();
  void unpin();
  void give_back();
  Error use_after_free() const;

  FromAllocator made_;
  // Bit 0: released. The rest: twice the number of open accesses.
  std::atomic<int64_t> state_ = 0;
};

using MemoryRef = std::shared_ptr<Memory>;

}  // namespace spyre
