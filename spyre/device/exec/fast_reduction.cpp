#include <algorithm>
#include <array>
#include <cstring>

#include "spyre/base/thread_pool.h"
#include "spyre/device/exec/access.h"
#include "spyre/device/exec/fast_op.h"
#include "spyre/device/exec/kernels.h"
#include "spyre/program/element.h"

// Reductions keep the interpreter's order: within a core every lane of the stick folds what it holds,
// ascending; where the stick itself is reduced its lanes then fold in halves; then the cores of a group.
// Sticks are vectors, so the code for both kinds is the same up to the halves.
namespace spyre::exec {
namespace {

/// One fold over what is reduced: the code for sticks, and the same for single elements.
struct Fold {
  FoldKernels kernels;
  Reducer reducer;                   ///< of terms
  float (*term)(float x) = nullptr;  ///< of an element; none: the element itself
};
constexpr int kMostFolds = 2;

/// Where a group's part of the input is for one of its cores.
struct Member {
  int core = -1;  ///< -1: all cores at once
  Box box;
};

/// Results that belong together: whose cores fold them, who writes them.
struct Results {
  Box box;  ///< of the kept dims
  std::vector<Member> members;
  std::vector<int> writers;  ///< core positions; -1: HBM as a whole
  int64_t steps = 0;         ///< results, or sticks of them
  int64_t first_batch = 0;   ///< kFoldRows steps are a batch; numbered through
};

class Reduction final : public FastKernel {
 public:
  static std::unique_ptr<FastKernel> plan(const FastShape& shape) {
    auto made = std::make_unique<Reduction>();
    made->shape_ = shape;
    made->roles_ = roles_by_result(*shape.bound);
    made->find_folds();
    if (!made->fits()) {
      return nullptr;
    }
    made->find_results();
    return made->cuts_no_stick() ? std::move(made) : nullptr;
  }

  void run(const Places& places) const override {
    const Results& last = results_.back();
    const int64_t batches = last.first_batch + ceil_div(last.steps, kFoldRows);
    int64_t points = kFoldRows * (along_ ? 1 : shape_.input(0).lanes);
    for (const int d : roles_.reduced) {
      points *= std::max<int64_t>(last.members[0].box.extent(d), 1);
    }
    parallel_for(batches, std::max<int64_t>(kParallelPoints / points, 1), [&](int64_t begin, int64_t end) {
      auto results = std::upper_bound(results_.begin(), results_.end(), begin,
                                      [](int64_t batch, const Results& r) { return batch < r.first_batch; });
      for (int64_t i = begin; i < end; ++i) {
        while (results != results_.end() && results->first_batch <= i) {
          ++results;
        }
        const Results& mine = *std::prev(results);
        fold_batch(mine, (i - mine.first_batch) * kFoldRows, places);
      }
    });
  }

  bool core_local() const override { return !of_core_.empty(); }

  void run_core(const Places& places, int core) const override {
    const Results& mine = results_[of_core_[core]];
    for (int64_t first = 0; first < mine.steps; first += kFoldRows) {
      fold_batch(mine, first, places);
    }
  }

 private:
  /// A reduction is one fold, and a factor. The moments of a layer norm are two: numbers, and their squares.
  void find_folds() {
    const ProgramOp& op = shape_.op();
    const DataFormat format = shape_.input(0).format;
    if (op.info->id == OpId::exx2) {
      const Reducer sum = find_reducer(OpId::sum);
      folds_ = {{shape_.vectors->fold(OpId::sum, format), sum},
                {shape_.vectors->fold_squares(format), sum, [](float x) { return x * x; }}};
      factor_ = op.k[0];
      zero_mean_ = op.k[1] != 0;
    } else {
      folds_ = {{shape_.vectors->fold(op.info->id, format), find_reducer(op.info->id)}};
      factor_ = reduction_factor(op);
    }
  }
  bool makes_moments() const { return folds_.size() > 1; }

  /// Of a batch, one stick after another. Of a reduced stick, once folded, the first lane is the result.
  using Lanes = std::array<float, kFoldRows * kMostLanes>;

  /// Whether layouts, formats and masks are those this code knows.
  bool fits() {
    const Geometry &in = shape_.input(0), &out = shape_.output();
    if (!in.plain || !out.plain || in.lane == 0 || in.format != out.format ||
        folds_[0].kernels.fold == nullptr) {
      return false;
    }
    along_ = std::count(roles_.reduced.begin(), roles_.reduced.end(), in.stick_dim) != 0;
    if (makes_moments() && !along_) {
      return false;
    }
    if (along_ ? out.lane != 0 : out.lane == 0 || out.stick_dim != in.stick_dim) {
      return false;
    }
    const std::vector<Mask>& masks = shape_.op().masks;
    if (masks.empty()) {
      return true;
    }
    // Of masks, one that hides the end of every row.
    return masks.size() == 1 && masks[0].dim == in.stick_dim && roles_.reduced == std::vector{in.stick_dim} &&
           masks[0].start + masks[0].count >= shape_.bound->limit[in.stick_dim];
  }

