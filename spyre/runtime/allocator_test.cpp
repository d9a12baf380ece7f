#include "spyre/runtime/allocator.h"

#include <gmock/gmock.h>

#include <chrono>
#include <cstring>
#include <set>

#include "spyre/runtime/test_support.h"

namespace spyre {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::shared_ptr<Allocator> card_allocator(AllocatorOptions options = {}) {
  return std::make_shared<Allocator>(
      0, std::shared_ptr<Device>(std::move(make_memory_device(spyre_card())).value()), options);
}

int segment_of(const MemoryRef& memory, const Machine& machine) {
  return static_cast<int>(memory->address().value() / machine.segment_bytes.count());
}

TEST(Allocator, ZeroBytesNeverAllocate) {
  const auto allocator = toy_allocator();
  EXPECT_EQ(allocator->allocate(Bytes(0)).value(), nullptr);
  EXPECT_EQ(allocator->stats().allocation.allocated, 0);
}

TEST(Allocator, SizesAreRoundedToSticks) {
  const auto allocator = toy_allocator();
  const MemoryRef a = allocator->allocate(Bytes(800)).value();
  EXPECT_EQ(a->requested(), Bytes(800));
  EXPECT_EQ(a->rounded(), Bytes(896));
  const MemoryRef b = allocator->allocate(Bytes(1)).value();
  EXPECT_EQ(b->address().value() % 128, 0);
  EXPECT_EQ(allocator->stats().allocated_bytes.current, 896 + 128);
  EXPECT_EQ(allocator->stats().requested_bytes.current, 801);
}

TEST(Allocator, AnF16SquareOf64CostsExactly8192AndGivesThemBackAtOnce) {
  const auto allocator = toy_allocator();
  const int64_t before = allocator->stats().allocated_bytes.current;
  MemoryRef tensor = allocator->allocate(Bytes(64 * 64 * 2)).value();
  EXPECT_EQ(allocator->stats().allocated_bytes.current - before, 8192);
  tensor.reset();
  EXPECT_EQ(allocator->stats().allocated_bytes.current, before);
}

TEST(Allocator, ANegativeSizeIsRefused) {
  const auto refused = toy_allocator()->allocate(Bytes(-1));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().kind, ErrorKind::kInvalidArgument);
}

TEST(Allocator, ATokenIsNotTheAddressAndLeadsBackToItsBlock) {
  const auto allocator = toy_allocator();
  const MemoryRef a = allocator->allocate(Bytes(256)).value();
  const MemoryRef b = allocator->allocate(Bytes(256)).value();
  const auto* token = static_cast<const std::byte*>(b->token());
  EXPECT_EQ(token - static_cast<const std::byte*>(a->token()), 256);
  EXPECT_NE(reinterpret_cast<intptr_t>(token), b->address().value());
  EXPECT_EQ(allocator->find(token).value(), b);
  EXPECT_EQ(allocator->find(token + 255).value(), b);
}

TEST(Allocator, AFreedTokenIsUseAfterFreeAndAForeignPointerIsNotFound) {
  const auto allocator = toy_allocator();
  MemoryRef memory = allocator->allocate(Bytes(256)).value();
  const void* token = memory->token();
  memory.reset();
  EXPECT_EQ(allocator->find(token).error().kind, ErrorKind::kUseAfterFree);
  EXPECT_EQ(allocator->find(&token).error().kind, ErrorKind::kNotFound);
}

TEST(Allocator, ReleasedMemoryAnswersUseAfterFreeAndItsBlockIsFree) {
  const auto allocator = toy_allocator();
  const MemoryRef memory = allocator->allocate(Bytes(256)).value();
  memory->release();
  memory->release();  // harmless
  EXPECT_EQ(memory->open(Bytes(0), Bytes(1)).error().kind, ErrorKind::kUseAfterFree);
  EXPECT_EQ(allocator->stats().allocation.current, 0);
  EXPECT_EQ(allocator->allocate(Bytes(256)).value()->address(), memory->address());
}

TEST(Allocator, ABlockReleasedWhileInUseIsFreeOnlyAfterwards) {
  const auto allocator = toy_allocator();
  const MemoryRef memory = allocator->allocate(Bytes(256)).value();
  {
    const auto access = memory->open(Bytes(0), Bytes(256));
    ASSERT_OK(access);
    memory->release();
    access.value().bytes()[0] = std::byte{1};  // still ours
    EXPECT_EQ(allocator->stats().allocation.current, 1);
  }
  EXPECT_EQ(allocator->stats().allocation.current, 0);
}

