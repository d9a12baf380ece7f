#pragma once

#include <algorithm>
#include <cstring>
#include <random>

#include "spyre/device/exec/test_memory.h"
#include "spyre/ops/ops.h"
#include "spyre/program/test_artifact.h"

/// Random ops that are valid artifacts, small enough for the interpreter: every family the fast executor has
/// code for, with splits, broadcasts, gaps, masks, permuted layouts, tensors in HBM and in LX, results on top
/// of inputs.
namespace spyre::testing_artifacts {

using namespace exec;  // NOLINT: tests of that layer

struct RandomArtifact {
  OpSpec op;
  size_t hbm_bytes = 0, lx_bytes = 0;
};

class ArtifactMaker {
 public:
  explicit ArtifactMaker(uint64_t seed) : random_(seed) {}

  RandomArtifact make() {
    RandomArtifact made;
    do {
      made.op = any_op();
    } while (points(made.op) > kMostPoints);
    place(made);
    return made;
  }

  /// Numbers of all sizes, with a share of zeros, ones and NaN.
  void fill(std::span<std::byte> bytes, DataFormat format) {
    if (format == DataFormat::SEN169_FP16) {
      constexpr uint16_t kSpecial[] = {0x0000, 0x8000, 0x7FFF, 0xFFFF, 0x7FFE, 0x0001, 0x3E00, 0xBE00};
      for (size_t i = 0; i + 2 <= bytes.size(); i += 2) {
        const uint64_t r = random_();
        // Mostly exponents around one, so that sums do not drown in their largest term.
        const auto near_one = static_cast<uint16_t>((r & 0x81FF) | ((26 + (r >> 16) % 10) << 9));
        const uint16_t code = (r >> 32) % 64 == 0 ? kSpecial[(r >> 40) % 8] : near_one;
        std::memcpy(bytes.data() + i, &code, 2);
      }
      return;
    }
    for (size_t i = 0; i + 4 <= bytes.size(); i += 4) {
      const uint64_t r = random_();
      constexpr float kSpecial[] = {0.0f, -0.0f, 1.0f, -1e30f, 1e-40f, 3e38f, INFINITY, NAN};
      const float near_one = std::ldexp(static_cast<float>(r & 0xFFFFFF) / 16777216.0f - 0.5f, (r >> 24) % 8);
      const float value = (r >> 32) % 64 == 0 ? kSpecial[(r >> 40) % 8] : near_one;
      std::memcpy(bytes.data() + i, &value, 4);
    }
  }

