#include "tools/npy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace spyre::tools {
namespace {

using testing::HasSubstr;

std::string error_of(const std::string& bytes) {
  const auto array = parse_npy(bytes, "a.npy");
  return array.ok() ? "read without error" : array.error().message;
}

/// What NumPy 1.26 writes for numpy.save(f, numpy.arange(3, dtype='i2')).
std::string three_shorts() {
  std::string text("\x93NUMPY\x01\0v\0{'descr': '<i2', 'fortran_order': False, 'shape': (3,), }", 10 + 57);
  text.resize(127, ' ');
  return text + "\n" + std::string("\0\0\1\0\2\0", 6);
}

TEST(Npy, ReadsWhatNumpyWrites) {
  const auto array = parse_npy(three_shorts(), "a.npy");
  ASSERT_TRUE(array.ok()) << array.error().to_string();
  EXPECT_EQ(array.value().descr, "<i2");
  EXPECT_EQ(array.value().shape, std::vector<int64_t>{3});
  EXPECT_EQ(array.value().data[2], std::byte{1});
}

TEST(Npy, WritesTheSameBytes) {
  EXPECT_EQ(npy_text(parse_npy(three_shorts(), "a.npy").value()), three_shorts());
}

TEST(Npy, ScalarsAndEmptyArraysComeBack) {
  for (const std::vector<int64_t>& shape : {std::vector<int64_t>{}, {0, 4}, {2, 1, 2}}) {
    NpyArray array{.descr = "<f4", .shape = shape};
    int64_t bytes = 4;
    for (const int64_t size : shape) bytes *= size;
    array.data.assign(static_cast<size_t>(bytes), std::byte{7});
    const auto back = parse_npy(npy_text(array), "a.npy");
    ASSERT_TRUE(back.ok()) << back.error().to_string();
    EXPECT_EQ(back.value().shape, shape);
    EXPECT_EQ(back.value().data, array.data);
    EXPECT_EQ((npy_text(array).size() - array.data.size()) % 64, 0u);
  }
}

TEST(Npy, RefusesWhatItCannotRepresent) {
  std::string text = three_shorts();
  EXPECT_THAT(error_of("PK"), HasSubstr("no .npy magic"));
  EXPECT_THAT(error_of(text + "x"), HasSubstr("found 7 bytes of elements, allowed: 6"));
  EXPECT_THAT(error_of(text.substr(0, 40)), HasSubstr("a header of 118 bytes"));
  text.replace(text.find("<i2"), 3, ">i2");
  EXPECT_THAT(error_of(text), HasSubstr("elements of type >i2"));
  text = three_shorts();
  text.replace(text.find("False"), 5, "True ");
  EXPECT_THAT(error_of(text), HasSubstr("Fortran order"));
  text = three_shorts();
  text.replace(text.find("(3,)"), 4, "[3,]");
  EXPECT_THAT(error_of(text), HasSubstr("a header without"));
  text = three_shorts();
  text[6] = 9;
  EXPECT_THAT(error_of(text), HasSubstr("version 9"));
}

}  // namespace
}  // namespace spyre::tools
