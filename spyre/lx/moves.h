#pragma once

#include <cstdint>
#include <initializer_list>

namespace spyre::lx {

/// What a planner may do besides leaving a buffer where it is made. Each can be forbidden by itself: a test shows that
/// results stay the same without it, a comparison what it is worth.
enum class Move : uint8_t {
  kTakeOverSlot,  ///< a result takes over the slot of an operand that dies there
  kCopyIn,        ///< an input that is read several times is copied into LX
  kCopyOut,       ///< a result that is read again is made in LX and copied to device memory once
  kShuffle,       ///< readers divided otherwise than the writer are served over the ring
  kEvict,         ///< a buffer leaves LX in an idle gap and is fetched again
  /// A buffer stays in LX from one bundle to the next (cut_bundles.h). Without it whoever has the card in between may
  /// wipe LX, and only device memory carries anything across.
  kCrossBundles,
};

/// The moves that are allowed.
///
///     MoveSet::all().without({Move::kEvict, Move::kShuffle})
class MoveSet {
 public:
  static constexpr MoveSet all() { return MoveSet(0x3f); }
  static constexpr MoveSet none() { return MoveSet(0); }

  constexpr bool allows(Move move) const { return (bits_ & bit(move)) != 0; }
  constexpr MoveSet with(std::initializer_list<Move> moves) const { return MoveSet(bits_ | bits(moves)); }
  constexpr MoveSet without(std::initializer_list<Move> moves) const {
    return MoveSet(bits_ & static_cast<uint8_t>(~bits(moves)));
  }
  /// Allows or forbids one of them, for a setting that says which.
  constexpr MoveSet where(Move move, bool allowed) const { return allowed ? with({move}) : without({move}); }

  friend bool operator==(const MoveSet&, const MoveSet&) = default;

 private:
  explicit constexpr MoveSet(int bits) : bits_(static_cast<uint8_t>(bits)) {}

  static constexpr uint8_t bit(Move move) { return static_cast<uint8_t>(1 << static_cast<int>(move)); }
  static constexpr uint8_t bits(std::initializer_list<Move> moves) {
    uint8_t all = 0;
    for (const Move move : moves) all = static_cast<uint8_t>(all | bit(move));
    return all;
  }

  uint8_t bits_;
};

}  // namespace spyre::lx
