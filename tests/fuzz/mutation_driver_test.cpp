// The fuzz targets without a fuzzer: the same entry points, fed with changed seeds for a moment in every test
// run. The seed is fixed, so a failure comes back.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <random>

#include "tests/fuzz/entry_points.h"

namespace spyre::fuzz {
namespace {

/// For longer runs: SPYRE_FUZZ_ROUNDS=100000 SPYRE_FUZZ_SEED=7 spyre_fuzz_test --gtest_filter='*graph*'.
int number_from(const char* variable, int fallback) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? fallback : std::atoi(text);
}

const auto kSeed = static_cast<uint32_t>(number_from("SPYRE_FUZZ_SEED", 20261115));
/// Far above what any input needs, far below a hang.
constexpr std::chrono::seconds kLongest{5};

std::string changed(std::string text, const std::vector<std::string>& others, std::mt19937& random) {
  const auto pick = [&](size_t n) { return static_cast<size_t>(random() % std::max<size_t>(n, 1)); };
  static constexpr std::string_view kPieces[] = {"-1",
                                                 "0",
                                                 "1",
                                                 "2",
                                                 "64",
                                                 "128",
                                                 "4611686018427387904",
                                                 "9223372036854775807",
                                                 "-9223372036854775808",
                                                 "1e308",
                                                 "[]",
                                                 "{}",
                                                 "\"\"",
                                                 "null",
                                                 "((((",
                                                 "%"};
  constexpr size_t kNumbers = 9;  // the first of them
  const size_t at = pick(text.size());
  switch (pick(6)) {
    case 0:
      return text.erase(at, 1 + pick(40));
    case 1:
      return text.insert(at, text.substr(pick(text.size()), pick(80)));
    case 2:
      return text.insert(at, kPieces[pick(std::size(kPieces))]);
    case 3: {
      const std::string& other = others[pick(others.size())];
      return text.substr(0, at) + other.substr(pick(other.size()));
    }
    case 4:
      if (!text.empty()) {
        text[at] = static_cast<char>(random());
      }
      return text;
    default: {
      const size_t digit = text.find_first_of("0123456789", at);
      if (digit != std::string::npos) {
        const size_t end = std::min(text.find_first_not_of("0123456789", digit), text.size());
        text.replace(digit, end - digit, kPieces[pick(kNumbers)]);
      }
      return text;
    }
  }
}

class FuzzTarget : public ::testing::TestWithParam<Target> {};

TEST_P(FuzzTarget, ComesBackFromChangedSeeds) {
  std::mt19937 random(kSeed);
  const std::vector<std::string> from = seeds(GetParam().name, SPYRE_CORPUS);
  ASSERT_FALSE(from.empty());
  const int rounds = number_from("SPYRE_FUZZ_ROUNDS", GetParam().rounds);
  for (int round = 0; round < rounds; ++round) {
    SCOPED_TRACE("seed " + std::to_string(kSeed) + ", round " + std::to_string(round));
    std::string text = from[random() % from.size()];
    for (size_t changes = 1 + random() % 3; changes > 0; --changes) {
      text = changed(std::move(text), from, random);
    }
    const auto begin = std::chrono::steady_clock::now();
    try {
      GetParam().run(text);
    } catch (const std::exception& thrown) {
      FAIL() << thrown.what() << " from\n" << text;
    }
    ASSERT_LT(std::chrono::steady_clock::now() - begin, kLongest);
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, FuzzTarget,
                         ::testing::ValuesIn(std::vector<Target>(targets().begin(), targets().end())),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace spyre::fuzz
