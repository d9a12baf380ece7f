#include "tools/npy.h"

#include <fmt/format.h>

#include <cstring>
#include <regex>

#include "spyre/base/file.h"
#include "spyre/base/json.h"

namespace spyre::tools {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr size_t kAlignment = 64;

Error refuse(const std::string& origin, const std::string& found, const std::string& allowed) {
  return Error(ErrorKind::kParse, fmt::format("{}: found {}, allowed: {}", origin, found, allowed));
}

/// The header's three fields, in any order: NumPy writes a Python dictionary with them and nothing else.
Result<NpyArray> parse_header(const std::string& header, const std::string& origin) {
  static const std::regex kDescr(R"('descr'\s*:\s*'([^']*)')");
  static const std::regex kOrder(R"('fortran_order'\s*:\s*(True|False))");
  static const std::regex kShape(R"('shape'\s*:\s*\(([0-9,\s]*)\))");
  std::smatch descr, order, shape;
  if (!std::regex_search(header, descr, kDescr) || !std::regex_search(header, order, kOrder) ||
      !std::regex_search(header, shape, kShape)) {
    return refuse(origin, "a header without descr, fortran_order and shape", "one with simple elements");
  }
  NpyArray array;
  array.descr = descr[1];
  if (npy_element_bytes(array.descr) == 0) {
    return refuse(origin, "elements of type " + array.descr, "little-endian numbers");
  }
  if (order[1] == "True") {
    return refuse(origin, "Fortran order", "C order, as numpy.ascontiguousarray gives");
  }
  const std::string sizes = shape[1];
  static const std::regex kNumber("[0-9]{1,18}");
  for (auto it = std::sregex_iterator(sizes.begin(), sizes.end(), kNumber); it != std::sregex_iterator();
       ++it) {
    array.shape.push_back(std::stoll(it->str()));
  }
  return array;
}

}  // namespace

int64_t npy_element_bytes(std::string_view descr) {
  if (descr.size() != 3 || (descr[0] != '<' && descr[0] != '|')) {
    return 0;
  }
  const int64_t bytes = descr[2] - '0';
  const std::string_view widths = descr[1] == 'f'                      ? "248"
                                  : descr[1] == 'i' || descr[1] == 'u' ? "1248"
                                  : descr[1] == 'b'                    ? "1"
                                                                       : "";
  const bool known = widths.find(descr[2]) != std::string_view::npos;
  return known && (descr[0] == '<' || bytes == 1) ? bytes : 0;
}

Result<NpyArray> parse_npy(std::string_view bytes, const std::string& origin) {
  if (bytes.size() < 10 || !bytes.starts_with(kMagic)) {
    return refuse(origin, "no .npy magic", "a file written by numpy.save");
  }
  const auto at = [&](size_t i) { return static_cast<size_t>(static_cast<unsigned char>(bytes[i])); };
  const size_t major = at(6);
  if (major < 1 || major > 3) {
    return refuse(origin, fmt::format("version {}", major), "1, 2 or 3");
  }
  const size_t start = major == 1 ? 10 : 12;
  if (bytes.size() < start) {
    return refuse(origin, "the end of the file", "a header");
  }
  const size_t length = at(8) | at(9) << 8 | (major == 1 ? 0 : at(10) << 16 | at(11) << 24);
  if (length > bytes.size() - start) {
    return refuse(origin, fmt::format("a header of {} bytes", length), "one inside the file");
  }
  SPYRE_ASSIGN_OR_RETURN(NpyArray array, parse_header(std::string(bytes.substr(start, length)), origin));
  const std::string_view data = bytes.substr(start + length);
  int64_t expected = npy_element_bytes(array.descr);
  for (const int64_t size : array.shape) {
    if (__builtin_mul_overflow(expected, size, &expected)) {
      return refuse(origin, "a shape without end", "one that fits memory");
    }
  }
  if (static_cast<int64_t>(data.size()) != expected) {
    return refuse(origin, fmt::format("{} bytes of elements", data.size()),
                  fmt::format("{}, as the shape says", expected));
  }
  array.data.resize(data.size());
  std::memcpy(array.data.data(), data.data(), data.size());
  return array;
}

std::string npy_text(const NpyArray& array) {
  std::string shape;
  for (const int64_t size : array.shape) {
    shape += fmt::format("{}, ", size);
  }
  if (array.shape.size() > 1) {
    shape.resize(shape.size() - 2);
  } else if (!shape.empty()) {
    shape.resize(shape.size() - 1);  // a tuple of one keeps its comma
  }
  std::string header =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", array.descr, shape);
  const size_t unpadded = 10 + header.size() + 1;
  header += std::string((kAlignment - unpadded % kAlignment) % kAlignment, ' ') + "\n";
  std::string out(kMagic);
  out += '\x01';
  out += '\0';
  out += static_cast<char>(header.size() & 0xFF);
  out += static_cast<char>(header.size() >> 8);
  out += header;
  out.append(reinterpret_cast<const char*>(array.data.data()), array.data.size());
  return out;
}

Result<NpyArray> read_npy(const std::filesystem::path& path, int64_t most_bytes) {
  constexpr int64_t kMostHeaderBytes = 1 << 16;
  SPYRE_ASSIGN_OR_RETURN(const std::string bytes, read_file(path, most_bytes + kMostHeaderBytes));
  return parse_npy(bytes, path.string());
}

Status write_npy(const std::filesystem::path& path, const NpyArray& array) {
  return write_text(path, npy_text(array));
}

}  // namespace spyre::tools
