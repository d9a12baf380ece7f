// Recipes, computed step by step as the card would, and judged by the C library.

#include "spyre/passes/select/op_recipes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <functional>

#include "spyre/passes/select/device_run_for_test.h"
#include "spyre/passes/select/select_ops.h"

namespace spyre {
namespace {

using test::Values;

/// y = op(x, ...) of `type`, selected and computed.
Values computed(const std::string& op, const std::string& type, const std::vector<Values>& operands) {
  const size_t n = operands[0].size();
  std::string text = "graph g {\n", loads, names;
  std::map<std::string, Values> inputs;
  for (size_t i = 0; i < operands.size(); ++i) {
    text += fmt::format("  input x{} : {}[{}]\n", i, type, n);
    loads += fmt::format("    v{0} = load x{0}[p0]\n", i);
    names += fmt::format(" v{}", i);
    inputs[fmt::format("x{}", i)] = operands[i];
  }
  text +=
      fmt::format("  buffer y : {}[{}]\n  node y (p0: {}) {{\n{}    v{} = {}{}\n    store y[p0] v{}\n  }}\n",
                  type, n, n, loads, operands.size(), op, names, operands.size());
  const Result<DeviceGraph> selected = select_ops(parse_graph(text + "  return y\n}\n").value());
  EXPECT_TRUE(selected.ok()) << selected.error().to_string();
  return test::DeviceRun::of(selected.value(), inputs);
}

/// s = fold of x along its only loop.
double folded(const std::string& kind, const std::string& type, const Values& x) {
  Graph graph =
      parse_graph(
          fmt::format("graph g {{\n  input x : {0}[{1}]\n  buffer s : {0}[1]\n  node s (; r0: {1}) {{\n"
                      "    v0 = load x[r0]\n    v1 = reduce.{2} v0\n    store s[0] v1\n  }}\n"
                      "  return s\n}}\n",
                      type, x.size(), kind))
          .value();
  const Result<DeviceGraph> selected = select_ops(std::move(graph));
  EXPECT_TRUE(selected.ok()) << selected.error().to_string();
  return test::DeviceRun::of(selected.value(), {{"x", x}})[0];
}

Values along(double low, double high, int steps) {
  Values values;
  for (int i = 0; i <= steps; ++i) values.push_back(static_cast<float>(low + (high - low) * i / steps));
  return values;
}

/// Units in the last place of fp32 between a float and what it should be.
double ulps_off(double found, double exact) {
  if (std::isnan(exact) || std::isinf(static_cast<float>(exact))) {
    const bool same = std::isnan(exact) ? std::isnan(found) : found == static_cast<float>(exact);
    return same ? 0 : std::numeric_limits<double>::infinity();
  }
  const double size = std::max(std::fabs(exact), 0x1p-126);
  return std::fabs(found - exact) / std::exp2(std::floor(std::log2(size)) - 23);
}

struct Function {
  std::string op;
  double low, high;
  double ulps;  // allowed
  std::function<double(double)> exact;
};

TEST(MathRecipes, AreAFewUnitsInTheLastPlaceFromExact) {
  const std::vector<Function> functions = {
      {"sin", -40, 40, 4, [](double x) { return std::sin(x); }},
      {"cos", -40, 40, 4, [](double x) { return std::cos(x); }},
      {"erf", -6, 6, 8, [](double x) { return std::erf(x); }},
      {"log", 1e-30, 1e30, 4, [](double x) { return std::log(x); }},
      {"log", 0.25, 4, 8, [](double x) { return std::log(x); }},
      {"log1p", -0.9, 3, 10, [](double x) { return std::log1p(x); }},
      {"expm1", -20, 20, 4, [](double x) { return std::expm1(x); }},
      {"exp2", -100, 100, 8, [](double x) { return std::exp2(x); }},
      {"tanh", -12, 12, 8, [](double x) { return std::tanh(x); }},
      {"gelu", -4, 8, 64, [](double x) { return 0.5 * x * std::erfc(-x / std::numbers::sqrt2); }},
  };
  for (const Function& f : functions) {
    const Values x = along(f.low, f.high, 1000), y = computed(f.op, "float32", {x});
    for (size_t i = 0; i < x.size(); ++i) {
      EXPECT_LE(ulps_off(y[i], f.exact(x[i])), f.ulps) << fmt::format("{}({}) = {}", f.op, x[i], y[i]);
    }
  }
}

TEST(MathRecipes, KeepTheEndsOfTheRange) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(computed("log", "float32", {{0, 1, kInf}}), (Values{-kInf, 0, kInf}));
  EXPECT_EQ(computed("log1p", "float32", {{-1, 0, kInf}}), (Values{-kInf, 0, kInf}));
  EXPECT_EQ(computed("expm1", "float32", {{-kInf, 0, kInf}}), (Values{-1, 0, kInf}));
  EXPECT_EQ(computed("tanh", "float32", {{-kInf, 0, kInf}}), (Values{-1, 0, 1}));
  EXPECT_EQ(computed("erf", "float32", {{-kInf, 0, kInf}}), (Values{-1, 0, 1}));
  EXPECT_TRUE(std::isnan(computed("log", "float32", {{-1}})[0]));
}

TEST(MathRecipes, RemaindersHaveTheSignThatTheirNameSays) {
  const Values x = {7, -7, 7, -7, 7.5, 0}, y = {3, 3, -3, -3, 2, 5};
  EXPECT_EQ(computed("fmod", "float32", {x, y}), (Values{1, -1, 1, -1, 1.5, 0}));
  EXPECT_EQ(computed("remainder", "float32", {x, y}), (Values{1, 2, -2, -1, 1.5, 0}));
  EXPECT_EQ(computed("floordiv", "float32", {x, y}), (Values{2, -3, -3, 2, 3, 0}));
}

// Numbers that fp32 cannot tell apart, and the ends of 32 bits.
const Values kLarge = {2147483647, -2147483648, 16777217, 16777216, -16777217, 0, 1, -1};
const Values kOther = {2147483646, -2147483647, 16777216, 16777217, -16777216, 3, -2, 7};

int32_t as_int(double value) {
  return static_cast<int32_t>(static_cast<int64_t>(value));
}

TEST(IntegerRecipes, AreExactWhereFloatsAreNot) {
  const std::vector<std::pair<std::string, std::function<int64_t(int32_t, int32_t)>>> operations = {
      {"maximum", [](int32_t a, int32_t b) { return std::max(a, b); }},
      {"minimum", [](int32_t a, int32_t b) { return std::min(a, b); }},
      {"add", [](int32_t a, int32_t b) { return static_cast<int32_t>(static_cast<uint32_t>(a) + b); }},
      {"sub", [](int32_t a, int32_t b) { return static_cast<int32_t>(static_cast<uint32_t>(a) - b); }},
      {"mul", [](int32_t a, int32_t b) { return static_cast<int32_t>(static_cast<uint32_t>(a) * b); }},
      {"bitwise_and", [](int32_t a, int32_t b) { return a & b; }},
      {"bitwise_or", [](int32_t a, int32_t b) { return a | b; }},
      {"bitwise_xor", [](int32_t a, int32_t b) { return a ^ b; }},
  };
  for (const auto& [op, exact] : operations) {
    const Values found = computed(op, "int32", {kLarge, kOther});
    for (size_t i = 0; i < kLarge.size(); ++i) {
      EXPECT_EQ(found[i], static_cast<double>(exact(as_int(kLarge[i]), as_int(kOther[i]))))
          << fmt::format("{}({}, {})", op, kLarge[i], kOther[i]);
    }
  }
}

TEST(IntegerRecipes, EveryQuotientAtTheEndsOfTheRangeIsExact) {
  const std::vector<int64_t> ends = {
      -2147483648, -2147483647, -2147483646, -2147483584, -2147483521, -1073741825, -1073741824, -16777217,
      -16777216,   -65537,      -3,          -2,          -1,          1,           2,           3,
      7,           65536,       16777217,    1073741823,  1073741824,  2147483519,  2147483584,  2147483647};
  Values x, y;
  for (const int64_t a : ends) {
    for (const int64_t b : ends) {
      x.push_back(static_cast<double>(a));
      y.push_back(static_cast<double>(b));
    }
    x.push_back(0);
    y.push_back(static_cast<double>(a));
  }
  const auto floor = [](int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0); };
  const std::vector<std::pair<std::string, std::function<int64_t(int64_t, int64_t)>>> operations = {
      {"truncdiv", [](int64_t a, int64_t b) { return a / b; }},
      {"fmod", [](int64_t a, int64_t b) { return a % b; }},
      {"floordiv", floor},
      {"remainder", [&](int64_t a, int64_t b) { return a - b * floor(a, b); }},
  };
  for (const auto& [op, exact] : operations) {
    const Values found = computed(op, "int32", {x, y});
    for (size_t i = 0; i < x.size(); ++i) {
      const int64_t wanted = exact(static_cast<int64_t>(x[i]), static_cast<int64_t>(y[i]));
      EXPECT_EQ(found[i], static_cast<double>(as_int(static_cast<double>(wanted))))  // 2^31 wraps
          << fmt::format("{}({}, {})", op, x[i], y[i]);
    }
  }
}

