#pragma once

#include "spyre/forms/steps.h"

/// 32-bit values across sticks: the card restickifies 16-bit values only, and repeats along a stick what is alone in
/// one. A column is a tensor [..., n, 1], an element to a stick; a fold along the stick makes it, and a choice from the
/// diagonal puts its elements side by side again.
namespace spyre::forms {

/// Whole numbers up to here are exact in the card's 16-bit format.
constexpr int64_t kExactIn16Bits = 1024;

/// The column 0, 1, 2, ... as float32.
TensorView row_numbers(Builder& builder, int64_t n);
/// [..., n] -> [..., n, 1]
TensorView as_column(Builder& builder, const TensorView& x);
/// [..., n, 1] -> [..., n]
TensorView as_row(Builder& builder, const TensorView& column);

/// Integers as numbers that float32 holds: the card adds and multiplies integers, and does everything else in floats.
/// low + kBase * high: 70000 is 4464 and 1. That high may be rounded up is all the same, low is then negative.
struct Digits {
  static constexpr double kBase = 0x1p16;
  static constexpr int64_t kExactSums = 128;  ///< as many digits have a sum that float32 holds

  TensorView low, high;
};

Digits digits_of(Builder& builder, const TensorView& x);
Element number_of(const Element& low, const Element& high, HostType dtype);

}  // namespace spyre::forms
