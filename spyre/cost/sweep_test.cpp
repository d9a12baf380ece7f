// The model against hardware: upstream's measured sweep of decode matmuls under forced splits.
#include <gtest/gtest.h>

#include "spyre/cost/split_score.h"
#include "spyre/cost/test_sweep.h"

namespace spyre {
namespace {

double our_us(const Measured& row) {
  return decode_matmul_time(row.shape, row.split, fitted_rates()).us();
}

TEST(DecodeSweep, OurTimeIsWithinNinePercentInEveryFamily) {
  const auto families = read_sweep();
  ASSERT_EQ(families.size(), 4u);
  for (const auto& [name, rows] : families) {
    const Agreement found = agreement(rows, our_us);
    RecordProperty(name + "_rms_error", std::to_string(found.rms_error));
    RecordProperty(name + "_rank_correlation", std::to_string(found.rank_correlation));
    EXPECT_LT(found.rms_error, 0.09) << name;
    EXPECT_GT(found.rank_correlation, 0.76) << name;
  }
}

TEST(DecodeSweep, AcrossAllFamiliesTheOrderIsNearlyRight) {
  std::vector<Measured> all;
  for (const auto& [name, rows] : read_sweep()) all.insert(all.end(), rows.begin(), rows.end());
  EXPECT_EQ(all.size(), 238u);
  const Agreement found = agreement(all, our_us);
  EXPECT_LT(found.rms_error, 0.075);
  EXPECT_GT(found.rank_correlation, 0.98);
  // Upstream's execution estimate adds compute, memory and partial sums: a ranking, not a time.
  const Agreement score = agreement(all, [](const Measured& row) {
    return score_split(row.shape, row.split, 32, fitted_rates()).execution();
  });
  EXPECT_GT(score.rms_error, 4 * found.rms_error);
}

}  // namespace
}  // namespace spyre
