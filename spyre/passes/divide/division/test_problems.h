#pragma once

#include <string>
#include <vector>

#include "spyre/passes/divide/division/division_problem.h"

/// Problems as a reader would draw them; fp16, 64 elements a stick, unless said otherwise.
namespace spyre::test {

inline DivisionTensor tensor(std::string name, std::vector<int64_t> device_size,
                             const std::vector<std::string>& coordinates, int64_t itemsize = 2) {
  DivisionTensor made{.name = std::move(name), .device_size = std::move(device_size), .itemsize = itemsize};
  for (const std::string& text : coordinates) made.coordinates.push_back(parse_expr(text).value());
  return made;
}

/// [.., a, b] over {c0, c1, ...}, the stick along the last axis, tile number outermost:
/// [512, 1024] -> [16, 512, 64] = [floor(c1/64), c0, Mod(c1, 64)].
inline DivisionTensor row_major(std::string name, const std::vector<int64_t>& shape, int64_t lanes = 64) {
  const std::string last = "c" + std::to_string(shape.size() - 1);
  const std::string of_stick = std::to_string(lanes);
  std::vector<int64_t> device_size = {ceil_div(shape.back(), lanes)};
  std::vector<std::string> coordinates = {"floor(" + last + "/" + of_stick + ")"};
  for (size_t d = 0; d + 1 < shape.size(); ++d) {
    device_size.push_back(shape[d]);
    coordinates.push_back("c" + std::to_string(d));
  }
  device_size.push_back(lanes);
  coordinates.push_back("Mod(" + last + ", " + of_stick + ")");
  return tensor(std::move(name), device_size, coordinates, 128 / lanes);
}

/// y = f(x), both of this shape.
inline DivisionProblem pointwise(const std::vector<int64_t>& shape) {
  DivisionProblem problem{.op = "neg"};
  for (size_t d = 0; d < shape.size(); ++d) {
    problem.axes.push_back({.name = "c" + std::to_string(d), .extent = shape[d]});
  }
  problem.tensors = {row_major("x", shape), row_major("y", shape)};
  return problem;
}

/// x[m, k] times w[k, n]; an axis of extent 1 is squeezed away.
inline DivisionProblem matmul(int64_t m, int64_t n, int64_t k) {
  DivisionProblem problem{.op = "batchmatmul", .role = OpRole::kMatmul};
  const std::string row = m > 1 ? "m" : "0";
  if (m > 1) problem.axes.push_back({.name = "m", .extent = m});
  problem.axes.push_back({.name = "n", .extent = n});
  problem.axes.push_back({.name = "k", .extent = k});
  problem.tensors = {tensor("x", {ceil_div(k, 64), m, 64}, {"floor(k/64)", row, "Mod(k, 64)"}),
                     tensor("w", {ceil_div(n, 64), k, 64}, {"floor(n/64)", "k", "Mod(n, 64)"}),
                     tensor("y", {ceil_div(n, 64), m, 64}, {"floor(n/64)", row, "Mod(n, 64)"})};
  return problem;
}

/// x[b, m, k] times w[b, k, n].
inline DivisionProblem batched_matmul(int64_t b, int64_t m, int64_t n, int64_t k) {
  DivisionProblem problem{.op = "batchmatmul", .role = OpRole::kMatmul};
  problem.axes = {{.name = "b", .extent = b},
                  {.name = "m", .extent = m},
                  {.name = "n", .extent = n},
                  {.name = "k", .extent = k}};
  problem.tensors = {tensor("x", {m, ceil_div(k, 64), b, 64}, {"m", "floor(k/64)", "b", "Mod(k, 64)"}),
                     tensor("w", {k, ceil_div(n, 64), b, 64}, {"k", "floor(n/64)", "b", "Mod(n, 64)"}),
                     tensor("y", {m, ceil_div(n, 64), b, 64}, {"m", "floor(n/64)", "b", "Mod(n, 64)"})};
  return problem;
}

}  // namespace spyre::test