TEST(Allocator, WindowsShutBetweenAccesses) {
  const MemoryRef memory = toy_allocator()->allocate(Bytes(256)).value();
  memory->open(Bytes(0), Bytes(256)).value().bytes()[7] = std::byte{9};
  EXPECT_EQ(memory->open(Bytes(7), Bytes(1)).value().bytes()[0], std::byte{9});
}

// --- placement --------------------------------------------------------------------------------------------

TEST(Allocator, PfFillsSevenSegmentsWithTensorsAndKeepsTheLastForPrograms) {
  const auto allocator = toy_allocator({.mode = CardMode::kPf});
  std::vector<MemoryRef> tensors;
  std::set<int> segments;
  for (int i = 0; i < 7; ++i) {
    tensors.push_back(allocator->allocate(mebibytes(1)).value());
    segments.insert(segment_of(tensors.back(), toy_card()));
  }
  EXPECT_THAT(segments, ElementsAre(0, 1, 2, 3, 4, 5, 6));
  EXPECT_FALSE(allocator->allocate(Bytes(1)).ok());
  const MemoryRef program = allocator->allocate(Bytes(128), {.kind = MemoryKind::kProgram}).value();
  EXPECT_EQ(program->address(), DeviceAddress(0) + toy_card().program_base());
  EXPECT_EQ(allocator->info().programs, Bytes(128));
}

TEST(Allocator, TheProgramWindowOfTheCardStartsAt1C00000000) {
  const auto allocator = card_allocator();
  EXPECT_EQ(allocator->allocate(Bytes(128), {.kind = MemoryKind::kProgram}).value()->address(),
            DeviceAddress(0x1C'0000'0000));
  EXPECT_EQ(allocator->info().total, gibibytes(7 * 16));
}

TEST(Allocator, VfSpreadsTensorsOverWindowsOfTwelveSixteenths) {
  // Equal free bytes: lowest window first. Then always the roomiest.
  const auto allocator = card_allocator({.mode = CardMode::kVf});
  EXPECT_EQ(allocator->info().total, gibibytes(7 * 12));
  std::vector<MemoryRef> tensors;
  std::vector<int> segments;
  for (int i = 0; i < 8; ++i) {
    tensors.push_back(allocator->allocate(gibibytes(1)).value());
    segments.push_back(segment_of(tensors.back(), spyre_card()));
  }
  EXPECT_THAT(segments, ElementsAre(0, 1, 2, 3, 4, 5, 6, 0));
  EXPECT_EQ(tensors[7]->address(), DeviceAddress(0) + gibibytes(1));
  EXPECT_OK(allocator->allocate(gibibytes(11)));
  EXPECT_FALSE(allocator->allocate(gibibytes(12)).ok());
}

TEST(Allocator, ALimitOnCardMemoryLeavesOutTheHighestWindows) {
  const auto allocator = toy_allocator({.tensor_memory = kibibytes(1536)});
  EXPECT_EQ(allocator->info().total, kibibytes(1536));
  const MemoryRef half = allocator->allocate(kibibytes(512)).value();
  EXPECT_EQ(segment_of(half, toy_card()), 1);  // best fit: the short window first
  EXPECT_OK(allocator->allocate(mebibytes(1)));
}

TEST(Allocator, ATensorOfSixteenGibibytesComesAndGoesInMilliseconds) {
  const auto allocator = card_allocator();
  const auto begin = std::chrono::steady_clock::now();
  MemoryRef memory = allocator->allocate(gibibytes(16)).value();
  memory.reset();
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
  EXPECT_LT(took.count(), 50.0);
  EXPECT_FALSE(allocator->allocate(gibibytes(16) + Bytes(1)).ok());
}

TEST(Allocator, FreeingALargeBlockGivesItsPagesBackToTheHost) {
  auto hbm_device = std::shared_ptr<Device>(std::move(make_memory_device(spyre_card())).value());
  const auto allocator = std::make_shared<Allocator>(0, hbm_device, AllocatorOptions{});
  MemoryRef memory = allocator->allocate(mebibytes(64)).value();
  const DeviceAddress address = memory->address();
  std::memset(memory->open(Bytes(0), mebibytes(64)).value().bytes().data(), 1, 64 << 20);
  memory.reset();
  // Pages that were given back read as zero; kept ones would still read as one.
  EXPECT_EQ(hbm_device->open({address, Bytes(1)}).value().bytes()[0], std::byte{0});
  EXPECT_EQ(hbm_device->open({address + mebibytes(64) + Bytes(-1), Bytes(1)}).value().bytes()[0],
            std::byte{0});
}

