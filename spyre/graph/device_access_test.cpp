#include "spyre/graph/device_access.h"

#include <gmock/gmock.h>

namespace spyre {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> coordinates(const NormalAccess& access, size_t operand) {
  std::vector<std::string> text;
  for (const Expr& e : access.operands[operand].coordinates(access.loops)) text.push_back(e.to_string());
  return text;
}

DeviceLayout fp16(std::vector<int64_t> size, std::vector<int64_t> map) {
  return DeviceLayout::raw(std::move(size), std::move(map), DataFormat::SEN169_FP16);
}

Result<NormalAccess> normalize(const std::vector<Loop>& loops, const DeviceLayout& layout,
                               std::string_view index) {
  const Expr e = parse_expr(index).value();
  const OperandIndex operand{&layout, &e};
  return normalize_access(loops, std::span(&operand, 1));
}

TEST(DeviceAccess, AFlattenedTensorCutsTheLoopWhereItsRowsEnd) {
  const DeviceLayout x = fp16({10, 4, 50, 64}, {200, 64, 2000, 1});
  const DeviceLayout y = fp16({4, 500, 64}, {64, 200, 1});
  const Expr index = parse_expr("200*p + s").value();
  const std::vector<OperandIndex> operands = {{&x, &index}, {&y, &index}};
  const NormalAccess access = normalize_access({{"p", 500}, {"s", 200}}, operands).value();
  EXPECT_THAT(coordinates(access, 0), ElementsAre("p_0", "floor(s/64)", "p_1", "Mod(s, 64)"));
  EXPECT_THAT(coordinates(access, 1), ElementsAre("floor(s/64)", "p_1", "p_0", "Mod(s, 64)"));
  EXPECT_THAT(access.operands[1].device_size(), ElementsAre(4, 50, 10, 64));
  ASSERT_EQ(access.loops.size(), 3U);
  EXPECT_EQ(access.loops[0].name, "p_1");
  EXPECT_EQ(access.loops[0].extent, 50);
}

TEST(DeviceAccess, HeadsAreGroupsOfTiles) {
  // (64, 4096) read as 32 heads of 128.
  const auto access =
      normalize({{"h", 32}, {"l", 64}, {"d", 128}}, fp16({64, 64, 64}, {64, 4096, 1}), "4096*l + 128*h + d")
          .value();
  EXPECT_THAT(coordinates(access, 0), ElementsAre("h", "floor(d/64)", "l", "Mod(d, 64)"));
  EXPECT_THAT(access.operands[0].device_size(), ElementsAre(32, 2, 64, 64));
}

TEST(DeviceAccess, ASliceOnStickBoundariesIsAnOffset) {
  const auto access =
      normalize({{"r", 2}, {"c", 64}}, fp16({3, 6, 64}, {64, 192, 1}), "192*r + c + 448").value();
  EXPECT_THAT(coordinates(access, 0), ElementsAre("floor(c/64) + 1", "r + 2", "Mod(c, 64)"));
}

TEST(DeviceAccess, EveryOtherRowSplitsTheRowsInTwo) {
  const auto access = normalize({{"r", 3}, {"c", 64}}, fp16({1, 6, 64}, {64, 64, 1}), "128*r + c").value();
  EXPECT_THAT(coordinates(access, 0), ElementsAre("floor(c/64)", "r", "0", "Mod(c, 64)"));
  EXPECT_THAT(access.operands[0].device_size(), ElementsAre(1, 3, 2, 64));
}

TEST(DeviceAccess, AQuotientAndARemainderCutTheirLoop) {
  const auto access =
      normalize({{"p", 256}}, fp16({2, 2, 64}, {64, 128, 1}), "128*floor(p/128) + Mod(p, 128)").value();
  EXPECT_THAT(coordinates(access, 0), ElementsAre("floor(p_0/64)", "p_1", "Mod(p_0, 64)"));
}

TEST(DeviceAccess, AColumnOfOneReadsOneElementAStick) {
  const auto access = normalize({{"r", 4}, {"c", 100}}, fp16({1, 4, 64}, {-1, 1, -1}), "r").value();
  EXPECT_THAT(coordinates(access, 0), ElementsAre("0", "r", "0"));
  EXPECT_EQ(access.operands[0].lane, -1);
}

TEST(DeviceAccess, RefusesWhatTheCardCannotAddress) {
  const DeviceLayout rows = fp16({3, 6, 64}, {64, 192, 1});
  const auto reason = [&](const std::vector<Loop>& loops, std::string_view index) {
    return normalize(loops, rows, index).error().message;
  };
  EXPECT_THAT(reason({{"c", 64}}, "c + 32"), HasSubstr("starts inside a stick"));
  EXPECT_THAT(reason({{"r", 6}}, "960 - 192*r"), HasSubstr("runs backwards"));
  EXPECT_THAT(reason({{"a", 6}, {"b", 32}}, "32*a + b"), HasSubstr("a stick is shared by two loops"));
  EXPECT_THAT(reason({{"c", 96}}, "2*c"), HasSubstr("a stick is shared by two loops"));
}

}  // namespace
}  // namespace spyre
