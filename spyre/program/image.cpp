#include "spyre/program/image.h"

#include <fmt/format.h>

#include <cstring>

namespace spyre::program {
namespace {

constexpr std::string_view kMagic = "SPYREIMG";
constexpr uint32_t kImageVersion = 1;
constexpr int64_t kHeaderBytes = 32;
constexpr int64_t kEntryBytes = 20;
constexpr uint32_t kMaxNameBytes = 4096;

Error refuse(std::string_view field, const std::string& found, const std::string& allowed,
             ErrorKind kind = ErrorKind::kParse) {
  return Error(kind, fmt::format("program image: {}: found {}, allowed: {}", field, found, allowed));
}

/// Little-endian, wherever this runs. The caller has checked that the bytes are there.
template <typename T>
T number_at(std::span<const std::byte> memory, int64_t at) {
  T value = 0;
  for (size_t i = 0; i < sizeof(T); ++i) {
    value |= static_cast<T>(std::to_integer<uint8_t>(memory[static_cast<size_t>(at) + i])) << (8 * i);
  }
  return value;
}

std::string text_at(std::span<const std::byte> memory, int64_t at, int64_t size) {
  std::string text(static_cast<size_t>(size), '\0');
  std::memcpy(text.data(), memory.data() + at, text.size());
  return text;
}

}  // namespace

Result<int64_t> image_bytes(std::span<const std::byte> memory) {
  if (static_cast<int64_t>(memory.size()) < kHeaderBytes) {
    return refuse("header", fmt::format("{} bytes", memory.size()), fmt::format("at least {}", kHeaderBytes));
  }
  if (std::memcmp(memory.data(), kMagic.data(), kMagic.size()) != 0) {
    return refuse("magic", fmt::format("{:#018x}", number_at<uint64_t>(memory, 0)), std::string(kMagic));
  }
  if (const auto version = number_at<uint32_t>(memory, 8); version != kImageVersion) {
    return refuse("version", std::to_string(version), std::to_string(kImageVersion), ErrorKind::kUnsupported);
  }
  const auto size = number_at<uint64_t>(memory, 24);
  if (size < static_cast<uint64_t>(kHeaderBytes) || size > memory.size()) {
    return refuse("size", std::to_string(size),
                  fmt::format("{} to the {} bytes of the program region", kHeaderBytes, memory.size()));
  }
  return static_cast<int64_t>(size);
}

Result<ProgramImage> read_image(std::span<const std::byte> memory) {
  ProgramImage image;
  SPYRE_ASSIGN_OR_RETURN(image.bytes, image_bytes(memory));
  memory = memory.first(static_cast<size_t>(image.bytes));
  const auto files = number_at<uint32_t>(memory, 12);
  if (files > kMaxImageFiles) {
    return refuse("number of files", std::to_string(files), fmt::format("at most {}", kMaxImageFiles));
  }
  image.parameters = number_at<uint32_t>(memory, 16);
  int64_t at = kHeaderBytes;
  for (uint32_t i = 0; i < files; ++i) {
    const std::string field = fmt::format("file {}", i);
    if (image.bytes - at < kEntryBytes) {
      return refuse(field, "the end of the image", "its directory entry");
    }
    const auto offset = number_at<uint64_t>(memory, at);
    const auto size = number_at<uint64_t>(memory, at + 8);
    const auto name_bytes = number_at<uint32_t>(memory, at + 16);
    at += kEntryBytes;
    if (name_bytes == 0 || name_bytes > kMaxNameBytes || name_bytes > image.bytes - at) {
      return refuse(field + ", length of the name", std::to_string(name_bytes), "a name inside the image");
    }
    const std::string name = text_at(memory, at, name_bytes);
    at += name_bytes;
    if (offset > memory.size() || size > memory.size() - offset) {
      return refuse(field + ", content", fmt::format("{} bytes at {}", size, offset),
                    fmt::format("inside the {} bytes of the image", image.bytes));
    }
    image.files[name] = text_at(memory, static_cast<int64_t>(offset), static_cast<int64_t>(size));
  }
  return image;
}

Result<DeviceProgram> read_image_program(std::span<const std::byte> memory, const Machine& machine) {
  SPYRE_ASSIGN_OR_RETURN(const ProgramImage image, read_image(memory));
  SPYRE_ASSIGN_OR_RETURN(DeviceProgram program, read_program(image.files, machine));
  if (static_cast<int64_t>(program.parameters.size()) != image.parameters) {
    return refuse("number of parameters", std::to_string(image.parameters),
                  fmt::format("{}, as bundle.mlir has", program.parameters.size()));
  }
  return program;
}

}  // namespace spyre::program