// --- statistics -------------------------------------------------------------------------------------------

TEST(AllocatorStats, FollowPyTorchsKeys) {
  const auto allocator = toy_allocator();
  MemoryRef a = allocator->allocate(Bytes(100)).value();
  MemoryRef b = allocator->allocate(Bytes(128)).value();
  MemoryRef c = allocator->allocate(Bytes(128)).value();
  b.reset();  // a hole between a and c
  const auto stats = allocator->stats().by_name();
  EXPECT_EQ(stats.at("allocation.all.current"), 2);
  EXPECT_EQ(stats.at("allocation.all.peak"), 3);
  EXPECT_EQ(stats.at("allocation.all.allocated"), 3);
  EXPECT_EQ(stats.at("allocation.all.freed"), 1);
  EXPECT_EQ(stats.at("allocated_bytes.all.current"), 256);
  EXPECT_EQ(stats.at("allocated_bytes.all.peak"), 384);
  EXPECT_EQ(stats.at("requested_bytes.all.current"), 228);
  EXPECT_EQ(stats.at("reserved_bytes.all.current"), 256);
  EXPECT_EQ(stats.at("active_bytes.all.current"), 256);
  EXPECT_EQ(stats.at("active.all.current"), 2);
  EXPECT_EQ(stats.at("segment.all.current"), 1);
  EXPECT_EQ(stats.at("inactive_split.all.current"), 1);
  EXPECT_EQ(stats.at("inactive_split_bytes.all.current"), 128);
  EXPECT_EQ(stats.at("num_ooms"), 0);
  EXPECT_EQ(stats.size(), 9u * 4 + 2);
}

TEST(AllocatorStats, PeaksAndSumsStartAgainWhenReset) {
  const auto allocator = toy_allocator();
  const MemoryRef kept = allocator->allocate(Bytes(128)).value();
  (void)allocator->allocate(Bytes(1024));
  (void)allocator->allocate(mebibytes(2));
  EXPECT_EQ(allocator->stats().allocated_bytes.peak, 128 + 1024);
  EXPECT_EQ(allocator->stats().num_ooms, 1);
  allocator->reset_peak_stats();
  EXPECT_EQ(allocator->stats().allocated_bytes.peak, 128);
  EXPECT_EQ(allocator->stats().allocated_bytes.allocated, 128 + 1024);
  allocator->reset_accumulated_stats();
  EXPECT_EQ(allocator->stats().allocated_bytes.allocated, 0);
  EXPECT_EQ(allocator->stats().allocated_bytes.current, 128);
  EXPECT_EQ(allocator->stats().num_ooms, 0);
}

TEST(AllocatorStats, FragmentationIsZeroOnAnEmptyCardAndGrowsWithHoles) {
  const auto allocator = toy_allocator({.tensor_memory = Bytes(4 * 128)});
  EXPECT_EQ(allocator->info().fragmentation, 0);
  std::vector<MemoryRef> sticks;
  for (int i = 0; i < 4; ++i) {
    sticks.push_back(allocator->allocate(Bytes(128)).value());
  }
  EXPECT_EQ(allocator->info().fragmentation, 0);  // nothing free, nothing fragmented
  sticks[0].reset();
  sticks[2].reset();  // |.#.#|: two sticks free, one in a piece
  EXPECT_EQ(allocator->info().free, Bytes(256));
  EXPECT_EQ(allocator->info().largest_free, Bytes(128));
  EXPECT_DOUBLE_EQ(allocator->info().fragmentation, 0.5);
}

TEST(AllocatorStats, ASnapshotShowsEveryByteOfASegmentInUse) {
  const auto allocator = toy_allocator();
  const auto frames = std::make_shared<int>(7);
  MemoryRef gone = allocator->allocate(Bytes(128)).value();
  const MemoryRef kept =
      allocator->allocate(Bytes(200), {.description = "int8[200]", .frames = frames}).value();
  gone.reset();
  const auto segments = allocator->snapshot();
  ASSERT_EQ(segments.size(), 1u);
  EXPECT_EQ(segments[0].range.size, mebibytes(1));
  EXPECT_EQ(segments[0].allocated, Bytes(256));
  EXPECT_EQ(segments[0].requested, Bytes(200));
  ASSERT_EQ(segments[0].blocks.size(), 3u);  // |.##......|
  EXPECT_FALSE(segments[0].blocks[0].live);
  EXPECT_EQ(segments[0].blocks[1].description, "int8[200]");
  EXPECT_EQ(segments[0].blocks[1].frames, frames);
  EXPECT_EQ(segments[0].blocks[2].range.end(), segments[0].range.end());
}