  int64_t below(int64_t n) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(n)); }

 private:
  static constexpr int64_t kMostPoints = 20000;

  static int64_t points(const OpSpec& op) {
    int64_t product = 1;
    for (const Dim& d : op.dims) product *= d.extent;
    return product;
  }

  OpSpec any_op() {
    switch (below(8)) {
      case 0:
      case 1:
      case 2:
        return pointwise();
      case 3:
      case 4:
        return reduction();
      case 5:
        return matmul();
      case 6:
        return identity();
      default:
        return restickify();
    }
  }

  bool one_in(int64_t n) { return below(n) == 0; }

  int64_t divisor_of(int64_t n, int64_t most) {
    std::vector<int64_t> found;
    for (int64_t d = 1; d <= std::min(n, most); ++d) {
      if (n % d == 0) found.push_back(d);
    }
    return found[below(static_cast<int64_t>(found.size()))];
  }

  /// Dims with extents and splits; `sticks` are along stick dims.
  std::vector<Dim> dims(const std::vector<std::string>& labels, const std::map<std::string, int64_t>& lanes) {
    std::vector<Dim> out;
    const bool wide = one_in(6);
    int64_t cores = 32;
    const int64_t wide_at = below(static_cast<int64_t>(labels.size()));
    for (const std::string& label : labels) {
      const auto found = lanes.find(label);
      const int64_t unit = found == lanes.end() ? 1 : found->second;
      int64_t steps = unit > 1 ? 1 + below(3) : 1 + below(5);
      int64_t splits = one_in(2) ? 1 : divisor_of(steps, cores);
      if (wide && static_cast<int64_t>(out.size()) == wide_at && unit == 1) {
        steps = 32;
        splits = divisor_of(32, cores);
      }
      cores /= splits;
      out.push_back({label, steps * unit, splits});
    }
    return out;
  }

  std::vector<std::string> labels(int64_t n) {
    std::vector<std::string> all = {"mb", "x", "y", "out"};
    return {all.end() - n, all.end()};
  }

  TensorSpec tensor(const std::vector<std::string>& of, const std::string& stick, DataFormat format) {
    TensorSpec t{.order = of, .stick = {stick}, .stick_sizes = {1024 / bits_of(format)}, .format = format};
    std::shuffle(t.order.begin(), t.order.end(), random_);
    t.lx = one_in(3);
    return t;
  }

  void maybe_gap(TensorSpec& t) {
    const std::string& label = t.order[below(static_cast<int64_t>(t.order.size()))];
    if (!t.lx && one_in(4) && t.scale_of(label) > 0) {
      t.gap[label] = t.per_stick(label) > 1 ? t.per_stick(label) : 1 + below(2);
    }
  }

  OpSpec pointwise() {
    const std::span<const OpInfo> table = all_ops();
    const OpInfo* info = nullptr;
    do {
      info = &table[below(static_cast<int64_t>(table.size()))];
    } while (info->family != OpFamily::kPointwise);
    DataFormat format = DataFormat::SEN169_FP16;
    if (!info->input_formats.contains(format)) {
      format = DataFormat::IEEE_INT32;
    } else if (info->input_formats.contains(DataFormat::IEEE_FP32) && one_in(3)) {
      format = DataFormat::IEEE_FP32;
    }
    const std::vector<std::string> names = labels(1 + below(4));
    const std::string stick = names[below(static_cast<int64_t>(names.size()))];
    OpSpec op{.function = std::string(info->name), .dims = dims(names, {{stick, 1024 / bits_of(format)}})};
    for (int i = 0; i < info->inputs; ++i) {
      TensorSpec t = tensor(names, stick, format);
      for (const std::string& label : names) {
        if (one_in(5)) {
          t.scale[label] = label == stick ? -2 : -1;
        }
      }
      maybe_gap(t);
      op.tensors.push_back(t);
    }
    TensorSpec result = tensor(names, stick, format);
    maybe_gap(result);
    if (one_in(3)) {
      result = op.tensors[0];
      result.scale.clear();
    }
    op.tensors.push_back(result);
    for (const std::string_view name : info->constants) {
      op.constants.emplace_back(name, static_cast<float>(below(9)) / 4 + (name == "clipMin" ? -2.0f : 0.25f));
    }
    if (info->mask && format == DataFormat::SEN169_FP16 && one_in(2)) {
      mask(op, stick, static_cast<float>(*info->mask));
    }
    return op;
  }

  void mask(OpSpec& op, const std::string& stick, float value) {
    const int64_t extent = op.dim(stick).extent, count = 1 + below(63);
    op.mask[stick] = {extent - count, count};
    op.mask_value = value;
  }

  OpSpec reduction() {
    constexpr const char* kNames[] = {"max", "mean", "min", "prod", "sum"};
    const std::string name = kNames[below(5)];
    const OpInfo& info = *find_op(name);
    const DataFormat format = one_in(3) ? DataFormat::IEEE_FP32 : DataFormat::SEN169_FP16;
    const std::vector<std::string> names = labels(2 + below(3));
    const bool along_stick = info.stick_variant && one_in(2);
    const std::string reduced = names.back();
    const std::string stick = along_stick ? reduced : names[below(static_cast<int64_t>(names.size()) - 1)];
    OpSpec op{.function = op_func_name(info, !along_stick),
              .dims = dims(names, {{stick, 1024 / bits_of(format)}}),
              .accumulator_listed = one_in(2)};
    TensorSpec in = tensor(names, stick, format), out = tensor(names, stick, format);
    maybe_gap(in);
    out.scale[reduced] = along_stick ? -2 : -1;
    maybe_gap(out);
    op.tensors = {in, out};
    if (name == "mean") {
      op.constants.emplace_back("scaling_factor", 0.125f);
    }
    if (along_stick && info.mask && format == DataFormat::SEN169_FP16 && one_in(2)) {
      mask(op, stick, static_cast<float>(*info.mask));
    }
    return op;
  }

  OpSpec matmul() {
    std::vector<std::string> batch;
    for (const char* label : {"x", "y"}) {
      if (one_in(2)) batch.push_back(label);
    }
    std::vector<std::string> names = batch;
    for (const char* label : {"mb", "out", "in"}) names.push_back(label);
    OpSpec op{
        .function = "batchmatmul", .dims = dims(names, {{"out", 64}, {"in", 64}}), .k_fastest = one_in(2)};
    std::vector<std::string> x = batch, w, out = batch;
    TensorSpec left, right, result;
    std::map<std::string, int> left_scale;
    for (const std::string& label : batch) {
      // Without it in W the dim is one more of rows, of which there may be two.
      if (!one_in(3) || w.size() + 1 < batch.size()) w.push_back(label);
      if (w.size() && w.back() == label && one_in(4)) left_scale[label] = -1;
    }
    x.insert(x.end(), {"mb", "in"});
    w.insert(w.end(), {"in", "out"});
    out.insert(out.end(), {"mb", "out"});
    left = tensor(x, "in", DataFormat::SEN169_FP16);
    left.scale = left_scale;
    right = tensor(w, "out", DataFormat::SEN169_FP16);
    result = tensor(out, "out", one_in(3) ? DataFormat::IEEE_FP32 : DataFormat::SEN169_FP16);
    for (TensorSpec* t : {&left, &right, &result}) maybe_gap(*t);
    op.tensors = {left, right, result};
    return op;
  }

  OpSpec identity() {
    const DataFormat format = one_in(3) ? DataFormat::IEEE_FP32 : DataFormat::SEN169_FP16;
    const std::vector<std::string> names = labels(1 + below(4));
    const std::string stick = names[below(static_cast<int64_t>(names.size()))];
    OpSpec op{.function = "identity", .dims = dims(names, {{stick, 1024 / bits_of(format)}})};
    op.tensors = {tensor(names, stick, format), tensor(names, stick, format)};
    for (const std::string& label : names) {
      if (one_in(6)) op.tensors[0].scale[label] = label == stick ? -2 : -1;
    }
    for (TensorSpec& t : op.tensors) maybe_gap(t);
    return op;
  }

  OpSpec restickify() {
    const std::vector<std::string> names = labels(2 + below(3));
    std::vector<std::string> shuffled = names;
    std::shuffle(shuffled.begin(), shuffled.end(), random_);
    OpSpec op{.function = "ReStickifyOpHBM", .dims = dims(names, {{shuffled[0], 64}, {shuffled[1], 64}})};
    op.tensors = {tensor(names, shuffled[0], DataFormat::SEN169_FP16),
                  tensor(names, shuffled[1], DataFormat::SEN169_FP16)};
    for (TensorSpec& t : op.tensors) t.lx = false;
    return op;
  }

  /// One tensor after the other, in each memory; at times the result on top of an input, exactly or nearly.
  void place(RandomArtifact& made) {
    OpSpec& op = made.op;
    int64_t next[2] = {128, 128};
    for (TensorSpec& t : op.tensors) {
      int64_t bytes = 128;
      for (const std::string& label : t.order) bytes *= steps_of(op, t, label);
      t.base = next[t.lx];
      next[t.lx] += bytes + 128 * below(3);
    }
    TensorSpec& result = op.tensors.back();
    const TensorSpec& first = op.tensors.front();
    if (result.lx == first.lx && one_in(3)) {
      result.base = first.base + (one_in(3) ? 128 : 0);
      next[result.lx] += 128;
    }
    made.hbm_bytes = next[0] + 256;
    made.lx_bytes = next[1] + 256;
  }

  std::mt19937_64 random_;
};

}  // namespace spyre::testing_artifacts
