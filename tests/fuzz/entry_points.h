#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

/// What is fuzzed: each function takes any bytes and must come back, soon, without having asked for much
/// memory. Whether the answer is yes or no does not matter.
namespace spyre::fuzz {

void bundle_text(std::string_view text);  ///< bundle.mlir: parser
void sdsc(
    std::string_view text);  ///< sdsc_0.json: reader, validator; what they accept runs under the checker
void launch_spec(std::string_view text);  ///< launch_spec.json: reader, shapes of its arguments
void opspec(std::string_view text);  ///< OpSpec text: parser, validator, writer; what it writes is read back
void graph(std::string_view text);   ///< graph text (.ir): parser, verifier, every pass, writer
void bundle(std::string_view text);  ///< all files of a bundle as one text, see `join_files`

struct Target {
  std::string_view name;
  void (*run)(std::string_view text);
  int rounds;  ///< that a test run gives it: as many as take a few seconds
};
std::span<const Target> targets();

/// Inputs to start from: the corpus (tests/corpus), through the writer where artifacts are asked for.
std::vector<std::string> seeds(std::string_view target, const std::string& corpus);

}  // namespace spyre::fuzz
