#pragma once

#include <span>

#include "spyre/base/result.h"
#include "spyre/program/device_program.h"

namespace spyre::program {

/// Arithmetic on linear forms. Everything is checked: a sum or product that leaves 64 bits, or a form with
/// more than `kMaxTerms` terms, is an error, because bundle text is not to be trusted.
inline constexpr size_t kMaxTerms = 64;

LinearForm constant_form(int64_t value);
LinearForm atom_form(Atom atom);
Result<LinearForm> add(const LinearForm& a, const LinearForm& b);
Result<LinearForm> scale(const LinearForm& a, int64_t factor);

/// Values of the atoms at one moment of a launch.
struct AtomValues {
  std::span<const int64_t> parameters;  ///< in signature order
  int64_t pool = 0;
  std::span<const int64_t> loops;
};

/// The value of a form, or kOutOfRange where it leaves 64 bits.
Result<int64_t> evaluate(const LinearForm& form, const AtomValues& values);

}  // namespace spyre::program
