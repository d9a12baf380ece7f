#include "spyre/codegen/superdsc/save_bundle.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "spyre/base/json.h"
#include "spyre/codegen/superdsc/corpus_for_test.h"

namespace spyre::superdsc {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

class SaveBundle : public testing::Test {
 protected:
  void SetUp() override {
    fs::remove_all(root_);
    fs::create_directories(root_);
  }
  void TearDown() override { fs::remove_all(root_); }

  static Bundle bundle_of(const std::string& kernel) { return write_bundle(corpus_kernel(kernel)).value(); }
  static void write(const fs::path& path, std::string_view text) {
    fs::create_directories(path.parent_path());
    ASSERT_TRUE(write_text(path, text).ok());
  }
  static std::vector<std::string> names_in(const fs::path& folder) {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename());
    std::sort(names.begin(), names.end());
    return names;
  }
  static void expect_holds(const fs::path& folder, const Bundle& bundle) {
    for (const auto& [name, text] : bundle.files) EXPECT_EQ(read_text(folder / name).value(), text) << name;
  }

  const fs::path root_ = fs::path(testing::TempDir()) / fmt::format("bundle{}", ::getpid());
};

TEST_F(SaveBundle, PublishesWholeDirectoriesAndReplacesOldOnes) {
  ASSERT_TRUE(save_bundle(bundle_of("softmax"), root_ / "k").ok());
  ASSERT_TRUE(save_bundle(bundle_of("abs"), root_ / "k" / "").ok());
  expect_holds(root_ / "k", bundle_of("abs"));
  EXPECT_THAT(names_in(root_ / "k"), ElementsAre("bundle.mlir", "manifest.json", "sdsc_0.json",
                                                 "spyreCodeDir", "symbol_kinds.json"));
  EXPECT_THAT(names_in(root_), ElementsAre("k"));
  EXPECT_FALSE(save_bundle(bundle_of("abs"), root_ / "k" / "bundle.mlir" / "no").ok());
  EXPECT_THAT(save_bundle(bundle_of("abs"), root_ / "k" / "bundle.mlir").error().message,
              HasSubstr("bundle.mlir: found a file, allowed: a folder to write"));
}

TEST_F(SaveBundle, TakesAnEmptyFolder) {
  fs::create_directories(root_ / "k");
  ASSERT_TRUE(save_bundle(bundle_of("abs"), root_ / "k").ok());
  expect_holds(root_ / "k", bundle_of("abs"));
}

TEST_F(SaveBundle, LeavesTheFilesOfOthersAlone) {
  write(root_ / "k" / "notes.txt", "mine");
  const Status refused = save_bundle(bundle_of("abs"), root_ / "k");
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message,
              HasSubstr("k: found 'notes.txt' and no manifest.json of a bundle, allowed: a new "
                        "or an empty folder, or one that was written as a bundle"));
  EXPECT_THAT(refused.error().to_string(), HasSubstr("--force"));
  EXPECT_THAT(names_in(root_ / "k"), ElementsAre("notes.txt"));
  // A manifest of something else is no manifest of ours.
  write(root_ / "k" / "manifest.json", R"({"name": "app", "files": ["notes.txt"]})");
  EXPECT_FALSE(save_bundle(bundle_of("abs"), root_ / "k").ok());
}

TEST_F(SaveBundle, ByForceReplacesWhatOnlyABundleHas) {
  for (const char* mine : {"notes.txt", "src/sdsc_7.json", "sdsc_x.json", "spyreCodeDir/notes.txt"}) {
    write(root_ / "k" / mine, "mine");
  }
  for (const char* stale : {"sdsc_7.json", "bundle_0/sdsc_0.json"}) write(root_ / "k" / stale, "old");
  ASSERT_TRUE(save_bundle(bundle_of("abs"), root_ / "k", Overwrite::kForce).ok());
  expect_holds(root_ / "k", bundle_of("abs"));
  for (const char* mine : {"notes.txt", "src/sdsc_7.json", "sdsc_x.json", "spyreCodeDir/notes.txt"}) {
    EXPECT_EQ(read_text(root_ / "k" / mine).value(), "mine") << mine;
  }
  EXPECT_FALSE(fs::exists(root_ / "k" / "sdsc_7.json"));
  EXPECT_FALSE(fs::exists(root_ / "k" / "bundle_0"));
}

TEST_F(SaveBundle, RemovesOnlyNamesOfABundleWhateverTheManifestLists) {
  write(root_ / "outside.txt", "mine");
  write(root_ / "k" / "notes.txt", "mine");
  write(root_ / "k" / "sdsc_3.json", "old");
  write(
      root_ / "k" / "manifest.json",
      R"({"format": "spyre-bundle", "version": 1, "files": ["../outside.txt", "notes.txt", "sdsc_3.json"]})");
  ASSERT_TRUE(save_bundle(bundle_of("abs"), root_ / "k").ok());
  EXPECT_TRUE(fs::exists(root_ / "outside.txt"));
  EXPECT_TRUE(fs::exists(root_ / "k" / "notes.txt"));
  EXPECT_FALSE(fs::exists(root_ / "k" / "sdsc_3.json"));
}

}  // namespace
}  // namespace spyre::superdsc
