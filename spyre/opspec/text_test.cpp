#include "spyre/opspec/text.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <filesystem>
#include <random>

#include "spyre/base/json.h"
#include "spyre/opspec/validate.h"

namespace spyre {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

std::vector<std::filesystem::path> corpus() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(SPYRE_OPSPEC_CORPUS))
    files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

std::string failure(std::string_view text) {
  const auto kernel = parse_kernel(text, "k.opspec");
  return kernel.ok() ? "no failure" : kernel.error().message;
}

TEST(OpSpecText, CorpusReadsBackEqualAndIsValid) {
  ASSERT_GE(corpus().size(), 30u);
  for (const auto& path : corpus()) {
    SCOPED_TRACE(path.filename());
    const std::string text = read_text(path).value();
    EXPECT_THAT(text, StartsWith("# ")) << "a corpus file starts by saying what it shows";
    const auto kernel = parse_kernel(text, path.filename().string());
    ASSERT_TRUE(kernel.ok()) << kernel.error().to_string();
    const auto again = parse_kernel(to_text(kernel.value()), "printed");
    ASSERT_TRUE(again.ok()) << again.error().to_string();
    EXPECT_EQ(again.value(), kernel.value());
    const Status valid = validate(kernel.value());
    EXPECT_TRUE(valid.ok()) << valid.error().to_string();
  }
}

TEST(OpSpecText, WorkedBroadcastAddHasTheFieldsOfTheReference) {
  const OpSpec op = parse_op(R"(op add {
      iteration_space={c0: (4, 2), c1: (128, 1)}
      core_id_to_work_slice={c0: Mod(core_id, 2), c1: 0}
      in b { device_size=[2, 64] coords=[floor(c1/64), Mod(c1, 64)] hbm=1 }
    })",
                             "t")
                        .value();
  EXPECT_EQ(op.op, OpId::add);
  EXPECT_FALSE(op.is_reduction);
  EXPECT_EQ(op.iteration_space[0], (IterationDim{"c0", 4, 2, ""}));
  EXPECT_EQ(op.core_id_to_work_slice[0].second, Expr::mod(Expr::symbol("core_id"), 2));
  EXPECT_EQ(op.args[0].device_size, (std::vector<int64_t>{2, 64}));
  EXPECT_EQ(op.args[0].arg_index(), 1);
}

TEST(OpSpecText, PrintsOneLinePerTensorAndLeavesDefaultsOut) {
  const char* text =
      "op neg {\n"
      "  iteration_space={c0: (64, 1)}\n"
      "  core_id_to_work_slice={c0: 0}\n"
      "  in X { device_size=[1, 64] coords=[floor(c0/64), Mod(c0, 64)] hbm=0 }\n"
      "  out Y { device_size=[1, 64] coords=[floor(c0/64), Mod(c0, 64)] lx=128 kernel_local=True }\n"
      "}\n";
  EXPECT_EQ(to_text(parse_op(text, "t").value()), text);
}

TEST(OpSpecText, ArgumentsSayWhereViewsLieAndWhatConstantsHold) {
  for (const char* fill : {"(1.5, 0)", "(nan, 0)", "(-inf, 0)", "(-0, 0)", "(7, -2)"}) {
    const std::string text =
        std::string(
            "kernel k {\n"
            "  argument 0 { role=input dtype=float16 shape=[2, 64] device_size=[1, 6, 64] "
            "stride_map=[64, 64, 1] stride=[128, 1] offset=64 storage=384 }\n"
            "  argument 1 { role=constant dtype=float16 shape=[] device_size=[1, 64] "
            "stride_map=[-1, -1] fill=") +
        fill + " }\n}\n";
    const Kernel kernel = parse_kernel(text, "t").value();
    EXPECT_EQ(kernel.arguments[0].stride, (std::vector<int64_t>{128, 1}));
    EXPECT_EQ(kernel.arguments[0].offset, 64);
    EXPECT_TRUE(kernel.arguments[1].fill.has_value());
    EXPECT_EQ(to_text(kernel), text);
    EXPECT_EQ(parse_kernel(to_text(kernel), "t").value(), kernel);
  }
}