TEST(AllocatorStats, HistoryKeepsTheLastEventsAndNothingWhenOff) {
  const auto allocator = toy_allocator();
  (void)allocator->allocate(Bytes(128));
  EXPECT_TRUE(allocator->history().empty());
  allocator->record_history(3);
  (void)allocator->allocate(Bytes(256));    // alloc, free
  (void)allocator->allocate(gibibytes(1));  // out of memory
  (void)allocator->allocate(Bytes(384));    // alloc, free
  const auto history = allocator->history();
  ASSERT_EQ(history.size(), 3u);
  using Action = HistoryEntry::Action;
  EXPECT_EQ(history[0].action, Action::kOutOfMemory);
  EXPECT_EQ(history[1].action, Action::kAlloc);
  EXPECT_EQ(history[2].action, Action::kFree);
  EXPECT_EQ(history[2].size, Bytes(384));
  EXPECT_LE(history[1].time_us, history[2].time_us);
  allocator->record_history(0);
  EXPECT_TRUE(allocator->history().empty());
}

// --- out of memory ----------------------------------------------------------------------------------------

TEST(OutOfMemory, NamesEveryFigureTheTopTensorsAndTheSettingToChange) {
  const auto allocator = toy_allocator({.tensor_memory = kibibytes(64)});
  const MemoryRef program = allocator->allocate(kibibytes(2), {.kind = MemoryKind::kProgram}).value();
  const MemoryRef small = allocator->allocate(kibibytes(1), {.description = "float16[512]"}).value();
  const MemoryRef large = allocator->allocate(kibibytes(48)).value();
  large->describe("float16[96, 256]");
  const auto refused = allocator->allocate(kibibytes(32), {.description = "float32[8192]"});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().kind, ErrorKind::kOutOfMemory);
  EXPECT_EQ(refused.error().to_string(),
            "out of memory on device 0: 32.00 KiB requested, 15.00 KiB free of 64.00 KiB, "
            "largest free block 15.00 KiB\n"
            "  note the request is for float32[8192]\n"
            "  note 49.00 KiB allocated in 2 tensors, 2.00 KiB in programs, fragmentation 0.00\n"
            "  note live: 48.00 KiB  float16[96, 256]\n"
            "  note live: 1.00 KiB  float16[512]\n"
            "  try  smaller batches, freeing the tensors above, or a larger SPYRE_CARD_MEMORY_GIB");
}

TEST(OutOfMemory, SaysWhenARequestCanNeverFitInOneSegment) {
  const auto refused = toy_allocator()->allocate(mebibytes(2));
  EXPECT_THAT(refused.error().to_string(),
              HasSubstr("note one allocation lies in one segment: at most 1.00 MiB"));
  EXPECT_EQ(toy_allocator()->allocate(Bytes(INT64_MAX)).error().kind, ErrorKind::kOutOfMemory);
}

TEST(OutOfMemory, OfProgramsSpeaksOfPrograms) {
  const auto refused = toy_allocator()->allocate(mebibytes(2), {.kind = MemoryKind::kProgram});
  EXPECT_THAT(refused.error().message,
              HasSubstr("2.00 MiB for a program requested, 1.00 MiB free of 1.00 MiB for programs"));
}

TEST(OutOfMemory, ThePressureCallbackMayFreeAndTheRequestIsTriedOnceMore) {
  const auto allocator = toy_allocator({.tensor_memory = kibibytes(64)});
  MemoryRef garbage = allocator->allocate(kibibytes(64)).value();
  Bytes asked;
  allocator->set_pressure_callback([&](Bytes needed) {
    asked = needed;
    garbage.reset();  // takes the allocator's lock: it must not be held
  });
  EXPECT_OK(allocator->allocate(kibibytes(32) + Bytes(-1)));
  EXPECT_EQ(asked, kibibytes(32));
  EXPECT_EQ(allocator->stats().num_alloc_retries, 1);
  EXPECT_EQ(allocator->stats().num_ooms, 0);
}

TEST(OutOfMemory, ACallbackThatFreesNothingIsAskedOnce) {
  const auto allocator = toy_allocator();
  int calls = 0;
  allocator->set_pressure_callback([&](Bytes) {
    ++calls;
    EXPECT_FALSE(allocator->allocate(mebibytes(3)).ok());  // not a reason to call again
  });
  EXPECT_FALSE(allocator->allocate(mebibytes(2)).ok());
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace spyre