  void find_results() {
    const bool split = std::any_of(roles_.reduced.begin(), roles_.reduced.end(),
                                   [&](int d) { return shape_.op().dims[d].splits > 1; });
    if (shape_.all_in_hbm() && !split) {
      const Unit whole = units_of(shape_).front();
      results_.push_back({.box = whole.box, .members = {{-1, whole.box}}, .writers = {-1}});
    } else {
      for (const std::vector<int>& group : shape_.bound->groups) {
        Results& results = results_.emplace_back(Results{.box = shape_.boxes[group.front()]});
        for (const int core : group) {
          results.members.push_back({core, shape_.boxes[core]});
        }
        for (const int core : writers(*shape_.bound, group)) {
          results.writers.push_back(core);
        }
      }
    }
    int64_t batches = 0;
    for (Results& results : results_) {
      results.steps = 1;
      for (const int d : roles_.kept) {
        results.steps *= ceil_div(results.box.extent(d), shape_.input(0).per_step[d]);
      }
      results.first_batch = batches;
      batches += ceil_div(results.steps, kFoldRows);
    }
    find_owners();
  }

  /// Which results are a core's own, where each core has its own.
  void find_owners() {
    std::vector<int> owners(shape_.cores(), -1);
    for (size_t i = 0; i < results_.size(); ++i) {
      const Results& r = results_[i];
      if (r.members.size() != 1 || r.members[0].core < 0 || r.writers != std::vector{r.members[0].core}) {
        return;
      }
      owners[r.members[0].core] = static_cast<int>(i);
    }
    if (std::count(owners.begin(), owners.end(), -1) == 0) {
      of_core_ = owners;
    }
  }

  bool cuts_no_stick() const {
    const Geometry& in = shape_.input(0);
    return std::all_of(results_.begin(), results_.end(), [&](const Results& r) {
      return std::all_of(r.members.begin(), r.members.end(),
                         [&](const Member& m) { return m.box.extent(in.stick_dim) % in.lanes == 0; });
    });
  }

  /// Where a step along the kept dims is, relative to the box.
  Coordinate kept_at(int64_t number, const Box& box) const {
    Coordinate local{};
    for (auto d = roles_.kept.rbegin(); d != roles_.kept.rend(); ++d) {
      const int64_t per_step = shape_.input(0).per_step[*d], along = ceil_div(box.extent(*d), per_step);
      local[*d] = number % along * per_step;
      number /= along;
    }
    return local;
  }

  void fold_batch(const Results& results, int64_t first, const Places& places) const {
    const auto rows = static_cast<int>(std::min<int64_t>(results.steps - first, kFoldRows));
    std::array<Coordinate, kFoldRows> local;
    for (int r = 0; r < rows; ++r) {
      local[r] = kept_at(first + r, results.box);
    }
    const int64_t lanes = shape_.input(0).lanes;
    alignas(64) std::array<Lanes, kMostFolds> total;
    for (size_t f = 0; f < folds_.size(); ++f) {
      fold_members(folds_[f], results, {local.data(), static_cast<size_t>(rows)}, places, total[f]);
    }
    for (int r = 0; r < rows; ++r) {
      if (makes_moments()) {
        store_moments(results, local[r], total[0][r * lanes], total[1][r * lanes], places);
      } else {
        store(results, local[r], total[0].data() + r * lanes, places);
      }
    }
  }

  /// What all cores of a group fold, in their order.
  void fold_members(const Fold& fold, const Results& results, std::span<const Coordinate> local,
                    const Places& places, Lanes& total) const {
    const int64_t lanes = shape_.input(0).lanes, kept_lanes = along_ ? 1 : lanes;
    alignas(64) Lanes partial;
    for (size_t m = 0; m < results.members.size(); ++m) {
      fold_member(fold, results.members[m], local, places, m == 0 ? total : partial);
      for (int64_t i = 0; m > 0 && i < static_cast<int64_t>(local.size()) * kept_lanes; ++i) {
        const int64_t at = i / kept_lanes * lanes + i % kept_lanes;
        total[at] = fold.reducer.fold(total[at], partial[at]);
      }
    }
  }

  /// What one core folds, from the start value. Of a reduced stick only the first lane is left with a
  /// meaning.
  void fold_member(const Fold& fold, const Member& member, std::span<const Coordinate> local,
                   const Places& places, Lanes& lanes) const {
    const Geometry& in = shape_.input(0);
    const std::byte* base = Unit{member.core, member.box}.base(shape_, places, shape_.op().inputs[0]);
    FoldTile tile{.rows = static_cast<int>(local.size())};
    for (int r = 0; r < tile.rows; ++r) {
      tile.first[r] = base + in.offset(local[r], shape_.dims());
    }
    std::fill_n(lanes.begin(), tile.rows * in.lanes, fold.reducer.start);
    const int64_t plain = plain_sticks(member.box);
    fold_dims(fold.kernels, tile, 0, 0, member.box, plain, lanes.data());
    for (int r = 0; r < tile.rows; ++r) {
      float* mine = lanes.data() + r * in.lanes;
      fold.kernels.sort(mine);
      if (!shape_.op().masks.empty()) {
        fold_masked(fold, tile.first[r], member.box, plain, mine);
      }
      if (along_) {
        mine[0] = fold.kernels.fold_lanes(mine);
      }
    }
  }

