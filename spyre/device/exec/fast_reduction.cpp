#include <algorithm>
#include <array>
#include <cstring>

#include "spyre/base/thread_pool.h"
#include "spyre/device/exec/access.h"
#include "spyre/device/exec/fast_op.h"
#include "spyre/device/exec/kernels.h"
#include "spyre/program/element.h"

// Reductions keep the interpreter's order: within a core ascending along the reduced dims, the last one
// fastest, then over the cores of a group. Vectors run across results, never along a fold.
namespace spyre::exec {
namespace {

constexpr int64_t kParallelPoints = 65536;

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
};

class Reduction : public FastKernel {
 public:
  bool init(const FastShape& shape) {
    shape_ = shape;
    roles_ = roles_by_result(*shape.bound);
    reducer_ = find_reducer(shape.op().info->name);
    factor_ = reduction_factor(shape.op());
    const Geometry &in = shape.input(0), &out = shape.output();
    if (!in.plain || !out.plain || in.lane == 0 || in.format != out.format) {
      return false;
    }
    const bool split = std::any_of(roles_.reduced.begin(), roles_.reduced.end(),
                                   [&](int d) { return shape.op().dims[d].splits > 1; });
    if (shape.all_in_hbm() && !split) {
      const Unit whole = units_of(shape).front();
      results_.push_back({.box = whole.box, .members = {{-1, whole.box}}, .writers = {-1}});
    } else {
      for (const std::vector<int>& group : shape.bound->groups) {
        Results& results = results_.emplace_back(Results{.box = shape.boxes[group.front()]});
        for (const int core : group) {
          results.members.push_back({core, shape.boxes[core]});
        }
        for (const int core : writers(*shape.bound, group)) {
          results.writers.push_back(core);
        }
      }
    }
    return std::all_of(results_.begin(), results_.end(), [&](const Results& r) {
      return std::all_of(r.members.begin(), r.members.end(),
                         [&](const Member& m) { return m.box.extent(in.stick_dim) % in.lanes == 0; });
    });
  }

 protected:
  const std::byte* input(const Member& member, const Places& places) const {
    return Unit{member.core, member.box}.base(shape_, places, shape_.op().inputs[0]);
  }
  std::byte* output(const Results& results, int writer, const Places& places) const {
    return Unit{writer, results.box}.base(shape_, places, shape_.op().output);
  }

  /// Steps along kept dims, flattened: how many, and where one of them is.
  int64_t kept_steps(const Box& box, const Geometry& g) const {
    int64_t steps = 1;
    for (const int d : roles_.kept) {
      steps *= ceil_div(box.extent(d), g.per_step[d]);
    }
    return steps;
  }
  Coordinate kept_at(int64_t number, const Box& box, const Geometry& g) const {
    Coordinate local{};
    for (auto d = roles_.kept.rbegin(); d != roles_.kept.rend(); ++d) {
      const int64_t along = ceil_div(box.extent(*d), g.per_step[*d]);
      local[*d] = number % along * g.per_step[*d];
      number /= along;
    }
    return local;
  }

  float combine(float total, float partial, bool first) const {
    return first ? partial : reducer_.fold(total, partial);
  }

  FastShape shape_;
  DimRoles roles_;
  Reducer reducer_;
  float factor_ = 1;
  std::vector<Results> results_;
};

/// Over dims other than the stick: sticks fold lane by lane.
class AcrossSticks final : public Reduction {
 public:
  static std::unique_ptr<FastKernel> plan(const FastShape& shape) {
    auto made = std::make_unique<AcrossSticks>();
    if (!made->init(shape) || !shape.op().masks.empty() || shape.output().lane == 0 ||
        shape.output().stick_dim != shape.input(0).stick_dim) {
      return nullptr;
    }
    made->fold_ = shape.vectors->fold_sticks(shape.op().info->name, shape.input(0).format);
    if (made->fold_ == nullptr) {
      return nullptr;
    }
    return made;
  }

  void run(const Places& places) const override {
    for (const Results& results : results_) {
      int64_t depth = 1;
      for (const int d : roles_.reduced) {
        depth *= results.members[0].box.extent(d);
      }
      const int64_t lanes = shape_.input(0).lanes;
      parallel_for(kept_steps(results.box, shape_.input(0)),
                   std::max<int64_t>(kParallelPoints / std::max<int64_t>(depth * lanes, 1), 1),
                   [&](int64_t begin, int64_t end) {
                     for (int64_t i = begin; i < end; ++i) {
                       fold_stick(results, i, places);
                     }
                   });
    }
  }

 private:
  static constexpr int kMostLanes = 64;

  void fold_stick(const Results& results, int64_t number, const Places& places) const {
    const Geometry &in = shape_.input(0), &out = shape_.output();
    const Coordinate local = kept_at(number, results.box, in);
    alignas(64) std::array<float, kMostLanes> total{}, partial{};
    for (size_t m = 0; m < results.members.size(); ++m) {
      const Member& member = results.members[m];
      partial.fill(reducer_.start);
      fold_member(input(member, places) + in.offset(local, shape_.dims()), member.box, 0, partial.data());
      for (int64_t lane = 0; lane < in.lanes; ++lane) {
        total[lane] = combine(total[lane], partial[lane], m == 0);
      }
    }
    for (float& value : total) {
      value = factor_ * value;
    }
    std::array<std::byte, 128> stick;
    store_stick(total.data(), stick.data());
    for (const int writer : results.writers) {
      std::memcpy(output(results, writer, places) + out.offset(local, shape_.dims()), stick.data(),
                  stick.size());
    }
  }

