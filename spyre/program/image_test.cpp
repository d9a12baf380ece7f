#include "spyre/program/image.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "spyre/program/test_artifact.h"
#include "spyre/program/test_image.h"

namespace spyre::testing_artifacts {
namespace {

using testing::HasSubstr;

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

void poke(std::string& image, size_t at, uint64_t value, int bytes) {
  std::string number;
  put_number(number, value, bytes);
  image.replace(at, number.size(), number);
}

std::string error_of(const std::string& image) {
  const auto read = read_image(bytes_of(image));
  return read.ok() ? "read without error" : read.error().message;
}

TEST(ProgramImage, GivesBackTheFilesByteForByte) {
  const ProgramFiles files = {
      {"bundle.mlir", "module {}"}, {"sdsc_0.json", std::string("a\0b", 3)}, {"e", ""}};
  const std::string image = write_image(files, 3) + "what follows is not its business";
  const auto read = read_image(bytes_of(image));
  ASSERT_TRUE(read.ok()) << read.error().to_string();
  EXPECT_EQ(read.value().files, files);
  EXPECT_EQ(read.value().parameters, 3);
  EXPECT_EQ(read.value().bytes, 128 + 128 + 128);
}

TEST(ProgramImage, WhatIsNoImageIsRefusedByItsFirstWrongField) {
  const std::string good = write_image({{"a", "text"}}, 0);
  EXPECT_THAT(error_of(good.substr(0, 31)), HasSubstr("header: found 31 bytes, allowed: at least 32"));
  std::string image = good;
  image[0] = 'X';
  EXPECT_THAT(error_of(image), HasSubstr("magic: found 0x474d494552595058, allowed: SPYREIMG"));
  image = good;
  poke(image, 8, 2, 4);
  EXPECT_THAT(error_of(image), HasSubstr("version: found 2, allowed: 1"));
  image = good;
  poke(image, 24, good.size() + 1, 8);
  EXPECT_THAT(error_of(image), HasSubstr("size: found 257, allowed: 32 to the 256 bytes"));
  image = good;
  poke(image, 12, 1u << 30, 4);
  EXPECT_THAT(error_of(image), HasSubstr("number of files: found 1073741824"));
  image = good;
  poke(image, 24, 40, 8);
  EXPECT_THAT(error_of(image), HasSubstr("file 0: found the end of the image"));
  image = good;
  poke(image, 32 + 16, 300, 4);
  EXPECT_THAT(error_of(image), HasSubstr("file 0, length of the name: found 300"));
  image = good;
  poke(image, 32, UINT64_MAX, 8);
  EXPECT_THAT(error_of(image), HasSubstr("file 0, content: found 4 bytes at 18446744073709551615"));
}

TEST(ProgramImage, AProgramHasTheParametersItsHeaderSays) {
  const OpSpec op = {
      .function = "neg",
      .dims = {{"mb", 2}, {"out", 64}},
      .tensors = {{.order = {"mb", "out"}, .base = 0}, {.order = {"mb", "out"}, .base = 4096}}};
  const ProgramFiles files = {{"sdsc_0.json", write_sdsc(op).dump()}};
  EXPECT_TRUE(read_image_program(bytes_of(write_image(files, 0))).ok());
  EXPECT_THAT(read_image_program(bytes_of(write_image(files, 1))).error().message,
              HasSubstr("number of parameters: found 1, allowed: 0, as bundle.mlir has"));
}

TEST(ProgramImage, RandomDamageNeverReadsOutsideTheImage) {
  const unsigned seed = 7;
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  const std::string good = write_image({{"bundle.mlir", "module {}"}, {"sdsc_0.json", "{}"}}, 2);
  for (int i = 0; i < 2000; ++i) {
    std::string image = good.substr(0, 1 + random() % good.size());
    for (int hits = 0; hits < 3; ++hits) {
      image[random() % image.size()] = static_cast<char>(random());
    }
    const auto read = read_image(bytes_of(image));  // under a sanitizer, any stray read fails here
    if (read.ok()) {
      EXPECT_LE(read.value().bytes, static_cast<int64_t>(image.size()));
    }
  }
}

}  // namespace
}  // namespace spyre::testing_artifacts