  /// Sticks of a core's rows without masked elements; all of them where the stick is not reduced.
  int64_t plain_sticks(const Box& box) const {
    const int stick_dim = shape_.input(0).stick_dim;
    int64_t plain = box.extent(stick_dim);
    for (const Mask& mask : shape_.op().masks) {
      plain = std::clamp<int64_t>(mask.start - box.lower[stick_dim], 0, plain);
    }
    return plain / shape_.input(0).lanes;
  }

  void fold_dims(const FoldKernels& kernels, FoldTile& tile, int64_t offset, size_t depth, const Box& box,
                 int64_t sticks, float* acc) const {
    const Geometry& in = shape_.input(0);
    if (roles_.reduced.empty()) {
      tile.count = 1;
      return kernels.fold(tile, offset, acc);
    }
    const int d = roles_.reduced[depth];
    const int64_t steps = d == in.stick_dim ? sticks : box.extent(d);
    if (depth + 1 == roles_.reduced.size()) {
      tile.stride = in.step[d];
      tile.count = steps;
      return kernels.fold(tile, offset, acc);
    }
    for (int64_t i = 0; i < steps; ++i) {
      fold_dims(kernels, tile, offset + i * in.step[d], depth + 1, box, sticks, acc);
    }
  }

  /// The sticks at the end of a row that a mask hides, the first perhaps in part.
  void fold_masked(const Fold& fold, const std::byte* row, const Box& box, int64_t first,
                   float* lanes) const {
    const Geometry& in = shape_.input(0);
    const Mask& mask = shape_.op().masks[0];
    for (int64_t i = first * in.lanes; i < box.extent(in.stick_dim); ++i) {
      uint32_t bits = 0;
      std::memcpy(&bits, row + i / in.lanes * in.step[in.stick_dim] + i % in.lanes * in.lane, in.element);
      const bool hidden = box.lower[in.stick_dim] + i >= mask.start;
      float& acc = lanes[i % in.lanes];
      const float x = hidden ? mask.value : decode_element(in.format, bits);
      acc = fold.reducer.fold(acc, fold.term != nullptr ? fold.term(x) : x);
    }
  }

  /// Rounds, once: one value to all lanes of a reduced stick, else each lane its own.
  void store(const Results& results, const Coordinate& local, float* lanes, const Places& places) const {
    const Geometry& out = shape_.output();
    const bool narrow = out.format == DataFormat::SEN169_FP16;
    for (int64_t lane = 0; lane < (along_ ? 1 : out.lanes); ++lane) {
      lanes[lane] = without_nan_sign(factor_ * lanes[lane]);
    }
    alignas(64) std::array<std::byte, 128> stick;
    if (along_) {
      const uint32_t code = encode_element(out.format, lanes[0]);
      const uint32_t filled = narrow ? code | code << 16 : code;
      for (size_t at = 0; at < stick.size(); at += sizeof(filled)) {
        std::memcpy(&stick[at], &filled, sizeof(filled));
      }
    } else if (narrow) {
      shape_.vectors->narrow(lanes, stick.data(), out.lanes);
    } else {
      std::memcpy(stick.data(), lanes, stick.size());
    }
    write(results, local, stick, places);
  }

  /// Two numbers in one stick, the rest zeros.
  void store_moments(const Results& results, const Coordinate& local, float sum, float squares,
                     const Places& places) const {
    const Geometry& out = shape_.output();
    alignas(64) std::array<std::byte, 128> stick{};
    const std::array<float, 2> moments = {zero_mean_ ? 0.0f : factor_ * sum, factor_ * squares};
    for (size_t i = 0; i < moments.size(); ++i) {
      const uint32_t code = encode_element(out.format, without_nan_sign(moments[i]));
      std::memcpy(&stick[i * out.element], &code, out.element);
    }
    write(results, local, stick, places);
  }

  void write(const Results& results, const Coordinate& local, const std::array<std::byte, 128>& stick,
             const Places& places) const {
    for (const int writer : results.writers) {
      std::byte* base = Unit{writer, results.box}.base(shape_, places, shape_.op().output);
      std::memcpy(base + shape_.output().offset(local, shape_.dims()), stick.data(), stick.size());
    }
  }

  FastShape shape_;
  DimRoles roles_;
  std::vector<Fold> folds_;
  float factor_ = 1;
  bool zero_mean_ = false;
  bool along_ = false;  ///< the stick is reduced
  std::vector<Results> results_;
  std::vector<int> of_core_;  ///< [core position]: its results; empty where cores share some
};

}  // namespace

std::unique_ptr<FastKernel> plan_reduction(const FastShape& shape) {
  return Reduction::plan(shape);
}

}  // namespace spyre::exec
