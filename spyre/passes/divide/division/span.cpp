#include "spyre/passes/divide/division/span.h"

#include <fmt/format.h>

#include "spyre/base/text.h"
#include "spyre/passes/divide/division/span_advice.h"

namespace spyre {
namespace {

using Values = std::map<std::string, int64_t, std::less<>>;

int64_t value_at(const Expr& coordinate, const Values& values) {
  return coordinate.evaluate(values)
      .value();  // symbols are axes and there is no index tensor: it has a value
}

/// Positions that one core visits along a dimension. Coordinates are sums of single-axis terms, so each axis
/// adds its own reach.
int64_t positions(const Expr& coordinate, const std::vector<AxisFacts>& facts, const Splits& splits,
                  Values& zeros) {
  int64_t extent = 1;
  const int64_t origin = value_at(coordinate, zeros);
  for (const std::string& axis : coordinate.symbols()) {
    zeros[axis] = facts_of(facts, axis).slice_extent(split_of(splits, axis)) - 1;
    extent += value_at(coordinate, zeros) - origin;
    zeros[axis] = 0;
  }
  return extent;
}

}  // namespace

Span per_core_span(const DivisionTensor& tensor, const std::vector<AxisFacts>& facts, const Splits& splits) {
  SPYRE_CHECK(!tensor.indirect(), "an indirectly accessed tensor has no span before the run");
  Values zeros;
  for (const AxisFacts& axis : facts) zeros[axis.name] = 0;
  int64_t below = tensor.itemsize;  // bytes of one position
  for (const int64_t size : tensor.device_size) below *= size;
  for (size_t d = 0; d + 1 < tensor.device_size.size(); ++d) {
    below /= tensor.device_size[d];
    const int64_t extent = positions(tensor.coordinates[d], facts, splits, zeros);
    if (extent > 1) return {.bytes = Bytes(extent * below), .dimension = d};
  }
  return {.bytes = Bytes(tensor.itemsize), .dimension = std::nullopt};
}

bool span_fits(const DivisionProblem& problem, const DivisionTensor& tensor,
               const std::vector<AxisFacts>& facts, const Splits& splits) {
  return tensor.indirect() || per_core_span(tensor, facts, splits).bytes <= problem.span_limit;
}

Status check_spans(const DivisionProblem& problem, const std::vector<AxisFacts>& facts,
                   const Splits& splits) {
  for (const DivisionTensor& tensor : problem.tensors) {
    if (!span_fits(problem, tensor, facts, splits)) return span_error(problem, tensor, facts, splits);
  }
  return {};
}

}  // namespace spyre
