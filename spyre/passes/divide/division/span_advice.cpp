#include "spyre/passes/divide/division/span_advice.h"

#include <fmt/format.h>

#include <algorithm>

#include "spyre/base/text.h"
#include "spyre/passes/divide/division/span.h"
#include "spyre/passes/divide/division/span_reduction.h"

namespace spyre {
namespace {

constexpr int64_t kMostPaddingTries = 64;
constexpr int64_t kMostTiles = 4096;  // beyond that a loop is no advice

struct Remedy {
  int64_t split;  ///< of the changed axis
  Bytes span;
};

/// The split of `axis` and the span of `tensor` when mandatory splits alone make every tensor fit.
std::optional<Remedy> solved(const DivisionProblem& changed, const std::string& tensor,
                             const std::string& axis) {
  const auto facts = axis_facts(changed);
  const auto floors = span_floors(changed);
  if (!facts.ok() || !floors.ok()) return std::nullopt;
  for (const DivisionTensor& each : changed.tensors) {
    if (!span_fits(changed, each, facts.value(), floors.value())) return std::nullopt;
  }
  const auto same = std::ranges::find(changed.tensors, tensor, &DivisionTensor::name);
  return Remedy{.split = split_of(floors.value(), axis),
                .span = per_core_span(*same, facts.value(), floors.value()).bytes};
}

DivisionProblem with_extent(const DivisionProblem& problem, const std::string& axis, int64_t extent) {
  DivisionProblem changed = problem;
  std::ranges::find(changed.axes, axis, &DivisionAxis::name)->extent = extent;
  return changed;
}

/// The problem with one axis grown, and the device dimensions it runs along grown with it.
DivisionProblem padded(const DivisionProblem& problem, const AxisFacts& axis, int64_t size) {
  DivisionProblem changed = with_extent(problem, axis.name, size * axis.lanes);
  for (DivisionTensor& tensor : changed.tensors) {
    for (size_t d = 0; d + 1 < tensor.device_size.size(); ++d) {
      if (!tensor.coordinates[d].symbols().contains(axis.name)) continue;
      tensor.device_size[d] = ceil_div(tensor.device_size[d] * size, axis.size);
    }
  }
  return changed;
}

std::string padding_advice(const DivisionProblem& problem, const std::string& tensor, const AxisFacts& axis) {
  const int64_t last = axis.size + std::min(kMostPaddingTries, ceil_div(axis.size, 4));
  for (int64_t size = axis.size + 1; size <= last; ++size) {
    const auto remedy = solved(padded(problem, axis, size), tensor, axis.name);
    if (!remedy || remedy->split == 1) continue;
    return fmt::format("padding {} to {}{} (+{:.1f} % memory): cut in {}, each part spans {}", axis.name,
                       size, axis.stick ? " sticks" : "",
                       100.0 * static_cast<double>(size - axis.size) / static_cast<double>(axis.size),
                       remedy->split, human_bytes(remedy->span));
  }
  return {};
}

std::string tiling_advice(const DivisionProblem& problem, const std::string& tensor, const AxisFacts& axis) {
  for (int64_t tiles = 2; tiles <= std::min(axis.size, kMostTiles); ++tiles) {
    if (axis.size % tiles != 0) continue;
    const auto remedy =
        solved(with_extent(problem, axis.name, axis.size / tiles * axis.lanes), tensor, axis.name);
    if (!remedy) continue;
    return fmt::format("running it in {} tiles along {}: a core then spans {}", tiles, axis.name,
                       human_bytes(remedy->span));
  }
  return {};
}

}  // namespace

Error span_error(const DivisionProblem& problem, const DivisionTensor& tensor,
                 const std::vector<AxisFacts>& facts, const Splits& splits) {
  const Span span = per_core_span(tensor, facts, splits);
  Error error(ErrorKind::kUnsupported,
              fmt::format("op '{}': '{}' spans {} of device memory, a core reaches {}", problem.op,
                          tensor.name, human_bytes(span.bytes), human_bytes(problem.span_limit)));
  std::move(error).note(fmt::format("{} is {} on the card, {} byte{} an element; splits {}", tensor.name,
                                    list_text(tensor.device_size), tensor.itemsize,
                                    tensor.itemsize == 1 ? "" : "s", to_string(splits)));
  if (!span.dimension) return error;
  std::string padding, tiling;
  for (const std::string& name : tensor.coordinates[*span.dimension].symbols()) {
    const AxisFacts& axis = facts_of(facts, name);
    std::move(error).note(
        fmt::format("{}; {} cores are available", describe_factors(problem, axis), problem.cores));
    if (padding.empty()) padding = padding_advice(problem, tensor.name, axis);
    if (tiling.empty()) tiling = tiling_advice(problem, tensor.name, axis);
  }
  const std::string& advice = padding.empty() ? tiling : padding;
  return advice.empty() ? error : std::move(error).try_instead(advice);
}

}  // namespace spyre