TEST(IntegerRecipes, FoldsAreExact) {
  EXPECT_EQ(folded("max", "int32", kLarge), 2147483647);
  EXPECT_EQ(folded("min", "int32", kLarge), -2147483648);
  EXPECT_EQ(folded("max", "int32", {16777216, 16777217, 3}), 16777217);
  EXPECT_EQ(folded("sum", "int32", {16777217, 16777217, 5, -1}), 33554438);
  EXPECT_EQ(folded("prod", "int32", {46341, 46341, -1}), as_int(-46341.0 * 46341));  // wraps
}

TEST(IntegerRecipes, ShiftsLikePyTorch) {
  EXPECT_EQ(computed("bitwise_right_shift", "int32", {{-5, 5, 2147483647, -2147483648}, {1, 1, 30, 31}}),
            (Values{-3, 2, 1, -1}));
  EXPECT_EQ(computed("bitwise_left_shift", "int32", {{3, -1, 1}, {4, 31, 31}}),
            (Values{48, -2147483648, -2147483648}));
}

/// x (2 x 3) times w (3 x 2), in so many parts, selected and computed.
Values multiplied(const std::string& type, int parts, const Values& x, const Values& w) {
  Graph graph =
      parse_graph(fmt::format("graph g {{\n  input x : {0}[2, 3]\n  input w : {0}[3, 2]\n"
                              "  buffer y : {0}[2, 2]\n  node y (p0: 2, p1: 2; r0: 3) {{\n"
                              "    v0 = load x[3*p0 + r0]\n    v1 = load w[2*r0 + p1]\n"
                              "    v2 = reduce.dot v0 v1 {{parts: {1}}}\n    store y[2*p0 + p1] v2\n"
                              "  }}\n  return y\n}}\n",
                              type, parts))
          .value();
  const Result<DeviceGraph> selected = select_ops(std::move(graph));
  EXPECT_TRUE(selected.ok()) << selected.error().to_string();
  return test::DeviceRun::of(selected.value(), {{"x", x}, {"w", w}});
}

