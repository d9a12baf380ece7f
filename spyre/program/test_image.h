#pragma once

#include <cstdint>
#include <string>

#include "spyre/program/read_program.h"

/// The program image of docs/spec/superdsc.md, written for tests from its table alone.
namespace spyre::testing_artifacts {

inline void put_number(std::string& out, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) {
    out += static_cast<char>(value >> (8 * i) & 0xFF);
  }
}

inline std::string write_image(const program::ProgramFiles& files, uint32_t parameters) {
  uint64_t directory = 32;
  for (const auto& [name, text] : files) {
    directory += 20 + name.size();
  }
  const uint64_t content = (directory + 127) / 128 * 128;
  std::string entries, texts;
  for (const auto& [name, text] : files) {
    put_number(entries, content + texts.size(), 8);
    put_number(entries, text.size(), 8);
    put_number(entries, name.size(), 4);
    entries += name;
    texts += text;
    texts.resize((texts.size() + 127) / 128 * 128, '\0');
  }
  std::string image = "SPYREIMG";
  put_number(image, 1, 4);
  put_number(image, files.size(), 4);
  put_number(image, parameters, 4);
  put_number(image, 0, 4);
  put_number(image, content + texts.size(), 8);
  image += entries;
  image.resize(content, '\0');
  return image + texts;
}

}  // namespace spyre::testing_artifacts
