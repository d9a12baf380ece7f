#include "spyre/lx/moves.h"

#include <gtest/gtest.h>

namespace spyre::lx {
namespace {

constexpr Move kMoves[] = {Move::kTakeOverSlot, Move::kCopyIn, Move::kCopyOut,
                           Move::kShuffle,      Move::kEvict,  Move::kCrossBundles};

TEST(MoveSet, AllAllowsEachAndNoneNothing) {
  for (const Move move : kMoves) {
    EXPECT_TRUE(MoveSet::all().allows(move));
    EXPECT_FALSE(MoveSet::none().allows(move));
  }
}

TEST(MoveSet, OneMoveIsForbiddenByItself) {
  for (const Move forbidden : kMoves) {
    const MoveSet moves = MoveSet::all().without({forbidden});
    for (const Move move : kMoves) EXPECT_EQ(moves.allows(move), move != forbidden);
    EXPECT_EQ(moves.with({forbidden}), MoveSet::all());
  }
}

TEST(MoveSet, ASettingSaysWhich) {
  EXPECT_EQ(MoveSet::all().where(Move::kEvict, false), MoveSet::all().without({Move::kEvict}));
  EXPECT_EQ(MoveSet::none().where(Move::kEvict, true), MoveSet::none().with({Move::kEvict}));
  EXPECT_EQ(MoveSet::all().where(Move::kEvict, true), MoveSet::all());
}

}  // namespace
}  // namespace spyre::lx
