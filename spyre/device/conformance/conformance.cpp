#include "spyre/device/conformance/conformance.h"

#include <set>

namespace spyre {

std::vector<DeviceUnderTest>& devices_under_test() {
  static std::vector<DeviceUnderTest> devices;
  return devices;
}

void DeviceConformance::SetUp() {
  const std::string full_name = testing::UnitTest::GetInstance()->current_test_info()->name();
  const std::string name = full_name.substr(0, full_name.find('/'));
  if (const auto reason = GetParam().cannot.find(name); reason != GetParam().cannot.end()) {
    GTEST_SKIP() << reason->second;
  }
  auto made = GetParam().make(toy_card());
  ASSERT_TRUE(made.ok()) << made.error().to_string();
  device_ = std::move(made).value();
}

namespace {

std::set<std::string> names_of_the_suite() {
  std::set<std::string> names;
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  for (int s = 0; s < all.total_test_suite_count(); ++s) {
    const testing::TestSuite& suite = *all.GetTestSuite(s);
    if (std::string(suite.name()).find("DeviceConformance") == std::string::npos) {
      continue;
    }
    for (int t = 0; t < suite.total_test_count(); ++t) {
      const std::string name = suite.GetTestInfo(t)->name();
      names.insert(name.substr(0, name.find('/')));
    }
  }
  return names;
}

TEST(ConformanceSuite, EveryExcuseNamesATestThatExists) {
  const std::set<std::string> names = names_of_the_suite();
  ASSERT_FALSE(devices_under_test().empty());
  for (const DeviceUnderTest& device : devices_under_test()) {
    for (const auto& [test, reason] : device.cannot) {
      EXPECT_TRUE(names.count(test)) << device.name << " excuses itself from '" << test << "'";
      EXPECT_FALSE(reason.empty()) << device.name << " gives no reason for '" << test << "'";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Every, DeviceConformance, testing::ValuesIn(devices_under_test()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace spyre
