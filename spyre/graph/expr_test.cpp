#include "spyre/graph/expr.h"

#include <gmock/gmock.h>

#include <random>

namespace spyre {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string normal(std::string_view text) {
  const auto e = parse_expr(text);
  return e.ok() ? e.value().to_string() : e.error().message;
}

TEST(Expr, PrintsWhatItReads) {
  for (const char* text :
       {"0", "-3", "c0", "floor(c1/64)", "Mod(c1, 64)", "c0 + 3", "2*c0 + ki", "128*c0 - 64",
        "Mod(floor(core_id/4), 2)", "IndirectAccess('idx')", "floor((c0 + 3)/64)"}) {
    EXPECT_EQ(normal(text), text);
  }
}

TEST(Expr, HasOneFormPerValue) {
  EXPECT_EQ(normal("c1 + c0"), "c0 + c1");
  EXPECT_EQ(normal("(c0+1)+2"), "c0 + 3");
  EXPECT_EQ(normal("c0 - c0"), "0");
  EXPECT_EQ(normal("floor(c0/1)"), "c0");
  EXPECT_EQ(normal("Mod(c0,1)"), "0");
  EXPECT_EQ(normal("floor(130/64)"), "2");
  EXPECT_EQ(normal("2*(c0 + 3)"), "2*c0 + 6");
}

TEST(Expr, WholeSticksLeaveAQuotientAndVanishFromARemainder) {
  EXPECT_EQ(normal("floor((c1 + 128)/64)"), "floor(c1/64) + 2");
  EXPECT_EQ(normal("Mod(c1 + 128, 64)"), "Mod(c1, 64)");
  EXPECT_EQ(normal("floor((64*c0 + c1)/64)"), "c0 + floor(c1/64)");
}

TEST(Expr, RefusesWithTheLineAndWhatWasExpected) {
  EXPECT_THAT(normal("c0 +"), HasSubstr("expression:1: found the end, expected a symbol"));
  EXPECT_THAT(normal("sin(c0)"), HasSubstr("unknown function 'sin', allowed are floor, Mod, IndirectAccess"));
  EXPECT_THAT(normal("floor(c0/0)"), HasSubstr("a divisor must be positive"));
  EXPECT_THAT(normal("c0 c1"), HasSubstr("found 'c1', expected the end of the expression"));
  EXPECT_THAT(normal(std::string(1000, '(')), HasSubstr("nest at most 64 deep"));
}

TEST(Expr, ListsSymbolsAndIndexTensorsAtAnyDepth) {
  const Expr e = parse_expr("Mod(floor(a/4) + b, 8) + IndirectAccess('i')").value();
  EXPECT_THAT(e.symbols(), ElementsAre("a", "b"));
  EXPECT_THAT(e.index_tensors(), ElementsAre("i"));
  EXPECT_EQ(parse_expr("64*t + 3").value().coefficient("t"), 64);
  EXPECT_EQ(parse_expr("64*t + 3").value().coefficient("u"), 0);
}

TEST(Expr, EvaluatesAndRoundsDown) {
  const Expr e = parse_expr("Mod(floor(core_id/2), 2)").value();
  EXPECT_EQ(e.evaluate({{"core_id", 3}}).value(), 1);
  EXPECT_EQ(parse_expr("floor((x - 1)/4)").value().evaluate({{"x", 0}}).value(), -1);
  EXPECT_EQ(parse_expr("Mod(x, 4)").value().evaluate({{"x", -1}}).value(), 3);
  EXPECT_THAT(e.evaluate({}).error().message, HasSubstr("no value for 'core_id'"));
  EXPECT_THAT(parse_expr("IndirectAccess('i')").value().evaluate({}).error().message,
              HasSubstr("index tensor 'i'"));
}

// Builds a random expression and, beside it, the function it stands for.
struct Sample {
  Expr expr;
  std::function<int64_t(int64_t, int64_t)> meaning;
};
Sample random_sample(std::mt19937& rng, int depth) {
  const auto pick = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(rng);
  };
  const auto down = [](int64_t a, int64_t d) { return a / d - (a % d < 0 ? 1 : 0); };
  if (depth == 0 || pick(0, 4) == 0) {
    const int64_t c = pick(-70, 70);
    switch (pick(0, 2)) {
      case 0:
        return {Expr::symbol("a"), [](int64_t a, int64_t) { return a; }};
      case 1:
        return {Expr::symbol("b"), [](int64_t, int64_t b) { return b; }};
      default:
        return {Expr::constant(c), [c](int64_t, int64_t) { return c; }};
    }
  }
  const Sample s = random_sample(rng, depth - 1);
  const Sample t = random_sample(rng, depth - 1);
  const int64_t d = pick(1, 9);
  switch (pick(0, 3)) {
    case 0:
      return {s.expr + t.expr, [s, t](int64_t a, int64_t b) { return s.meaning(a, b) + t.meaning(a, b); }};
    case 1:
      return {d * s.expr, [s, d](int64_t a, int64_t b) { return d * s.meaning(a, b); }};
    case 2:
      return {Expr::floor_div(s.expr, d),
              [s, d, down](int64_t a, int64_t b) { return down(s.meaning(a, b), d); }};
    default:
      return {Expr::mod(s.expr, d), [s, d, down](int64_t a, int64_t b) {
                const int64_t v = s.meaning(a, b);
                return v - d * down(v, d);
              }};
  }
}

