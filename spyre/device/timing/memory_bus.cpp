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

MemoryBus::Id MemoryBus::add(const Request& request) {
  streams_.push_back({request, request.bytes});
  if (request.bytes > 0) active_.push_back(streams_.size() - 1);
  stale_ = true;
  return streams_.size() - 1;
}

void MemoryBus::share() {
  stale_ = false;
  // The speed for one core rises for all; streams whose port is full stay at the speed they have reached.
  std::vector<Id> rising = active_;
  double bus_free = 1;
  while (!rising.empty()) {
    double bus_wait = 0;
    std::map<size_t, int> passing;  // cores by port
    for (const Id id : rising) {
      const Request& request = streams_[id].request;
      bus_wait += request.per_byte * request.cores;
      passing[request.port] += request.cores;
    }
    double speed = bus_free / bus_wait;
    for (const auto& [port, cores] : passing) speed = std::min(speed, widths_[port] / cores);
    const bool memory_full = speed == bus_free / bus_wait;
    std::erase_if(rising, [&](Id id) {
      const Request& request = streams_[id].request;
      if (!memory_full && widths_[request.port] / passing[request.port] > speed) return false;
      streams_[id].speed = speed * request.cores;
      bus_free -= streams_[id].speed * request.per_byte;
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
    busy_ += moved * stream.request.per_byte;
    stream.left -= moved;
    if (stream.left < kRounding) stream.left = 0;
  }
  stale_ |= std::erase_if(active_, [&](Id id) { return done(id); }) > 0;
}

double MemoryBus::speed(bool reads) const {
  double sum = 0;
  for (const Id id : active_) {
    if (streams_[id].request.reads == reads) sum += streams_[id].speed;
  }
  return sum;
}

}  // namespace spyre::timing
