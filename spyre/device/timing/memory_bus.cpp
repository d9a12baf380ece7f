#include "spyre/device/timing/memory_bus.h"

#include <algorithm>
#include <limits>

namespace spyre::timing {

size_t MemoryBus::port(int number, double width) {
  const auto [found, is_new] = ports_.try_emplace({number, width}, widths_.size());
  if (is_new) widths_.push_back(width);
  return found->second;
}

size_t MemoryBus::own_port(double width) {
  widths_.push_back(width);
  return widths_.size() - 1;
}

MemoryBus::Id MemoryBus::add(double bytes, double per_byte, size_t port, bool reads) {
  streams_.push_back({bytes, per_byte, port, reads});
  if (bytes > 0) active_.push_back(streams_.size() - 1);
  stale_ = true;
  return streams_.size() - 1;
}

void MemoryBus::share() {
  stale_ = false;
  // Speeds rise together; streams whose port is full stay at the speed they have reached.
  std::vector<Id> rising = active_;
  double bus_free = 1;
  while (!rising.empty()) {
    double bus_wait = 0;
    std::map<size_t, int> passing;  // streams by port
    for (const Id id : rising) {
      bus_wait += streams_[id].per_byte;
      ++passing[streams_[id].port];
    }
    double speed = bus_free / bus_wait;
    for (const auto& [port, count] : passing) speed = std::min(speed, widths_[port] / count);
    const bool memory_full = speed == bus_free / bus_wait;
    std::erase_if(rising, [&](Id id) {
      Stream& stream = streams_[id];
      if (!memory_full && widths_[stream.port] / passing[stream.port] > speed) return false;
      stream.speed = speed;
      bus_free -= speed * stream.per_byte;
      return true;
    });
  }
}

double MemoryBus::until_next_end() {
  if (stale_) share();
  double soonest = std::numeric_limits<double>::infinity();
  for (const Id id : active_) {
    soonest = std::min(soonest, streams_[id].left / streams_[id].speed);
  }
  return soonest;
}

void MemoryBus::advance(double ns) {
  constexpr double kRounding = 0.01;  // of a byte: the clock's own, after minutes of kernel
  for (const Id id : active_) {
    Stream& stream = streams_[id];
    const double moved = std::min(stream.left, stream.speed * ns);
    busy_ += moved * stream.per_byte;
    stream.left -= moved;
    if (stream.left < kRounding) stream.left = 0;
  }
  stale_ |= std::erase_if(active_, [&](Id id) { return done(id); }) > 0;
}

double MemoryBus::speed(bool reads) const {
  double sum = 0;
  for (const Id id : active_) {
    if (streams_[id].reads == reads) sum += streams_[id].speed;
  }
  return sum;
}

}  // namespace spyre::timing