  void fold_member(const std::byte* at, const Box& box, size_t depth, float* acc) const {
    const Geometry& in = shape_.input(0);
    if (roles_.reduced.empty()) {
      return fold_(at, 0, 1, acc);
    }
    const int d = roles_.reduced[depth];
    if (depth + 1 == roles_.reduced.size()) {
      return fold_(at, in.step[d], box.extent(d), acc);
    }
    for (int64_t i = 0; i < box.extent(d); ++i) {
      fold_member(at + i * in.step[d], box, depth + 1, acc);
    }
  }

  void store_stick(const float* values, std::byte* to) const {
    const Geometry& out = shape_.output();
    for (int64_t lane = 0; lane < out.lanes; ++lane) {
      const uint32_t bits = encode_element(out.format, without_nan_sign(values[lane]));
      std::memcpy(to + lane * out.element, &bits, out.element);
    }
  }

  FoldSticksKernel fold_ = nullptr;
};

/// Over the stick dim alone: rows fold along themselves, several rows at a time; all lanes get the result.
class AlongSticks final : public Reduction {
 public:
  static std::unique_ptr<FastKernel> plan(const FastShape& shape) {
    auto made = std::make_unique<AlongSticks>();
    const Geometry &in = shape.input(0), &out = shape.output();
    if (!made->init(shape) || out.lane != 0 || made->roles_.reduced != std::vector<int>{in.stick_dim}) {
      return nullptr;
    }
    const std::vector<Mask>& masks = shape.op().masks;
    if (masks.size() > 1 || (masks.size() == 1 && masks[0].dim != in.stick_dim)) {
      return nullptr;
    }
    made->fold_ = shape.vectors->fold_rows(shape.op().info->name, in.format);
    if (made->fold_ == nullptr) {
      return nullptr;
    }
    return made;
  }

  void run(const Places& places) const override {
    const Geometry& in = shape_.input(0);
    int64_t batches = 0;
    std::vector<int64_t> first;
    for (const Results& results : results_) {
      first.push_back(batches);
      batches += ceil_div(kept_steps(results.box, in), kFoldRows);
    }
    const int64_t depth = results_.empty() ? 1 : results_[0].members[0].box.extent(in.stick_dim);
    parallel_for(batches, std::max<int64_t>(kParallelPoints / std::max<int64_t>(depth * kFoldRows, 1), 1),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t i = begin; i < end; ++i) {
                     const auto at = std::upper_bound(first.begin(), first.end(), i) - first.begin() - 1;
                     fold_batch(results_[at], (i - first[at]) * kFoldRows, places);
                   }
                 });
  }

 private:
  void fold_batch(const Results& results, int64_t first, const Places& places) const {
    const Geometry &in = shape_.input(0), &out = shape_.output();
    const int64_t rows = std::min<int64_t>(kept_steps(results.box, in) - first, kFoldRows);
    std::array<Coordinate, kFoldRows> local;
    for (int64_t r = 0; r < rows; ++r) {
      local[r] = kept_at(first + r, results.box, in);
    }
    alignas(64) std::array<float, kFoldRows> total{}, partial{};
    for (size_t m = 0; m < results.members.size(); ++m) {
      const Member& member = results.members[m];
      FoldRows work{.stride = in.step[in.stick_dim], .sticks = member.box.extent(in.stick_dim) / in.lanes};
      for (int64_t r = 0; r < kFoldRows; ++r) {  // missing rows repeat the last one
        work.row[r] = input(member, places) + in.offset(local[std::min(r, rows - 1)], shape_.dims());
      }
      if (!shape_.op().masks.empty()) {
        const Mask& mask = shape_.op().masks[0];
        const int64_t lower = member.box.lower[in.stick_dim];
        work.masked_from = mask.start - lower;
        work.masked_to = mask.start + mask.count - lower;
        work.masked = mask.value;
      }
      partial.fill(reducer_.start);
      fold_(work, partial.data());
      for (int r = 0; r < kFoldRows; ++r) {
        total[r] = combine(total[r], partial[r], m == 0);
      }
    }
    for (int64_t r = 0; r < rows; ++r) {
      const uint32_t bits = encode_element(out.format, without_nan_sign(factor_ * total[r]));
      std::array<std::byte, 128> stick;
      for (int64_t lane = 0; lane < out.lanes; ++lane) {
        std::memcpy(stick.data() + lane * out.element, &bits, out.element);
      }
      for (const int writer : results.writers) {
        std::memcpy(output(results, writer, places) + out.offset(local[r], shape_.dims()), stick.data(),
                    stick.size());
      }
    }
  }

  FoldRowsKernel fold_ = nullptr;
};

}  // namespace

std::unique_ptr<FastKernel> plan_reduction(const FastShape& shape) {
  if (std::unique_ptr<FastKernel> across = AcrossSticks::plan(shape)) {
    return across;
  }
  return AlongSticks::plan(shape);
}

}  // namespace spyre::exec
