#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "spyre/base/result.h"

/// Arrays in NumPy's .npy format, versions 1 to 3, C order, little-endian.
///
///     \x93NUMPY  1 0  <header length, 2 bytes>  {'descr': '<f2', 'fortran_order': False, 'shape': (4, 64), }
///     then the elements; the header is padded with blanks so that they start at a multiple of 64
namespace spyre::tools {

struct NpyArray {
  std::string descr;           ///< NumPy's element type: `<f2`, `<f4`, `|b1`
  std::vector<int64_t> shape;  ///< empty for a scalar
  std::vector<std::byte> data;
};

/// Bytes of one element of a descr we know (f2 f4 f8, i1 i2 i4 i8, u1 u2 u4 u8, b1); 0 otherwise.
int64_t npy_element_bytes(std::string_view descr);

/// From and to the bytes of a file. Refused: other magic, Fortran order, big-endian or structured elements,
/// more or fewer bytes than the shape says.
Result<NpyArray> parse_npy(std::string_view bytes, const std::string& origin);
std::string npy_text(const NpyArray& array);

/// `most_bytes` is what its elements may take; a larger file is refused before it is read.
Result<NpyArray> read_npy(const std::filesystem::path& path, int64_t most_bytes);
Status write_npy(const std::filesystem::path& path, const NpyArray& array);

}  // namespace spyre::tools
