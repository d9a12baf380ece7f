#include "spyre/runtime/program_cache.h"

#include <gmock/gmock.h>

#include <thread>

#include "spyre/runtime/test_kernel.h"

namespace spyre {
namespace {

std::string image_of(int64_t rows) {
  TestKernel kernel = unary_kernel("neg", rows);
  kernel.correction = 0;
  return kernel.image();
}

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

TEST(ProgramCache, AnImageIsDecodedOnce) {
  ProgramCache cache(toy_card());
  const std::string image = image_of(2);
  const auto first = cache.get(bytes_of(image));
  ASSERT_OK(first);
  const std::string copy = image + "bytes behind it do not matter";
  EXPECT_EQ(cache.get(bytes_of(copy)).value(), first.value());
  EXPECT_EQ(cache.stats().hits, 1);
  EXPECT_EQ(cache.stats().misses, 1);
}

TEST(ProgramCache, OneByteMakesAnotherProgram) {
  ProgramCache cache(toy_card());
  EXPECT_NE(cache.get(bytes_of(image_of(2))).value(), cache.get(bytes_of(image_of(3))).value());
  EXPECT_EQ(cache.stats().programs, 2u);
}

TEST(ProgramCache, WhatCannotBeDecodedIsNotKept) {
  ProgramCache cache(toy_card());
  TestKernel kernel = unary_kernel("neg");
  kernel.files["sdsc_0.json"] = "{";
  kernel.correction = 0;
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(cache.get(bytes_of(kernel.image())).error().kind, ErrorKind::kParse);
  }
  EXPECT_EQ(cache.stats().programs, 0u);
  EXPECT_EQ(cache.get({}).error().kind, ErrorKind::kParse);
}

TEST(ProgramCache, ForgetsTheLeastRecentlyUsed) {
  ProgramCache cache(toy_card(), {.programs = 2});
  const std::string a = image_of(1), b = image_of(2), c = image_of(3);
  const LoadedProgramRef kept = cache.get(bytes_of(a)).value();
  ASSERT_OK(cache.get(bytes_of(b)));
  ASSERT_OK(cache.get(bytes_of(a)));
  ASSERT_OK(cache.get(bytes_of(c)));  // b goes
  EXPECT_EQ(cache.stats().programs, 2u);
  EXPECT_EQ(cache.get(bytes_of(a)).value(), kept);
  EXPECT_EQ(cache.stats().misses, 3);
  ASSERT_OK(cache.get(bytes_of(b)));
  EXPECT_EQ(cache.stats().misses, 4);
}

TEST(ProgramCache, IsBoundedInBytesToo) {
  const std::string a = image_of(1), b = image_of(2);
  ProgramCache cache(toy_card(), {.image_bytes = Bytes(static_cast<int64_t>(a.size() + b.size()) - 1)});
  ASSERT_OK(cache.get(bytes_of(a)));
  ASSERT_OK(cache.get(bytes_of(b)));
  EXPECT_EQ(cache.stats().programs, 1u);
}

TEST(ProgramCache, ThreadsThatWantTheSameImageShareOneDecoding) {
  ProgramCache cache(toy_card());
  const std::string image = image_of(2);
  std::vector<LoadedProgramRef> got(8);
  std::vector<std::thread> threads;
  for (LoadedProgramRef& mine : got) {
    threads.emplace_back([&] { mine = cache.get(bytes_of(image)).value(); });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_THAT(got, testing::Each(got[0]));
  EXPECT_EQ(cache.stats().misses, 1);
}

}  // namespace
}  // namespace spyre