TEST(Expr, NormalFormKeepsTheValueAndReadsBackEqual) {
  constexpr uint32_t kSeed = 20261115;
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  std::mt19937 rng(kSeed);
  for (int round = 0; round < 2000; ++round) {
    const Sample sample = random_sample(rng, 4);
    const std::string text = sample.expr.to_string();
    const auto back = parse_expr(text);
    ASSERT_TRUE(back.ok()) << text << ": " << back.error().message;
    ASSERT_EQ(back.value(), sample.expr) << text << " became " << back.value().to_string();
    for (const auto& [a, b] : {std::pair{0, 0}, {5, -3}, {-7, 11}, {64, 129}}) {
      ASSERT_EQ(sample.expr.evaluate({{"a", a}, {"b", b}}).value(), sample.meaning(a, b)) << text;
    }
  }
}

TEST(Expr, SymbolsAtZeroLeaveTheirQuotientsToo) {
  EXPECT_EQ(at_zero(parse_expr("100*p0 + r0 + 3").value(), {"r0"}), parse_expr("100*p0 + 3").value());
  EXPECT_EQ(at_zero(parse_expr("floor((p0 + 64*r0)/64) + Mod(r0 + 5, 3)").value(), {"r0"}),
            parse_expr("floor(p0/64) + 2").value());
}

TEST(Expr, IndexTensorsChangeNamesAtOnce) {
  const auto swapped = [](const std::string& name) { return std::string(name == "a" ? "b" : "a"); };
  EXPECT_EQ(
      rename_index_tensors(parse_expr("64*IndirectAccess('a') + IndirectAccess('b') + p0").value(), swapped),
      parse_expr("64*IndirectAccess('b') + IndirectAccess('a') + p0").value());
}

TEST(Expr, ShiftsASymbolWhereverItStands) {
  EXPECT_EQ(shifted(parse_expr("100*a + b").value(), "a", 3), parse_expr("100*a + b + 300").value());
  EXPECT_EQ(shifted(parse_expr("64*floor(a/32) + Mod(a, 32) + b").value(), "a", 160),
            parse_expr("64*floor(a/32) + Mod(a, 32) + b + 320").value());
  EXPECT_EQ(shifted(parse_expr("IndirectAccess('a')").value(), "a", 3),
            parse_expr("IndirectAccess('a')").value());
}

TEST(Expr, NumbersThatCouldOverflowAreRefused) {
  for (const char* text :
       {"9223372036854775807*p0", "4611686018427387904", "4000000*(4000000*p0)", "4398046511104*p0 + p0"}) {
    EXPECT_FALSE(parse_expr(text).ok()) << text;
  }
  EXPECT_TRUE(parse_expr("4398046511104*p0").ok());
}

}  // namespace
}  // namespace spyre
