#pragma once

#include <array>
#include <mutex>
#include <optional>

#include "spyre/cost/rates.h"

namespace spyre {

/// What work of a card needs besides its place on a stream. There is one of each on a card, and it serves one piece
/// of work at a time.
enum class Engine {
  kCores,     ///< all cores together run one program
  kToDevice,  ///< copies from the host; and fills and copies within the card
  kToHost,
};

/// [begin, end) in simulated time.
struct TimeSpan {
  Nanos begin, end;
  Nanos length() const { return end - begin; }
};

/// Simulated time of one card: when the work given to its streams would run on the hardware.
///
///     thread     |launch a|launch b|
///     stream 1            |   kernel a   |
///     stream 2   |  H2D  |               | kernel b |       the cores are taken until a ends
///
/// Every stream has a time of its own, the end of all it was given so far; work begins when its stream and its engine
/// are free. The clocks of all cards begin at 0 together.
///
/// *Decided when work is given.* What came before and how long the work takes is all that counts; when the emulator
/// gets to run it does not. So simulated times are the same in every run of a program, whatever its threads do; where
/// two threads share a card, the order in which they give work counts (docs/adr/0065-simulated-time.md).
///
/// *The host* has a clock, too, one for each thread (`thread_time`). It knows what a launch costs, and a thread that
/// waited for something is where that ended. All else that the host does takes no time: no stream is idle because
/// Python was slow. What a thread gives begins no earlier than the thread is.
///
/// Any thread; the lock inside is a leaf.
class DeviceClock {
 public:
  static constexpr int kStreams = 80;  ///< ids that may occur (stream_pool.h)

  /// A clock that does not run stays at 0 and costs nothing (SPYRE_DEVICE_TIME=0).
  explicit DeviceClock(bool runs = true) : runs_(runs) {}

  bool runs() const { return runs_; }

  /// The stream is busy for `time`, and so is the engine, if one is needed.
  TimeSpan spend(int stream, Nanos time, std::optional<Engine> engine = std::nullopt);

  /// What the stream is given from now on begins no earlier than `moment`.
  void wait(int stream, Nanos moment);

  /// The end of all that the stream was given, or the time of this thread if that is later.
  Nanos now(int stream) const;

 private:
  const bool runs_;
  mutable std::mutex mutex_;  // guards everything below; a leaf
  std::array<Nanos, kStreams> streams_ = {};
  std::array<Nanos, 3> engines_ = {};
};

/// Where this thread is in simulated time.
Nanos thread_time();
/// It has seen that what ends at `moment` is done.
void thread_saw(Nanos moment);
/// It was busy for so long.
void thread_spent(Nanos time);

}  // namespace spyre
