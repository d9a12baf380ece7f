#pragma once

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "spyre/base/json.h"
#include "spyre/codegen/superdsc/bundle.h"
#include "spyre/opspec/text.h"

/// Helpers that the tests of this folder share: kernels of the corpus and the artifacts written from them.
namespace spyre::superdsc {

inline std::vector<std::string> corpus_names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(SPYRE_OPSPEC_CORPUS)) {
    names.push_back(entry.path().stem());
  }
  std::sort(names.begin(), names.end());
  return names;
}

inline Kernel corpus_kernel(const std::string& name) {
  const std::string text = read_text(std::filesystem::path(SPYRE_OPSPEC_CORPUS) / (name + ".opspec")).value();
  return parse_kernel(text, name).value();
}

inline Bundle corpus_bundle(const std::string& name) {
  return write_bundle(corpus_kernel(name)).value();
}

inline Json file_json(const Bundle& bundle, const std::string& file) {
  return parse_json(bundle.files.at(file), file).value();
}

/// The object behind the only key of sdsc_N.json.
inline Json super_dsc(const Bundle& bundle, int n = 0) {
  return file_json(bundle, "sdsc_" + std::to_string(n) + ".json").front();
}

/// The design space of sdsc_N.json.
inline Json dsc(const Bundle& bundle, int n = 0) {
  return super_dsc(bundle, n)["dscs_"][0].front();
}

}  // namespace spyre::superdsc
