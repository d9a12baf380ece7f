#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace spyre::solve {

/// What placement would be worth if buffers were fluid: any fraction of a buffer may be kept for a fraction
/// of its value, and bytes need not be contiguous. No legal placement is worth more, so this is the bound
/// that solvers prune with and that reports print beside every result.
///
/// The relaxation is a flow. `capacity` units travel along the schedule; over each section a unit either
/// idles or rides in a buffer, from its first section to its end:
///
///        idle        idle        idle
///     0 ------> 1 ------> 2 ------> 3          buffer: room for `size` units, worth value / size each
///      \_______________/^
///            buffer
///
/// The flow of greatest worth also yields prices per section. A buffer's `surplus` is its value less the
/// price of its room: what is lost at least when it is spilled although the flow keeps it (surplus > 0), or
/// placed although the flow spills it (surplus < 0). *Any* prices give a valid bound, so rounding errors in
/// finding them cost tightness, never truth.
class FluidRelaxation {
 public:
  enum class Fate { kOpen, kIn, kOut };

  struct Item {
    int begin, end;  ///< sections it occupies, half-open
    int64_t size;
    int64_t value;
    Fate fate = Fate::kOpen;
  };

  FluidRelaxation(int sections, int64_t capacity) : sections_(sections), capacity_(capacity) {}

  void solve(const std::vector<Item>& items);

  /// No placement that keeps every kIn item and no kOut item is worth more than this.
  double bound() const { return bound_; }
  /// Kept part of each item, 0 to 1.
  double kept(size_t item) const { return kept_[item]; }
  double surplus(size_t item) const { return surplus_[item]; }
  /// Units of work spent by the last solve.
  int64_t work() const { return work_; }

 private:
  struct Arc {
    int to;
    int twin;  ///< index of the reverse arc
    int64_t room;
    double cost;
  };

  void build(const std::vector<Item>& items);
  void first_distances();
  bool shortest_path();
  int64_t push(int64_t most);
  void price(const std::vector<Item>& items);

  int sections_;
  int64_t capacity_;
  std::vector<std::vector<int>> leaving_;  ///< arcs by node
  std::vector<Arc> arcs_;
  std::vector<int> arc_of_item_;
  std::vector<double> potential_, distance_;
  std::vector<int> reached_by_;
  double bound_ = 0;
  std::vector<double> kept_, surplus_;
  int64_t work_ = 0;
};

}  // namespace spyre::solve
