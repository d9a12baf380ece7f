#pragma once

#include <cstddef>
#include <span>

#include "spyre/program/read_program.h"

/// The program image: a bundle as the bytes that lie in the card's program segment.
///
///     0        8         12       16           20      24              32
///     SPYREIMG  version   files    parameters   zero    size in bytes   one entry per file: offset, size,
///                                                                       length of the name, name
///
/// All numbers are little-endian; docs/spec/superdsc.md has the table. The texts are byte for byte those of
/// the compile directory, so the card needs nothing but the image.
namespace spyre::program {

struct ProgramImage {
  int64_t bytes = 0;  ///< how much of the memory it was read from is the image
  int64_t parameters = 0;
  ProgramFiles files;
};

inline constexpr int64_t kMaxImageFiles = 1 << 16;

/// The size an image states for itself, without reading further; an error when there is no image here.
Result<int64_t> image_bytes(std::span<const std::byte> memory);

/// Reads the image at the start of `memory`, which may go on behind it. Total: any bytes give files or an
/// error that says which field is wrong.
Result<ProgramImage> read_image(std::span<const std::byte> memory);

/// The program in an image: its files read, and as many parameters as its header says.
Result<DeviceProgram> read_image_program(std::span<const std::byte> memory,
                                         const Machine& machine = spyre_card());

}  // namespace spyre::program
