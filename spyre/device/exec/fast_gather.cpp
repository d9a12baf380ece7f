#include <cstring>

#include "spyre/base/thread_pool.h"
#include "spyre/device/exec/kernels.h"
#include "spyre/device/exec/loop_nest.h"

// A gather copies rows of a table that an index tensor names. A *row* is what one index entry moves: the sticks along the
// stick dim. Entries are looked at before anything is written: one that the table has not is left to the interpreter, which
// words the fault.
namespace spyre::exec {
namespace {

class Gather final : public FastKernel {
 public:
  static std::unique_ptr<FastKernel> plan(const FastShape& shape) {
    const Geometry &table = shape.input(0), &out = shape.output();
    const Geometry& index = shape.geometry[table.index_tensor];
    if (!out.plain || !index.plain || out.lane == 0 || table.lane == 0 || table.stick_dim != out.stick_dim ||
        table.gathered == out.stick_dim || table.rows == 0) {
      return nullptr;
    }
    auto made = std::make_unique<Gather>();
    made->shape_ = shape;
    for (const Unit& unit : units_of(shape)) {
      Part part{.unit = unit};
      for (int d = 0; d < shape.dims(); ++d) {
        part.rows *= d == out.stick_dim ? 1 : unit.box.extent(d);
        const bool cuts = unit.box.lower[d] % index.per_step[d] != 0;
        if (cuts || (d == out.stick_dim && unit.box.extent(d) % out.lanes != 0)) {
          return nullptr;
        }
      }
      made->parts_.push_back(part);
      made->rows_ = std::max(made->rows_, part.rows);
    }
    return made;
  }

  bool data_dependent() const override { return true; }

  /// Whether every entry names a row of the table.
  bool ready(const Places& places) const override {
    for (const Part& part : parts_) {
      for (int64_t row = 0; row < part.rows; ++row) {
        if (entry(part, coordinate(part, row), places) >= shape_.input(0).rows) {
          return false;
        }
      }
    }
    return true;
  }

  void run(const Places& places) const override {
    const int64_t grain = std::max<int64_t>(kParallelBytes / (sticks() * kStick), 1);
    parallel_for(static_cast<int64_t>(parts_.size()) * rows_, grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const Part& part = parts_[i / rows_];
        if (i % rows_ < part.rows) {
          copy_row(part, i % rows_, places);
        }
      }
    });
  }

 private:
  struct Part {
    Unit unit;
    int64_t rows = 1;
  };

  int64_t sticks() const {
    const int d = shape_.output().stick_dim;
    return parts_.empty() ? 1 : std::max<int64_t>(parts_[0].unit.box.extent(d) / shape_.output().lanes, 1);
  }

  /// Relative to the part's lower corner, at the first stick of the row.
  Coordinate coordinate(const Part& part, int64_t row) const {
    Coordinate local{};
    for (int d = shape_.dims() - 1; d >= 0; --d) {
      if (d != shape_.output().stick_dim) {
        local[d] = row % part.unit.box.extent(d);
        row /= part.unit.box.extent(d);
      }
    }
    return local;
  }

  int64_t entry(const Part& part, const Coordinate& local, const Places& places) const {
    const int tensor = shape_.input(0).index_tensor;
    const Geometry& index = shape_.geometry[tensor];
    const std::byte* at = part.unit.base(shape_, places, tensor) + index.offset(local, shape_.dims()) +
                          local[index.stick_dim] % index.lanes * index.lane;
    uint64_t bits = 0;
    std::memcpy(&bits, at, index.element);
    return static_cast<int64_t>(bits);
  }

  void copy_row(const Part& part, int64_t row, const Places& places) const {
    const Geometry &table = shape_.input(0), &out = shape_.output();
    const Coordinate local = coordinate(part, row);
    Coordinate from = local;
    const int d = table.gathered;
    from[d] = entry(part, local, places) * table.page + (part.unit.box.lower[d] + local[d]) % table.page;
    const std::byte* source =
        part.unit.base(shape_, places, shape_.op().inputs[0]) + table.offset(from, shape_.dims());
    std::byte* target = part.unit.base(shape_, places, shape_.op().output) + out.offset(local, shape_.dims());
    const int64_t sticks = part.unit.box.extent(out.stick_dim) / out.lanes;
    for (int64_t i = 0; i < sticks; ++i) {
      std::memcpy(target + i * out.step[out.stick_dim], source + i * table.step[out.stick_dim], kStick);
    }
  }

  FastShape shape_;
  std::vector<Part> parts_;
  int64_t rows_ = 0;
};

}  // namespace

std::unique_ptr<FastKernel> plan_gather(const FastShape& shape) {
  return Gather::plan(shape);
}

}  // namespace spyre::exec