TEST(OpSpecText, FailuresNameFileLineFoundAndExpected) {
  EXPECT_EQ(failure("kernel k {\n  opp add {}\n}"), "k.opspec:2: found 'opp', expected 'op', 'loop' or '}'");
  EXPECT_THAT(failure("kernel k {\n op mish { } }"),
              HasSubstr("op 'mish' is not an op function of this card"));
  EXPECT_THAT(failure("kernel k { op add { colour=3 } }"), HasSubstr("an op has no attribute 'colour'"));
  EXPECT_THAT(failure("kernel k { op add { is_reduction=True is_reduction=True } }"),
              HasSubstr("attribute 'is_reduction' appears twice"));
  EXPECT_THAT(failure("kernel k { op add { in X { } } }"),
              HasSubstr("tensor 'X' needs a place: hbm, lx or hbm_pool"));
  EXPECT_THAT(failure("kernel k { op add { in X { hbm=0 lx=0 } } }"), HasSubstr("tensor 'X' has two places"));
  EXPECT_THAT(failure("kernel k { op add { in X { format=FP17 } } }"),
              HasSubstr("unknown data format 'FP17'"));
  EXPECT_THAT(failure("kernel k { op add { iteration_space={a: (s0, 1)} } }"),
              HasSubstr("extent 's0' has no entry in symbolic_dim_bounds"));
  EXPECT_THAT(failure("kernel k { argument 0 { role=friend } }"), HasSubstr("unknown role 'friend'"));
  EXPECT_THAT(failure("kernel k { } trailing"), HasSubstr("expected the end of the text"));
  EXPECT_THAT(failure("kernel k { op add { debug_handle={aten_op: 'x } }"), HasSubstr("a quote is opened"));
  EXPECT_THAT(failure("kernel k { $ }"), HasSubstr("unexpected character '$'"));
}

// A kernel with every field filled at random; it need not be valid, only printable.
class RandomKernel {
 public:
  explicit RandomKernel(uint32_t seed) : rng_(seed) {}

  Kernel kernel() {
    Kernel k{.name = word(), .pool_bytes = pick(0, 1) * 128};
    for (int64_t i = pick(0, 3); i > 0; --i) k.arguments.push_back(argument(i));
    k.body = items(2);
    return k;
  }

