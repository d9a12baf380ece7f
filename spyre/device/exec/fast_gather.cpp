#include <algorithm>
#include <cstring>

#include "spyre/base/thread_pool.h"
#include "spyre/device/exec/kernels.h"
#include "spyre/device/exec/loop_nest.h"

// A gather copies rows of a table that an index tensor names, a scatter copies rows into one. A *row* is what one index
// entry moves: the sticks along the stick dim. Entries are looked at before anything is written: one that the table has not
// is left to the interpreter, which words the fault. Where two rows of a scatter go to one place, the interpreter's last one
// stays: rows go core by core and in its order, and threads share out the sticks of a row.
namespace spyre::exec {
namespace {

/// One unit for each core, in the order in which the interpreter runs them.
std::vector<Unit> units_in_order(const FastShape& shape) {
  std::vector<Unit> units;
  units.reserve(shape.cores());
  for (int core = 0; core < shape.cores(); ++core) {
    units.push_back({.core = core, .box = shape.boxes[core]});
  }
  return units;
}

class IndexedCopy final : public FastKernel {
 public:
  static std::unique_ptr<FastKernel> plan(const FastShape& shape) {
    auto made = std::make_unique<IndexedCopy>();
    made->shape_ = shape;
    made->scatters_ = shape.output().gathered >= 0;
    const Geometry &table = made->table(), &plain = made->plain();
    const Geometry& index = shape.geometry[table.index_tensor];
    if (!plain.plain || !index.plain || plain.lane == 0 || table.lane == 0 ||
        table.stick_dim != plain.stick_dim || table.gathered == plain.stick_dim || table.rows == 0) {
      return nullptr;
    }
    for (const Unit& unit : made->scatters_ ? units_in_order(shape) : units_of(shape)) {
      Part part{.unit = unit};
      for (int d = 0; d < shape.dims(); ++d) {
        part.rows *= d == plain.stick_dim ? 1 : unit.box.extent(d);
        const bool cuts = unit.box.lower[d] % index.per_step[d] != 0;
        if (cuts || (d == plain.stick_dim && unit.box.extent(d) % plain.lanes != 0)) {
          return nullptr;
        }
      }
      made->parts_.push_back(part);
      made->rows_ = std::max(made->rows_, part.rows);
      made->all_rows_ += part.rows;
      made->sticks_ = std::max(made->sticks_, made->sticks_of(part));
    }
    return made;
  }

  bool data_dependent() const override { return true; }

  /// Whether every entry names a row of the table.
  bool ready(const Places& places) const override {
    for (const Part& part : parts_) {
      for (int64_t row = 0; row < part.rows; ++row) {
        if (entry(part, coordinate(part, row), places) >= table().rows) {
          return false;
        }
      }
    }
    return true;
  }

  void run(const Places& places) const override {
    if (scatters_) {
      const int64_t grain = std::max<int64_t>(kParallelBytes / std::max<int64_t>(all_rows_ * kStick, 1), 1);
      parallel_for(sticks_, grain, [&](int64_t begin, int64_t end) {
        for (const Part& part : parts_) {
          for (int64_t row = 0; row < part.rows; ++row) {
            copy_sticks(part, row, begin, end, places);
          }
        }
      });
      return;
    }
    const int64_t grain = std::max<int64_t>(kParallelBytes / (sticks_ * kStick), 1);
    parallel_for(static_cast<int64_t>(parts_.size()) * rows_, grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const Part& part = parts_[i / rows_];
        if (i % rows_ < part.rows) {
          copy_sticks(part, i % rows_, 0, sticks_, places);
        }
      }
    });
  }

 private:
  struct Part {
    Unit unit;
    int64_t rows = 1;
  };

  const Geometry& table() const { return scatters_ ? shape_.output() : shape_.input(0); }
  const Geometry& plain() const { return scatters_ ? shape_.input(0) : shape_.output(); }

  int64_t sticks_of(const Part& part) const {
    return part.unit.box.extent(plain().stick_dim) / plain().lanes;
  }

  /// Relative to the part's lower corner, at the first stick of the row.
  Coordinate coordinate(const Part& part, int64_t row) const {
    Coordinate local{};
    for (int d = shape_.dims() - 1; d >= 0; --d) {
      if (d != plain().stick_dim) {
        local[d] = row % part.unit.box.extent(d);
        row /= part.unit.box.extent(d);
      }
    }
    return local;
  }

  int64_t entry(const Part& part, const Coordinate& local, const Places& places) const {
    const int tensor = table().index_tensor;
    const Geometry& index = shape_.geometry[tensor];
    const std::byte* at = part.unit.base(shape_, places, tensor) + index.offset(local, shape_.dims()) +
                          local[index.stick_dim] % index.lanes * index.lane;
    uint64_t bits = 0;
    std::memcpy(&bits, at, index.element);
    return static_cast<int64_t>(bits);
  }

  /// Sticks [begin, end) of a row, as far as the part has them.
  void copy_sticks(const Part& part, int64_t row, int64_t begin, int64_t end, const Places& places) const {
    const Coordinate local = coordinate(part, row);
    Coordinate named = local;
    const int d = table().gathered;
    named[d] = entry(part, local, places) * table().page + (part.unit.box.lower[d] + local[d]) % table().page;
    const int input = shape_.op().inputs[0], output = shape_.op().output, dims = shape_.dims();
    const Geometry &from = shape_.input(0), &to = shape_.output();
    const std::byte* source =
        part.unit.base(shape_, places, input) + from.offset(scatters_ ? local : named, dims);
    std::byte* target = part.unit.base(shape_, places, output) + to.offset(scatters_ ? named : local, dims);
    for (int64_t i = begin; i < std::min(end, sticks_of(part)); ++i) {
      std::memcpy(target + i * to.step[to.stick_dim], source + i * from.step[from.stick_dim], kStick);
    }
  }

  FastShape shape_;
  bool scatters_ = false;
  std::vector<Part> parts_;
  int64_t rows_ = 0, all_rows_ = 0;  ///< of the largest part, of all
  int64_t sticks_ = 0;               ///< of a row, in the part that has most
};

}  // namespace

std::unique_ptr<FastKernel> plan_indexed_copy(const FastShape& shape) {
  return IndexedCopy::plan(shape);
}

}  // namespace spyre::exec
