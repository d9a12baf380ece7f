// Every pointwise row, in every format it has, over shapes that are aligned, padded, broadcast and split.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "spyre/device/exec/op_case.h"

namespace spyre::testing_artifacts {

using namespace exec;  // NOLINT: tests of that layer

namespace {

struct Oracle {
  double (*value)(double x, double y, double z);
  int codes = 0;          ///< allowed distance: 0 where fp32 arithmetic is exact or correctly rounded
  bool positive = false;  ///< inputs must be positive
};

// The textbook meaning of each op, in double precision; constants as the test passes them.
const std::map<std::string_view, Oracle>& oracles() {
  static const std::map<std::string_view, Oracle> table = {
      {"abs", {[](double x, double, double) { return x < 0 ? -x : x; }}},
      {"add", {[](double x, double y, double) { return x + y; }}},
      {"clip", {[](double x, double, double) { return x < -1  ? -1
                                                      : x > 2 ? 2
                                                              : x; }}},
      {"equal", {[](double x, double y, double) { return x == y ? 1.0 : 0.0; }}},
      {"exp", {[](double x, double, double) { return std::exp(x); }, 2}},
      {"floor", {[](double x, double, double) { return std::floor(x); }}},
      {"gelufwd", {[](double x, double, double) { return x * 0.5 * std::erfc(-x / std::sqrt(2.0)); }, 2}},
      {"greaterequal", {[](double x, double y, double) { return x >= y ? 1.0 : 0.0; }}},
      {"greaterthan", {[](double x, double y, double) { return x > y ? 1.0 : 0.0; }}},
      {"lesserequal", {[](double x, double y, double) { return x <= y ? 1.0 : 0.0; }}},
      {"lesserthan", {[](double x, double y, double) { return x < y ? 1.0 : 0.0; }}},
      {"log", {[](double x, double, double) { return std::log(x); }, 2, true}},
      {"maximum", {[](double x, double y, double) { return x > y ? x : y; }}},
      {"minimum", {[](double x, double y, double) { return x < y ? x : y; }}},
      {"mul", {[](double x, double y, double) { return x * y; }}},
      {"neg", {[](double x, double, double) { return -x; }}},
      {"notequal", {[](double x, double y, double) { return x != y ? 1.0 : 0.0; }}},
      {"realdiv", {[](double x, double y, double) { return x / y; }, 0, true}},
      {"reciprocal", {[](double x, double, double) { return 1 / x; }, 0, true}},
      {"relufwd", {[](double x, double, double) { return x > 0 ? x : 0; }}},
      {"rsqrt", {[](double x, double, double) { return 1 / std::sqrt(x); }, 2, true}},
      {"sigmoid", {[](double x, double, double) { return 1 / (1 + std::exp(-x)); }, 2}},
      {"silu", {[](double x, double, double) { return x / (1 + std::exp(-x)); }, 4}},
      {"softplus",
       {[](double x, double, double) { return x * 2 > 3 ? x : std::log1p(std::exp(2 * x)) / 2; }, 4}},
      {"sqrt", {[](double x, double, double) { return std::sqrt(x); }, 0, true}},
      {"sub", {[](double x, double y, double) { return x - y; }}},
      {"tanh", {[](double x, double, double) { return std::tanh(x); }, 2}},
      {"where3", {[](double x, double y, double z) { return x != 0 ? y : z; }}},
  };
  return table;
}

std::vector<std::pair<std::string, float>> constants_for(std::string_view op) {
  if (op == "clip") return {{"clipMin", -1.0f}, {"clipMax", 2.0f}};
  if (op == "softplus") return {{"softplusBeta", 2.0f}, {"softplusThresh", 3.0f}};
  return {};
}

/// A shape in sticks, how it is divided, and how the inputs after the first one are broadcast.
struct PointwiseScene {
  const char* name;
  int64_t rows, sticks;
  int64_t row_splits = 1, stick_splits = 1;
  int64_t columns_short = 0;  ///< logical columns end this many before the padded extent
  std::map<std::string, int> broadcast = {};
  int64_t row_gap = 0;  ///< physical rows beyond those of the op
};
const PointwiseScene kScenes[] = {
    {"aligned", 3, 2},
    {"one core, one stick", 1, 1},
    {"rows over two cores", 4, 1, 2},
    {"sticks over two cores", 3, 2, 1, 2},
    {"rows over 32 cores", 32, 1, 32},
    {"both over 32 cores", 8, 4, 8, 4},
    {"padded columns", 3, 2, 1, 1, 27},
    {"padded columns over two cores", 4, 2, 2, 1, 27},
    {"row vector broadcast", 4, 2, 2, 1, 0, {{"mb", -1}}},
    {"column broadcast", 4, 2, 2, 2, 0, {{"out", -2}}},
    {"scalar broadcast over 32 cores", 32, 1, 32, 1, 0, {{"mb", -1}, {"out", -2}}},
    {"rows with a gap", 4, 3, 2, 3, 0, {}, 5},
};

OpSpec spec_for(const OpInfo& info, DataFormat format, const PointwiseScene& scene) {
  const int64_t eps = elems_per_stick(format);
  OpSpec op{.function = std::string(info.name),
            .dims = {{"mb", scene.rows, scene.row_splits}, {"out", scene.sticks * eps, scene.stick_splits}},
            .constants = constants_for(info.name)};
  for (int i = 0; i <= info.inputs; ++i) {
    TensorSpec t{.order = {"mb", "out"}, .stick_sizes = {eps}, .format = format};
    if (i > 0 && i < info.inputs) {
      t.scale = scene.broadcast;
    }
    if (scene.row_gap != 0) {
      t.gap["mb"] = scene.row_gap + i;
    }
    op.tensors.push_back(std::move(t));
  }
  return op;
}

TEST(Pointwise, EveryRowComputesItsMeaningInEveryFormatAndShape) {
  int cases = 0;
  for (const OpInfo& info : all_ops()) {
    if (info.family != OpFamily::kPointwise) {
      continue;
    }
    for (const DataFormat format : {DataFormat::SEN169_FP16, DataFormat::IEEE_FP32}) {
      if (!info.input_formats.contains(format)) {
        continue;
      }
      const auto oracle = oracles().find(info.name);
      ASSERT_NE(oracle, oracles().end()) << "no oracle for " << info.name;
      for (const PointwiseScene& scene : kScenes) {
        SCOPED_TRACE(fmt::format("{} {} {}", info.name, to_string(format), scene.name));
        OpCase c(spec_for(info, format, scene));
        const auto value = [&](int i, const Point& g) {
          const float v = sample(g, i);
          return oracle->second.positive ? std::fabs(v) + 0.125f : v;
        };
        for (int i = 0; i < info.inputs; ++i) {
          c.fill(i, [&](const Point& g) { return value(i, g); });
        }
        c.run();
        const auto argument = [&](int i, Point g) {
          for (auto& [label, coordinate] : g) {
            coordinate = i < info.inputs && c.op().tensors[i].scale_of(label) < 0 ? 0 : coordinate;
          }
          return i < info.inputs ? value(i, g) : 0.0f;
        };
        const int64_t columns = c.op().dim("out").extent - scene.columns_short;
        c.expect(
            [&](const Point& g) {
              return static_cast<float>(oracle->second.value(argument(0, g), argument(1, g), argument(2, g)));
            },
            oracle->second.codes, [&](const Point& g) { return g.at("out") < columns; });
        ++cases;
      }
    }
  }
  EXPECT_GT(cases, 500);
}

TEST(Pointwise, IntegerSumsAndProductsWrap) {
  for (const char* name : {"addi32toi32", "muli32toi32"}) {
    OpSpec op{.function = name, .dims = {{"mb", 2, 2}, {"out", 32}}};
    op.tensors.assign(3, {.order = {"mb", "out"}, .stick_sizes = {32}, .format = DataFormat::IEEE_INT32});
    OpCase c(op);
    const auto x = [](int64_t i) { return static_cast<uint32_t>(0x7FFFFF00 + i * 9); };
    const auto y = [](int64_t i) { return static_cast<uint32_t>(300 * i + 7); };
    for (int64_t i = 0; i < 64; ++i) {
      c.memory().put_bits(c.op().tensors[0].base, i, DataFormat::IEEE_INT32, x(i));
      c.memory().put_bits(c.op().tensors[1].base, i, DataFormat::IEEE_INT32, y(i));
    }
    c.run();
    for (int64_t i = 0; i < 64; ++i) {
      const uint32_t expected = name[0] == 'a' ? x(i) + y(i) : x(i) * y(i);
      EXPECT_EQ(c.memory().get_bits(c.op().tensors[2].base, i, DataFormat::IEEE_INT32), expected);
    }
  }
}

TEST(Pointwise, MaskedLanesOfExpBecomeZero) {
  // exp(-10000) is 0 in every format: padding of a softmax row adds nothing to its sum.
  OpSpec op{
      .function = "exp", .dims = {{"mb", 2}, {"out", 64}}, .mask = {{"out", {50, 14}}}, .mask_value = -10000};
  op.tensors.assign(2, {.order = {"mb", "out"}});
  OpCase c(op);
  c.fill(0, [](const Point&) { return 1.0f; });
  const OpCounts counts = c.run();
  c.expect([](const Point& g) { return g.at("out") < 50 ? std::exp(1.0f) : 0.0f; });
  EXPECT_EQ(counts.total().vector_elements, 128);
  EXPECT_EQ(counts.total().useful_elements, 100);
}

TEST(Pointwise, ResultsMayOverwriteAnInputInLx) {
  // The result lies where the input was, shifted by nothing: all is read before anything is written.
  OpSpec op{.function = "neg", .dims = {{"mb", 4, 2}, {"out", 64}}};
  op.tensors.assign(2, {.order = {"mb", "out"}, .base = 256, .lx = true});
  OpCase c(op);
  for (int core = 0; core < 2; ++core) {
    for (int i = 0; i < 128; ++i) {
      const uint16_t bits = encode_element(DataFormat::SEN169_FP16, static_cast<float>(i + 1000 * core));
      std::memcpy(c.memory().lx(core).data() + 256 + 2 * i, &bits, 2);
    }
  }
  const OpCounts counts = c.run();
  for (int core = 0; core < 2; ++core) {
    for (int i = 0; i < 128; ++i) {
      uint16_t bits = 0;
      std::memcpy(&bits, c.memory().lx(core).data() + 256 + 2 * i, 2);
      const float stored =
          decode_element(DataFormat::SEN169_FP16,
                         encode_element(DataFormat::SEN169_FP16, static_cast<float>(i + 1000 * core)));
      EXPECT_EQ(decode_element(DataFormat::SEN169_FP16, bits), -stored);
    }
  }
  EXPECT_EQ(counts.total().traffic, (Traffic{.lx_read = 512, .lx_written = 512}));
}

TEST(Pointwise, AResultThatOverlapsItsInputSeesTheOldValues) {
  // The output starts one stick after the input: a naive row by row loop would read what it just wrote.
  OpSpec op{.function = "neg", .dims = {{"mb", 4}, {"out", 64}}};
  op.tensors.assign(2, {.order = {"mb", "out"}});
  op.tensors[0].base = 128;
  op.tensors[1].base = 256;
  OpCase c(op);
  c.fill(0, [](const Point& g) { return static_cast<float>(g.at("mb") + 1); });
  c.run();
  c.expect([](const Point& g) { return -static_cast<float>(g.at("mb") + 1); });
}

}  // namespace
}  // namespace spyre::testing_artifacts
