#pragma once

#include <cstdint>
#include <limits>

namespace spyre::solve {

/// How much work a solver may do, counted instead of timed, so that the same problem gives the same plan on
/// every machine and every day.
///
/// One unit is one elementary look at a buffer or at a stretch of the schedule: some nanoseconds. The default
/// is a second or two of one core. Copies of a deadline count on their own.
class Deadline {
 public:
  static constexpr int64_t kDefaultUnits = 400'000'000;

  explicit Deadline(int64_t units = kDefaultUnits) : left_(units) {}
  static Deadline none() { return Deadline(std::numeric_limits<int64_t>::max()); }

  void spend(int64_t units) { left_ -= units; }
  bool passed() const { return left_ <= 0; }
  int64_t left() const { return left_ > 0 ? left_ : 0; }

 private:
  int64_t left_;
};

}  // namespace spyre::solve
