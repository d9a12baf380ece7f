#include "spyre/passes/divide/division/axis_facts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace spyre {
namespace {

std::vector<int64_t> divisors(int64_t n) {
  std::vector<int64_t> low, high;
  for (int64_t d = 1; d * d <= n; ++d) {
    if (n % d != 0) continue;
    low.push_back(d);
    if (d != n / d) high.push_back(n / d);
  }
  low.insert(low.end(), high.rbegin(), high.rend());
  return low;
}

/// The longest stick that the axis runs along, 0 when it runs along none.
int64_t longest_stick(const DivisionProblem& problem, const std::string& axis) {
  int64_t lanes = 0;
  for (const DivisionTensor& tensor : problem.tensors) {
    if (tensor.coordinates.back().symbols().contains(axis))
      lanes = std::max(lanes, tensor.device_size.back());
  }
  return lanes;
}

bool chooses_output_stick(const DivisionTensor& output, const std::string& axis) {
  return std::any_of(output.coordinates.begin(), output.coordinates.end() - 1,
                     [&](const Expr& e) { return e.symbols().contains(axis); });
}

Error no_legal_split(const DivisionProblem& problem, const AxisFacts& axis,
                     const std::vector<int64_t>& even) {
  Error error(ErrorKind::kUnsupported,
              fmt::format("op '{}': no legal split of axis '{}'", problem.op, axis.name));
  std::move(error).note(fmt::format("{} is {} long: it divides into {} parts", axis.name, axis.size_text(),
                                    fmt::join(even, ", ")));
  if (const auto domain = problem.allowed.find(axis.name); domain != problem.allowed.end()) {
    std::move(error).note(fmt::format("its constraints allow [{}]", fmt::join(domain->second, ", ")));
  }
  if (problem.blocked.contains(axis.name)) std::move(error).note("it must stay whole");
  return error;
}

Result<AxisFacts> facts_of_axis(const DivisionProblem& problem, const DivisionAxis& axis) {
  AxisFacts facts{.name = axis.name, .extent = axis.extent};
  const int64_t stick = longest_stick(problem, axis.name);
  facts.stick = stick > 0;
  facts.lanes = std::max<int64_t>(stick, 1);
  facts.size = ceil_div(axis.extent, facts.lanes);
  facts.reduction = !chooses_output_stick(problem.output(), axis.name);
  const std::vector<int64_t> even = divisors(axis.granularity.value_or(facts.size));
  std::ranges::copy_if(even, std::back_inserter(facts.factors),
                       [&](int64_t factor) { return problem.permits(axis.name, factor); });
  if (facts.factors.empty()) return no_legal_split(problem, facts, even);
  return facts;
}

}  // namespace

int64_t AxisFacts::slice_extent(int64_t split) const {
  return std::min(extent, ceil_div(size, split) * lanes);
}

bool AxisFacts::allows(int64_t split) const {
  return std::ranges::binary_search(factors, split);
}

std::string AxisFacts::size_text() const {
  return stick ? fmt::format("{} stick{}", size, size == 1 ? "" : "s") : fmt::format("{}", size);
}

Result<std::vector<AxisFacts>> axis_facts(const DivisionProblem& problem) {
  SPYRE_TRY(check_problem(problem));
  std::vector<AxisFacts> all;
  for (const DivisionAxis& axis : problem.axes) {
    SPYRE_ASSIGN_OR_RETURN(AxisFacts facts, facts_of_axis(problem, axis));
    all.push_back(std::move(facts));
  }
  return all;
}

const AxisFacts& facts_of(const std::vector<AxisFacts>& facts, std::string_view axis) {
  const auto found = std::ranges::find(facts, axis, &AxisFacts::name);
  SPYRE_CHECK(found != facts.end(), "facts were asked of a name that is no axis");
  return *found;
}

std::string describe_factors(const DivisionProblem& problem, const AxisFacts& axis) {
  constexpr size_t kMostListed = 8;
  const size_t listed = std::min(axis.factors.size(), kMostListed);
  const bool all = listed == axis.factors.size();
  const std::vector<int64_t> head(axis.factors.begin(), axis.factors.begin() + static_cast<int64_t>(listed));
  const std::string parts =
      all && listed > 1 ? fmt::format("{} or {}", fmt::join(head.begin(), head.end() - 1, ", "), head.back())
                        : fmt::format("{}{}", fmt::join(head, ", "), all ? "" : ", ...");
  const bool constrained = problem.blocked.contains(axis.name) || problem.allowed.contains(axis.name);
  return fmt::format("{} is {} long and {} into {} part{}", axis.name, axis.size_text(),
                     constrained ? "may only be cut" : "divides", parts, parts == "1" ? "" : "s");
}

}  // namespace spyre
