#pragma once

#include <cstddef>
#include <map>
#include <utility>
#include <vector>

namespace spyre::timing {

/// The off-chip memory while streams share it.
///
/// The memory spends `per_byte` ns on each byte of a stream, one byte at a time. A stream also passes a port,
/// which takes so many bytes per ns of all its streams together. Every core that a stream is for counts alike:
/// a stream for three cores goes three times as fast as one for a single core. Streams whose port is full are
/// slower; what they leave is for the others.
///
///     memory 6 bytes per ns, a port of 1 for stream a, wide ones for b and c:      a 1, b 2.5, c 2.5
///     the same, b for 4 cores:                                                     a 1, b 4, c 1
class MemoryBus {
 public:
  using Id = size_t;

  /// The port of that number and width; the same arguments give the same port.
  size_t port(int number, double width);
  /// A port that nobody else passes.
  size_t own_port(double width);

  struct Request {
    double bytes, per_byte;
    size_t port;
    bool reads;
    int cores = 1;
  };
  Id add(const Request& request);

  /// Time until the first stream ends if nothing is added; infinite when none is under way.
  double until_next_end();

  /// Moves the clock, by at most that. Streams that end exactly now are done.
  void advance(double ns);

  bool done(Id stream) const { return streams_[stream].left <= 0; }
  double busy() const { return busy_; }

  /// Bytes per ns of all streams that read, or write, as of the last until_next_end.
  double speed(bool reads) const;

 private:
  struct Stream {
    Request request;
    double left;
    double speed = 0;
  };
  void share();

  std::vector<Stream> streams_;
  std::vector<Id> active_;
  std::vector<double> widths_;  // [port]
  std::map<std::pair<int, double>, size_t> ports_;
  double busy_ = 0;
  bool stale_ = false;  // speeds are those of other streams
};

}  // namespace spyre::timing