 private:
  int64_t pick(int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(rng_); }
  std::string word() { return fmt::format("w{}", pick(0, 99)); }
  std::string prose() { return pick(0, 1) == 0 ? "it's a \\ test" : word(); }
  std::vector<int64_t> integers() {
    std::vector<int64_t> out;
    for (int64_t i = pick(0, 3); i > 0; --i) out.push_back(pick(-1, 300));
    return out;
  }
  Expr expr() {
    const Expr s = Expr::symbol(word());
    switch (pick(0, 4)) {
      case 0:
        return Expr::constant(pick(-9, 9));
      case 1:
        return Expr::floor_div(s + Expr::constant(pick(0, 3)), 64);
      case 2:
        return Expr::mod(s, 64) + pick(2, 5) * Expr::symbol("z");
      case 3:
        return Expr::indirect(word());
      default:
        return s;
    }
  }
  LaunchArgument argument(int64_t index) {
    LaunchArgument a{.index = index, .role = static_cast<ArgumentRole>(pick(0, 2)), .dtype = word()};
    a.shape = {pick(1, 9), word()};
    a.device_size = integers();
    a.stride_map = integers();
    a.format = static_cast<DataFormat>(pick(0, 3));
    a.arrangement = static_cast<ElementArrangement>(pick(0, 5));
    return a;
  }
  TensorArg tensor(bool is_input) {
    TensorArg t{.name = word(), .is_input = is_input, .format = static_cast<DataFormat>(pick(0, 12))};
    t.device_size = integers();
    for (size_t i = 0; i < t.device_size.size(); ++i) t.device_coordinates.push_back(expr());
    t.allocation = {static_cast<Place>(pick(0, 2)), pick(0, 1 << 20)};
    t.arrangement = static_cast<ElementArrangement>(pick(0, 5));
    if (pick(0, 1) == 0) t.tile_advance = expr();
    if (pick(0, 1) == 0) t.work_division = {{"a", pick(1, 4), expr()}, {"b", 1, Expr()}};
    t.kernel_local = pick(0, 1) == 0;
    return t;
  }
  OpSpec op() {
    OpSpec o{.op = all_ops()[static_cast<size_t>(pick(0, std::ssize(all_ops()) - 1))].id,
             .is_reduction = pick(0, 1) == 0};
    o.iteration_space = {{"a", pick(1, 500), pick(1, 4), ""}, {"b", 512, 1, pick(0, 1) == 0 ? "s0" : ""}};
    o.core_id_to_work_slice = {{"a", expr()}, {"b", expr()}};
    for (int64_t i = pick(0, 4); i > 0; --i) o.args.push_back(tensor(i != 1));
    if (pick(0, 1) == 0) o.constants = {{"eps", 1e-5}, {"x", -0.1}, {"big", 1.5e300}};
    if (pick(0, 1) == 0) o.window = WindowParams{pick(1, 3), 2, 3, 3, 1, 0, 1, 2};
    if (pick(0, 1) == 0) o.tiled_symbols = {{"a", "b"}, {}};
    if (pick(0, 1) == 0) o.tiled_symbol_trip_counts = {{"a", pick(1, 9)}};
    o.symbolic_dim_bounds = {{"s0", {512, pick(1, 64)}}};
    if (pick(0, 1) == 0) o.node_output_ranges = {1, 2, 3, pick(4, 9)};
    if (pick(0, 1) == 0) o.completed_producer_cores = {0, pick(1, 31)};
    if (pick(0, 1) == 0) o.receiving_cores = pick(1, 32);
    if (pick(0, 1) == 0) {
      o.debug_handle =
          DebugHandle{pick(0, INT64_MAX), prose(), 1, 2, 3, 4, prose(), {prose()}, {}, {"p", prose()}};
    }
    return o;
  }
  std::vector<KernelItem> items(int depth) {
    std::vector<KernelItem> out;
    for (int64_t i = pick(0, 3); i > 0; --i) {
      if (depth > 0 && pick(0, 2) == 0) {
        LoopSpec loop{.count = pick(1, 9)};
        if (pick(0, 1) == 0) loop = {.count = 8, .count_symbol = "s1", .bound = {64, 8}};
        loop.body = items(depth - 1);
        out.emplace_back(std::move(loop));
      } else {
        out.emplace_back(op());
      }
    }
    return out;
  }

  std::mt19937 rng_;
};

TEST(OpSpecText, RandomKernelsReadBackEqual) {
  for (uint32_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const Kernel kernel = RandomKernel(seed).kernel();
    const std::string text = to_text(kernel);
    const auto again = parse_kernel(text, "printed");
    ASSERT_TRUE(again.ok()) << again.error().to_string() << "\n" << text;
    ASSERT_EQ(again.value(), kernel) << text;
    ASSERT_EQ(to_text(again.value()), text);
  }
}

TEST(OpSpecText, BrokenTextIsRefusedNotFatal) {
  const std::string text = to_text(RandomKernel(11).kernel());
  for (size_t cut = 0; cut + 2 < text.size(); cut += 3) {
    EXPECT_FALSE(parse_kernel(text.substr(0, cut), "cut").ok()) << cut;
  }
}

TEST(CoreMap, FirstDimensionVariesFastestAndMatmulPutsKFirst) {
  const std::vector<IterationDim> space = {{"m", 128, 2, ""}, {"n", 128, 1, ""}, {"k", 256, 2, ""}};
  const auto matmul = default_core_map(space, true);
  EXPECT_EQ(matmul[0].second.to_string(), "Mod(floor(core_id/2), 2)");
  EXPECT_EQ(matmul[1].second.to_string(), "0");
  EXPECT_EQ(matmul[2].second.to_string(), "Mod(core_id, 2)");
  const auto plain = default_core_map(space, false);
  EXPECT_EQ(plain[0].second.to_string(), "Mod(core_id, 2)");
  EXPECT_EQ(plain[2].second.to_string(), "Mod(floor(core_id/2), 2)");
  EXPECT_TRUE(default_core_map({}, true).empty());
}

}  // namespace
}  // namespace spyre
