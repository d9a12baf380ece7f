#include "spyre/runtime/transfer.h"

#include <gmock/gmock.h>

#include "spyre/runtime/metrics.h"
#include "spyre/runtime/runtime.h"
#include "spyre/runtime/test_support.h"

namespace spyre {
namespace {

using testing::HasSubstr;

/// Two toy cards behind strict fences.
class Transfer : public testing::Test {
 protected:
  Card& card(int index = 0) { return *runtime_.card(index).value(); }
  StreamRef stream(int index = 0) { return card(index).streams().default_stream(); }
  MemoryRef memory(int64_t bytes, int index = 0) { return card(index).allocate(Bytes(bytes)).value(); }

  std::vector<std::byte> content(const MemoryRef& of) {
    std::vector<std::byte> out(static_cast<size_t>(of->requested().count()));
    EXPECT_OK(copy_out(stream(of->device_index()), MemoryView::whole(of), out, Blocking::kYes));
    return out;
  }

 private:
  ScopedEnvironment two_cards_{"AIU_WORLD_SIZE", "2"};
  Runtime runtime_{toy_card(), Fence::kStrict};
};

TEST_F(Transfer, WritesOnlyTheBytesOfItsView) {
  const MemoryRef m = memory(391);
  ASSERT_OK(copy_in(stream(), MemoryView::whole(m), counting_up(391), Blocking::kYes));
  ASSERT_OK(copy_in(stream(), {m, Bytes(100), Bytes(3)}, std::vector(3, std::byte{255}), Blocking::kYes));
  auto expected = counting_up(391);
  std::fill_n(expected.begin() + 100, 3, std::byte{255});
  EXPECT_EQ(content(m), expected);
}

TEST_F(Transfer, QueuedCopiesRunInOrder) {
  const MemoryRef m = memory(1);
  std::vector<std::vector<std::byte>> values;
  for (int i = 0; i < 100; ++i) {
    values.push_back({static_cast<std::byte>(i)});
  }
  std::vector<std::vector<std::byte>> read(100, std::vector<std::byte>(1));
  for (size_t i = 0; i < 100; ++i) {
    ASSERT_OK(copy_in(stream(), MemoryView::whole(m), values[i], Blocking::kNo));
    ASSERT_OK(copy_out(stream(), MemoryView::whole(m), read[i], Blocking::kNo));
  }
  ASSERT_OK(stream()->synchronize());
  EXPECT_EQ(read, values);
}

TEST_F(Transfer, AQueuedCopyKeepsItsMemoryAliveAndNoLonger) {
  MemoryRef m = memory(128);
  const std::weak_ptr<Memory> watch = m;
  const auto sent = counting_up(128);
  Gate gate;
  ASSERT_OK(stream()->enqueue(gate.work()));
  ASSERT_OK(copy_in(stream(), MemoryView::whole(m), sent, Blocking::kNo));
  m.reset();
  EXPECT_FALSE(watch.expired());
  gate.open();
  ASSERT_OK(stream()->synchronize());
  EXPECT_TRUE(watch.expired());
}

TEST_F(Transfer, CopyingBeyondTheEndIsRefusedBeforeAnythingIsQueued) {
  const MemoryRef m = memory(391);  // rounded to 512, which does not help
  m->describe("int8[391]");
  for (const auto& [offset, size] : {std::pair{0, 392}, {391, 1}, {-1, 2}, {392, 0}}) {
    const Status status = copy_in(stream(), {m, Bytes(offset), Bytes(size)},
                                  std::vector<std::byte>(static_cast<size_t>(size)), Blocking::kNo);
    ASSERT_FALSE(status.ok()) << offset << " + " << size;
    EXPECT_EQ(status.error().kind, ErrorKind::kOutOfRange);
  }
  const Status status =
      copy_in(stream(), {m, Bytes(300), Bytes(92)}, std::vector<std::byte>(92), Blocking::kNo);
  EXPECT_EQ(status.error().to_string(),
            "copy beyond the end: 92 bytes at offset 300 of an allocation of 391 bytes\n"
            "  note the allocation is int8[391] on device 0");
  EXPECT_OK(stream()->synchronize());
}

TEST_F(Transfer, UnequalSizesAreRefused) {
  const MemoryRef m = memory(128);
  std::vector<std::byte> host(127);
  for (const Status& status : {copy_in(stream(), MemoryView::whole(m), host, Blocking::kYes),
                               copy_out(stream(), MemoryView::whole(m), host, Blocking::kYes)}) {
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().kind, ErrorKind::kInvalidArgument);
    EXPECT_EQ(status.error().message, "copy of unequal sizes: the device side has 128 bytes, the other 127");
  }
  EXPECT_EQ(
      copy_between(stream(), MemoryView::whole(m), {m, Bytes(0), Bytes(1)}, Blocking::kYes).error().kind,
      ErrorKind::kInvalidArgument);
}

TEST_F(Transfer, ReleasedMemoryIsUseAfterFree) {
  const MemoryRef m = memory(128);
  m->release();
  EXPECT_EQ(copy_in(stream(), MemoryView::whole(m), std::vector<std::byte>(128), Blocking::kYes).error().kind,
            ErrorKind::kUseAfterFree);
}

TEST_F(Transfer, MemoryReleasedWhileACopyIsQueuedPoisonsTheStream) {
  const MemoryRef m = memory(128);
  const std::vector<std::byte> host(128);
  Gate gate;
  ASSERT_OK(stream()->enqueue(gate.work()));
  ASSERT_OK(copy_in(stream(), MemoryView::whole(m), host, Blocking::kNo));
  m->release();
  gate.open();
  EXPECT_EQ(stream()->synchronize().error().kind, ErrorKind::kUseAfterFree);
}

TEST_F(Transfer, AStreamOfAnotherCardIsRefused) {
  const Status status =
      copy_in(stream(1), MemoryView::whole(memory(128)), std::vector<std::byte>(128), Blocking::kYes);
  EXPECT_EQ(status.error().message, "memory of device 0 cannot be copied on stream 0 of device 1");
}

TEST_F(Transfer, EmptyViewsNeedNothing) {
  EXPECT_OK(copy_in(stream(), MemoryView::whole(nullptr), {}, Blocking::kYes));
  EXPECT_EQ(transfer(
                stream(), {nullptr, Bytes(0), Bytes(1)}, TransferDirection::kToHost,
                [](auto) { return Status(); }, Blocking::kYes)
                .error()
                .kind,
            ErrorKind::kOutOfRange);
}

TEST_F(Transfer, ABodyThatFailsIsReportedAndNotCounted) {
  reset_metrics();
  const Status status = transfer(
      stream(), MemoryView::whole(memory(128)), TransferDirection::kToDevice,
      [](auto) { return Status(Error(ErrorKind::kUnsupported, "no such format")); }, Blocking::kYes);
  EXPECT_EQ(status.error().message, "no such format");
  EXPECT_EQ(metric(Metric::kTransfersToDevice), 0);
}

TEST_F(Transfer, CardToCardCopiesMoveEveryByte) {
  const MemoryRef here = memory(5000, 0), there = memory(5000, 1);
  ASSERT_OK(copy_in(stream(0), MemoryView::whole(here), counting_up(5000), Blocking::kYes));
  ASSERT_OK(copy_between(stream(0), MemoryView::whole(there), MemoryView::whole(here), Blocking::kYes));
  EXPECT_EQ(content(there), counting_up(5000));
}

TEST_F(Transfer, OverlappingViewsOfOneAllocationMoveAsIfThroughACopy) {
  const MemoryRef m = memory(10);
  ASSERT_OK(copy_in(stream(), MemoryView::whole(m), counting_up(10), Blocking::kYes));
  ASSERT_OK(copy_between(stream(), {m, Bytes(2), Bytes(8)}, {m, Bytes(0), Bytes(8)}, Blocking::kYes));
  auto expected = counting_up(10);
  std::copy_backward(expected.begin(), expected.begin() + 8, expected.end());
  EXPECT_EQ(content(m), expected);
}

TEST_F(Transfer, MetricsCountTransfersAndBytesEachWay) {
  const MemoryRef a = memory(300), b = memory(300, 1);
  reset_metrics();
  ASSERT_OK(copy_in(stream(), MemoryView::whole(a), counting_up(300), Blocking::kYes));
  ASSERT_OK(copy_between(stream(), MemoryView::whole(b), MemoryView::whole(a), Blocking::kYes));
  (void)content(b);
  (void)content(b);
  const auto metrics = metrics_snapshot();
  EXPECT_EQ(metrics.at("transfers_to_device"), 1);
  EXPECT_EQ(metrics.at("bytes_to_device"), 300);
  EXPECT_EQ(metrics.at("transfers_to_host"), 2);
  EXPECT_EQ(metrics.at("bytes_to_host"), 600);
  EXPECT_EQ(metrics.at("transfers_between"), 1);
  EXPECT_EQ(metrics.at("bytes_between"), 300);
  EXPECT_EQ(metrics.at("work_inline"), 4);
  EXPECT_EQ(metrics.count("unknown"), 0u) << "a counter has no name";
}

}  // namespace
}  // namespace spyre