/// The sums of products, or of their magnitudes.
Values sums_of_products(const Values& x, const Values& w, bool magnitudes = false) {
  Values sums;
  for (const size_t i : {0, 1}) {
    for (const size_t j : {0, 1}) {
      double sum = 0;
      for (const size_t k : {0, 1, 2}) {
        const double product = x[3 * i + k] * w[2 * k + j];
        sum += magnitudes ? std::fabs(product) : product;
      }
      sums.push_back(sum);
    }
  }
  return sums;
}

TEST(WideProducts, EachPartBringsTenBitsWhateverTheRowsRange) {
  // One row far above and one column far below what 16 bits hold; thirds fill every bit of a float.
  const Values x = {1e20f / 3, -1e20f / 7, 3e19f, 1.0f / 3, 2.0f / 3, -1.0f / 7};
  const Values w = {1.0f / 3, 1e-20f / 3, 5.0f / 7, 1e-20f / 7, -9.0f / 11, 3e-20f};
  const Values exact = sums_of_products(x, w), size = sums_of_products(x, w, true);
  for (const auto& [parts, allowed] : {std::pair{1, 0x1p-8}, {2, 0x1p-18}, {3, 0x1p-21}}) {
    const Values found = multiplied("float32", parts, x, w);
    for (size_t i = 0; i < exact.size(); ++i)
      EXPECT_LE(std::fabs(found[i] - exact[i]), allowed * size[i]) << fmt::format("{} parts, {}", parts, i);
  }
}

TEST(WideProducts, OfIntegersAreExactAndWrap) {
  const Values x = {2147483647, -2147483648, 65537, 16777217, -3, 46341};
  const Values w = {1, 65536, 1, -2147483648, 3, 46341};
  const Values found = multiplied("int32", 3, x, w);
  for (const size_t i : {0, 1}) {
    for (const size_t j : {0, 1}) {
      uint32_t sum = 0;
      for (const size_t k : {0, 1, 2})
        sum += static_cast<uint32_t>(as_int(x[3 * i + k])) * static_cast<uint32_t>(as_int(w[2 * k + j]));
      EXPECT_EQ(found[2 * i + j], static_cast<int32_t>(sum)) << i << ", " << j;
    }
  }
}

/// Whether a body of this operation alone, of so many operands, becomes operations of the card.
bool is_selected(std::string_view op, std::string_view type, int operands) {
  std::string loads, names;
  for (int i = 0; i < operands; ++i) {
    loads += fmt::format(" v{} = load x[p0]", i);
    names += fmt::format(" v{}", i);
  }
  return select_ops(
             parse_graph(
                 fmt::format("graph g {{ input x : {0}[8] buffer y : {0}[8] node y (p0: 8) {{{1} v{2} = "
                             "{3}{4} {{size: 8}} store y[p0] v{2} }} return y }}",
                             type, loads, operands, op, names))
                 .value())
      .ok();
}

TEST(Recipes, EveryOperationOfABodyHasOne) {
#define SPYRE_ELEMENTWISE(name)                                                              \
  EXPECT_TRUE(std::ranges::any_of(std::vector{1, 2, 3, 5}, [](int operands) {                \
    return is_selected(#name, "float32", operands) || is_selected(#name, "int64", operands); \
  })) << #name;
#include "spyre/graph/body_ops.def"
}

}  // namespace
}  // namespace spyre
