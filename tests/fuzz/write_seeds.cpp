// Writes the inputs that fuzzing starts from: `write_seeds <tests/corpus> <directory>`, one folder per
// target.
#include <cstdio>
#include <filesystem>
#include <string>

#include "spyre/base/json.h"
#include "tests/fuzz/entry_points.h"

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: %s <tests/corpus> <directory>\n", argv[0]);
    return 1;
  }
  for (const spyre::fuzz::Target& target : spyre::fuzz::targets()) {
    const std::filesystem::path folder = std::filesystem::path(argv[2]) / target.name;
    std::filesystem::create_directories(folder);
    int number = 0;
    for (const std::string& seed : spyre::fuzz::seeds(target.name, argv[1])) {
      if (!spyre::write_text(folder / std::to_string(number++), seed).ok()) {
        return 1;
      }
    }
  }
  return 0;
}
