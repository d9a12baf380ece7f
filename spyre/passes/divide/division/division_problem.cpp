#include "spyre/passes/divide/division/division_problem.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace spyre {
namespace {

Error refuse(const DivisionProblem& problem, ErrorKind kind, std::string_view message) {
  return Error(kind, fmt::format("op '{}': {}", problem.op, message));
}

Status check_cores(const DivisionProblem& problem) {
  if (problem.cores >= 1) return {};
  return refuse(problem, ErrorKind::kInvalidArgument,
                fmt::format("work cannot be divided over {} cores", problem.cores))
      .try_instead("SENCORES=1");
}

Status check_axes(const DivisionProblem& problem) {
  std::set<std::string> seen;
  for (const DivisionAxis& axis : problem.axes) {
    if (!seen.insert(axis.name).second) {
      return refuse(problem, ErrorKind::kInvalidArgument, fmt::format("two axes are named '{}'", axis.name));
    }
    if (axis.extent < 1 || axis.granularity.value_or(1) < 1) {
      return refuse(problem, ErrorKind::kInvalidArgument,
                    fmt::format("axis '{}' has extent {} and granularity {}; both must be at least 1",
                                axis.name, axis.extent, axis.granularity.value_or(1)));
    }
  }
  return {};
}

Status check_known(const DivisionProblem& problem, std::string_view axis, std::string_view where) {
  if (problem.find_axis(axis) != nullptr) return {};
  std::vector<std::string_view> names;
  for (const DivisionAxis& known : problem.axes) names.push_back(known.name);
  return refuse(problem, ErrorKind::kInvalidArgument,
                fmt::format("{} names '{}', the axes are {}", where, axis, fmt::join(names, ", ")));
}

Status check_names(const DivisionProblem& problem) {
  for (const auto& hint : problem.hints) SPYRE_TRY(check_known(problem, hint.first, "a work_div hint"));
  for (const auto& axis : problem.blocked) SPYRE_TRY(check_known(problem, axis, "a blocked axis"));
  for (const auto& domain : problem.allowed) SPYRE_TRY(check_known(problem, domain.first, "an allowed set"));
  return {};
}

Status check_tensor(const DivisionProblem& problem, const DivisionTensor& tensor) {
  if (tensor.device_size.empty() || tensor.device_size.size() != tensor.coordinates.size()) {
    return refuse(problem, ErrorKind::kInvalidArgument,
                  fmt::format("tensor '{}' has {} coordinates for {} device dimensions", tensor.name,
                              tensor.coordinates.size(), tensor.device_size.size()));
  }
  if (tensor.itemsize < 1 || std::ranges::any_of(tensor.device_size, [](int64_t size) { return size < 1; })) {
    return refuse(
        problem, ErrorKind::kInvalidArgument,
        fmt::format("tensor '{}' has device size [{}] and elements of {} bytes; all must be at least 1",
                    tensor.name, fmt::join(tensor.device_size, ", "), tensor.itemsize));
  }
  for (const Expr& coordinate : tensor.coordinates) {
    for (const std::string& axis : coordinate.symbols()) {
      SPYRE_TRY(check_known(problem, axis, fmt::format("a coordinate of '{}'", tensor.name)));
    }
  }
  return {};
}

Status check_dynamic(const DivisionProblem& problem) {
  for (const DivisionAxis& axis : problem.axes) {
    if (!axis.granularity) continue;
    if (problem.role == OpRole::kMatmul) {
      return refuse(
                 problem, ErrorKind::kUnsupported,
                 fmt::format("axis '{}' is dynamic, and a matmul is planned for fixed sizes only", axis.name))
          .try_instead("compiling it without mark_dynamic: one program per size");
    }
    for (const DivisionTensor& tensor : problem.tensors) {
      if (!tensor.coordinates.back().symbols().contains(axis.name)) continue;
      return refuse(problem, ErrorKind::kUnsupported,
                    fmt::format("axis '{}' is dynamic and runs along the stick of '{}'; a stick axis has a "
                                "fixed size",
                                axis.name, tensor.name))
          .try_instead("marking another dimension dynamic, or a layout with its stick elsewhere");
    }
  }
  return {};
}

}  // namespace

int64_t split_of(const Splits& splits, std::string_view axis) {
  const auto found = splits.find(axis);
  return found == splits.end() ? 1 : found->second;
}

int64_t cores_used(const Splits& splits) {
  int64_t product = 1;
  for (const auto& [axis, split] : splits) product *= split;
  return product;
}

std::string to_string(const Splits& splits) {
  std::vector<std::string> entries;
  for (const auto& [axis, split] : splits) entries.push_back(fmt::format("{}: {}", axis, split));
  return fmt::format("{{{}}}", fmt::join(entries, ", "));
}

bool DivisionTensor::indirect() const {
  return std::ranges::any_of(coordinates, [](const Expr& e) { return !e.index_tensors().empty(); });
}

bool DivisionTensor::uses(std::string_view axis) const {
  return std::ranges::any_of(coordinates,
                             [&](const Expr& e) { return e.symbols().contains(std::string(axis)); });
}

const DivisionAxis* DivisionProblem::find_axis(std::string_view name) const {
  const auto found = std::ranges::find(axes, name, &DivisionAxis::name);
  return found == axes.end() ? nullptr : &*found;
}

bool DivisionProblem::permits(std::string_view axis, int64_t split) const {
  if (blocked.contains(axis) && split != 1) return false;
  const auto domain = allowed.find(axis);
  return domain == allowed.end() || std::ranges::count(domain->second, split) > 0;
}

Status check_problem(const DivisionProblem& problem) {
  SPYRE_TRY(check_cores(problem));
  SPYRE_TRY(check_axes(problem));
  SPYRE_TRY(check_names(problem));
  if (problem.tensors.empty()) return refuse(problem, ErrorKind::kInvalidArgument, "it has no output tensor");
  for (const DivisionTensor& tensor : problem.tensors) SPYRE_TRY(check_tensor(problem, tensor));
  return check_dynamic(problem);
}

}  // namespace spyre
