// One libFuzzer program per target: compiled with SPYRE_FUZZ_TARGET=<name of an entry point>.
#include <cstddef>
#include <cstdint>

#include "tests/fuzz/entry_points.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  spyre::fuzz::SPYRE_FUZZ_TARGET(std::string_view(reinterpret_cast<const char*>(data), size));
  return 0;
}
