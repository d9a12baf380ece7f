#pragma once

#include <cmath>
#include <limits>

/// The formulas that rows of table.def call by name. The card's own approximations are not published; these
/// are the mathematical definitions, computed in float, and the only place to change when more becomes known.
namespace spyre::formulas {

inline constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// Larger and smaller of two, where NaN wins: an invalid value must not disappear in a maximum. Both
/// conditions are always looked at, so that compilers see no branch.
template <typename T>
constexpr T max(T a, T b) {
  const bool first = static_cast<int>(a > b) | static_cast<int>(a != a);
  return first ? a : b;
}
template <typename T>
constexpr T min(T a, T b) {
  const bool first = static_cast<int>(a < b) | static_cast<int>(a != a);
  return first ? a : b;
}

/// The exact ("erf") form: x * Phi(x).
inline float gelu(float x) {
  constexpr float kInverseSqrt2 = 0.70710678118654752440f;
  return 0.5f * x * (1.0f + std::erf(x * kInverseSqrt2));
}

inline float sigmoid(float x) {
  return 1.0f / (1.0f + std::exp(-x));
}

/// log(1 + exp(beta x)) / beta, and x itself once beta x passes the threshold.
inline float softplus(float x, float beta, float threshold) {
  return beta * x > threshold ? x : std::log1p(std::exp(beta * x)) / beta;
}

}  // namespace spyre::formulas
