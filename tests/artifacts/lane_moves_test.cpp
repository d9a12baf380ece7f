#include <gmock/gmock.h>

#include "tests/lx/planned_run.h"

/// Programs whose layouts differ in more than the card turns by itself, compiled whole, run under the checker, and compared
/// with the same arithmetic on the host.
namespace spyre {
namespace {

std::vector<float> floats_of(const std::vector<std::byte>& bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

std::vector<float> input(const CompiledGraph& compiled, size_t i) {
  const KernelArgument& argument = compiled.arguments[i];
  const std::vector<std::byte> host = lx_test::host_values(argument, static_cast<unsigned>(i) + 1);
  if (argument.dtype == HostType::kFloat32) return floats_of(host);
  std::vector<float> values(host.size() / 2);
  for (size_t k = 0; k < values.size(); ++k) {
    uint16_t bits = 0;
    std::memcpy(&bits, host.data() + 2 * k, 2);
    values[k] = fp32_from_fp16(bits);
  }
  return values;
}

struct Shape {
  int64_t rows, columns;
};

class AroundAStick : public testing::TestWithParam<Shape> {
 protected:
  static std::string replaced(std::string text) {
    const auto put = [&](const std::string& name, int64_t value) {
      for (size_t at = text.find(name); at != std::string::npos; at = text.find(name, at))
        text.replace(at, name.size(), std::to_string(value));
    };
    put("ROWS", GetParam().rows);
    put("COLUMNS", GetParam().columns);
    return text;
  }

  static CompiledGraph compiled(const std::string& text) {
    Result<CompiledGraph> result = compile(parse_graph(replaced(text)).value(), {});
    EXPECT_TRUE(result.ok()) << (result.ok() ? "" : result.error().to_string());
    return std::move(result).value();
  }
};

TEST_P(AroundAStick, WordsAreTransposedBesideASum) {
  const CompiledGraph made = compiled(R"(graph g {
  input x : float32[ROWS, COLUMNS] stride=[COLUMNS, 1]
  input y : float32[COLUMNS, ROWS] stride=[ROWS, 1]
  buffer z : float32[COLUMNS, ROWS] stride=[ROWS, 1]
  node z (p0: COLUMNS, p1: ROWS) {
    v0 = load x[p0 + COLUMNS*p1]
    v1 = load y[ROWS*p0 + p1]
    v2 = add v0 v1
    store z[ROWS*p0 + p1] v2
  }
  return z
}
)");
  const lx_test::Executed run = lx_test::run(made);
  EXPECT_TRUE(run.findings.empty()) << to_string(run.findings.front());
  const auto [rows, columns] = GetParam();
  const std::vector<float> x = input(made, 0), y = input(made, 1), z = floats_of(run.outputs[0]);
  for (int64_t c = 0; c < columns; ++c) {
    for (int64_t r = 0; r < rows; ++r) {
      const auto at = static_cast<size_t>(c * rows + r);
      ASSERT_EQ(z[at], x[static_cast<size_t>(r * columns + c)] + y[at]) << c << ", " << r;
    }
  }
}

// What is widened lies in another order than what has always had 32 bits.
TEST_P(AroundAStick, WidenedValuesAreAddedToFloatsFromElsewhere) {
  const CompiledGraph made = compiled(R"(graph g {
  input x : float16[ROWS, COLUMNS] stride=[COLUMNS, 1]
  input y : float32[ROWS, COLUMNS] stride=[COLUMNS, 1]
  buffer z : float32[ROWS, COLUMNS] stride=[COLUMNS, 1]
  node z (p0: ROWS, p1: COLUMNS) {
    v0 = load x[COLUMNS*p0 + p1]
    v1 = to_dtype v0 : float32
    v2 = load y[COLUMNS*p0 + p1]
    v3 = add v1 v2
    store z[COLUMNS*p0 + p1] v3
  }
  return z
}
)");
  const lx_test::Executed run = lx_test::run(made);
  EXPECT_TRUE(run.findings.empty()) << to_string(run.findings.front());
  const std::vector<float> x = input(made, 0), y = input(made, 1), z = floats_of(run.outputs[0]);
  for (size_t i = 0; i < z.size(); ++i)
    ASSERT_NEAR(z[i], x[i] + y[i], 2e-3) << i;  // x has 9 bits on the card
}

INSTANTIATE_TEST_SUITE_P(Lengths, AroundAStick,
                         testing::Values(Shape{1, 33}, Shape{31, 5}, Shape{32, 64}, Shape{33, 70},
                                         Shape{63, 65}, Shape{64, 32}, Shape{65, 127}, Shape{128, 129},
                                         Shape{3, 1}));

}  // namespace
}  // namespace spyre
