#pragma once

#include <gtest/gtest.h>

#include <functional>

#include "spyre/device/exec/run_both.h"
#include "spyre/device/exec/test_memory.h"
#include "spyre/program/read_program.h"
#include "spyre/program/test_artifact.h"

/// One op, written as an artifact, read back, run, and looked at. The steps every op test takes.
namespace spyre::testing_artifacts {

using namespace exec;  // NOLINT: tests of that layer

/// Calls `visit` for every point of the given extents, last one fastest.
inline void for_points(const std::vector<std::pair<std::string, int64_t>>& extents,
                       const std::function<void(const Point&)>& visit, Point g = {}, size_t depth = 0) {
  if (depth == extents.size()) {
    visit(g);
    return;
  }
  for (int64_t i = 0; i < extents[depth].second; ++i) {
    g[extents[depth].first] = i;
    for_points(extents, visit, g, depth + 1);
  }
}

class OpCase {
 public:
  /// Tensors that have no base yet are laid out one after the other, a stick apart.
  explicit OpCase(OpSpec spec) : op_(std::move(spec)), memory_(place()) {}

  const OpSpec& op() const { return op_; }
  TestMemory& memory() { return memory_; }

  /// Elements along dims of a tensor's own memory, from the point's own extents: absent dims are left out.
  std::vector<std::pair<std::string, int64_t>> extents_of(int tensor) const {
    std::vector<std::pair<std::string, int64_t>> out;
    const TensorSpec& t = op_.tensors[tensor];
    for (const std::string& label : t.order) {
      const auto window = t.window_extent.find(label);
      const int64_t extent = window == t.window_extent.end() ? op_.dim(label).extent : window->second;
      out.emplace_back(label, t.scale_of(label) < 0 ? 1 : extent);
    }
    return out;
  }

  /// Stores value(point) at every point of a tensor, and remembers what the format makes of it.
  void fill(int tensor, const std::function<float(const Point&)>& value) {
    for_points(extents_of(tensor), [&](const Point& g) { put(tensor, g, value(g)); });
  }
  void put(int tensor, const Point& g, float value) {
    const TensorSpec& t = op_.tensors[tensor];
    const int64_t element = element_at(op_, t, g);
    if (!t.lx) {
      memory_.put(t.base, element, t.format, value);
    }
  }
  float get(int tensor, const Point& g) const {
    const TensorSpec& t = op_.tensors[tensor];
    return memory_.get(t.base, element_at(op_, t, g), t.format);
  }
  uint32_t bits(int tensor, const Point& g) const {
    const TensorSpec& t = op_.tensors[tensor];
    return memory_.get_bits(t.base, element_at(op_, t, g), t.format);
  }
  int output() const { return static_cast<int>(op_.tensors.size()) - 1; }

  /// Writes, reads and runs. The counts, or a test failure.
  OpCounts run() {
    const auto program = read_program({{"sdsc_0.json", write_sdsc(op_).dump()}});
    if (!program.ok()) {
      ADD_FAILURE() << op_.function << ": " << program.error().to_string();
      return {};
    }
    const auto counts = run_both(program.value(), {}, memory_);
    if (!counts.ok()) {
      ADD_FAILURE() << op_.function << ": " << counts.error().to_string();
      return {};
    }
    return counts.value().ops[0];
  }

  /// Checks every point of the output, or those for which `within` holds, for at most `codes` steps of the
  /// format between what is there and what is expected.
  void expect(
      const std::function<float(const Point&)>& expected, int codes = 0,
      const std::function<bool(const Point&)>& within = [](const Point&) { return true; }) {
    int wrong = 0;
    const DataFormat format = op_.tensors[output()].format;
    for_points(extents_of(output()), [&](const Point& g) {
      if (!within(g) || wrong > 4) {
        return;
      }
      const auto there = static_cast<int64_t>(bits(output(), g));
      const auto wanted = static_cast<int64_t>(encode_element(format, expected(g)));
      const bool both_nan =
          std::isnan(decode_element(format, there)) && std::isnan(decode_element(format, wanted));
      if (std::abs(there - wanted) > codes && !both_nan &&
          !(decode_element(format, there) == decode_element(format, wanted))) {
        ++wrong;
        std::string at;
        for (const auto& [label, c] : g) {
          at += fmt::format("{}={} ", label, c);
        }
        ADD_FAILURE() << op_.function << " at " << at << ": " << get(output(), g) << ", expected "
                      << expected(g);
      }
    });
  }

 private:
  size_t place() {
    int64_t next = 0;
    for (TensorSpec& t : op_.tensors) {
      if (t.lx) {
        continue;
      }
      int64_t elements = 1;
      for (const int64_t size : t.stick_sizes) {
        elements *= size;
      }
      for (const std::string& label : t.order) {
        elements *= steps_of(op_, t, label);
      }
      if (t.base == 0) {
        t.base = next;
      }
      next = std::max(next, t.base + elements * bits_of(t.format) / 8 + 128);
    }
    return next;
  }

  OpSpec op_;
  TestMemory memory_;
};

/// Small numbers that differ from point to point, exact in every float format: multiples of 1/8 in [-4, 4).
inline float sample(const Point& g, int salt = 0) {
  int64_t hash = 17 + 31 * salt;
  for (const auto& [label, c] : g) {
    hash = hash * 37 + c * 11 + static_cast<int64_t>(label.size());
  }
  return static_cast<float>(hash % 64 - 32) / 8.0f;
}

}  // namespace spyre::testing_artifacts
