#include "spyre/program/linear_form.h"

#include <fmt/format.h>

#include <algorithm>

namespace spyre::program {
namespace {

Error overflow() {
  return Error(ErrorKind::kOutOfRange, "an address computation leaves 64 bits");
}

}  // namespace

LinearForm constant_form(int64_t value) {
  return {.constant = value, .terms = {}};
}

LinearForm atom_form(Atom atom) {
  return {.constant = 0, .terms = {{.atom = atom, .coefficient = 1}}};
}

Result<LinearForm> add(const LinearForm& a, const LinearForm& b) {
  LinearForm out;
  if (__builtin_add_overflow(a.constant, b.constant, &out.constant)) {
    return overflow();
  }
  auto i = a.terms.begin(), j = b.terms.begin();
  while (i != a.terms.end() || j != b.terms.end()) {
    if (j == b.terms.end() || (i != a.terms.end() && i->atom < j->atom)) {
      out.terms.push_back(*i++);
    } else if (i == a.terms.end() || j->atom < i->atom) {
      out.terms.push_back(*j++);
    } else {
      LinearForm::Term term{.atom = i->atom};
      if (__builtin_add_overflow(i++->coefficient, j++->coefficient, &term.coefficient)) {
        return overflow();
      }
      if (term.coefficient != 0) {
        out.terms.push_back(term);
      }
    }
  }
  if (out.terms.size() > kMaxTerms) {
    return Error(ErrorKind::kUnsupported,
                 fmt::format("a sum of {} unknowns, allowed: {}", out.terms.size(), kMaxTerms));
  }
  return out;
}

Result<LinearForm> scale(const LinearForm& a, int64_t factor) {
  LinearForm out;
  if (factor == 0) {
    return out;
  }
  if (__builtin_mul_overflow(a.constant, factor, &out.constant)) {
    return overflow();
  }
  for (LinearForm::Term term : a.terms) {
    if (__builtin_mul_overflow(term.coefficient, factor, &term.coefficient)) {
      return overflow();
    }
    out.terms.push_back(term);
  }
  return out;
}

Result<int64_t> evaluate(const LinearForm& form, const AtomValues& values) {
  int64_t sum = form.constant;
  for (const LinearForm::Term& term : form.terms) {
    const auto index = static_cast<size_t>(term.atom.index);
    int64_t value = values.pool;
    if (term.atom.kind == AtomSource::kParameter) {
      SPYRE_CHECK(index < values.parameters.size(), "a parameter of the program has no value");
      value = values.parameters[index];
    } else if (term.atom.kind == AtomSource::kLoop) {
      SPYRE_CHECK(index < values.loops.size(), "a loop of the program has no counter");
      value = values.loops[index];
    }
    int64_t product = 0;
    if (__builtin_mul_overflow(value, term.coefficient, &product) ||
        __builtin_add_overflow(sum, product, &sum)) {
      return overflow();
    }
  }
  return sum;
}

}  // namespace spyre::program
