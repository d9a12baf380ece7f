#include "spyre/codegen/superdsc/save_bundle.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "spyre/base/json.h"
#include "spyre/codegen/superdsc/pretty_json.h"

namespace spyre {
namespace {

namespace fs = std::filesystem;

/// `prefix`, digits, `suffix`.
bool is_numbered(std::string_view name, std::string_view prefix, std::string_view suffix) {
  if (!name.starts_with(prefix) || !name.ends_with(suffix)) return false;
  name.remove_prefix(prefix.size());
  if (name.size() <= suffix.size()) return false;
  name.remove_suffix(suffix.size());
  return std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; });
}

/// Whether a path inside a compile directory is one that a bundle may have. No path with `..` is.
bool is_bundle_name(std::string_view name) {
  static constexpr std::array<std::string_view, 6> kNames = {
      "bundle.mlir", "graph.ir", "kernel.opspec", "launch_spec.json", "symbol_kinds.json", kManifestFile};
  static constexpr std::array<std::string_view, 3> kCode = {
      "spyreCodeDir/launch_spec.json", "spyreCodeDir/spyrecode.json", "spyreCodeDir/init_binary.bin"};
  if (std::find(kCode.begin(), kCode.end(), name) != kCode.end()) return true;
  if (const size_t slash = name.find('/'); slash != std::string_view::npos) {
    if (!is_numbered(name.substr(0, slash), "bundle_", "")) return false;
    name.remove_prefix(slash + 1);
  }
  return is_numbered(name, "sdsc_", ".json") || std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

/// A folder that a compile directory may have.
bool is_bundle_folder(std::string_view name) {
  return name == "spyreCodeDir" || is_numbered(name, "bundle_", "");
}

constexpr FolderKind kBundleFolder = {
    .format = "spyre-bundle",
    .word = "bundle",
    .hint = "another folder, or --force, which replaces the files of a bundle and leaves all others",
    .may_hold = is_bundle_name,
    .may_contain = is_bundle_folder};

Status write_files(const Bundle& bundle, const fs::path& directory) {
  Json names = Json::array();
  for (const auto& [name, text] : bundle.files) {
    std::error_code failure;
    fs::create_directories((directory / name).parent_path(), failure);
    if (failure) {
      return Error(ErrorKind::kNotFound,
                   fmt::format("{}: cannot be created: {}", directory.string(), failure.message()));
    }
    SPYRE_TRY(write_text(directory / name, text));
    names.push_back(name);
  }
  const Json manifest = {{"format", kBundleFolder.format}, {"version", 1}, {"files", names}};
  return write_text(directory / kManifestFile, superdsc::pretty_json(manifest));
}

}  // namespace

Status save_bundle(const Bundle& bundle, const fs::path& directory, Overwrite overwrite) {
  const fs::path staged = staging_name(directory);
  if (Status written = write_files(bundle, staged); !written.ok()) {
    std::error_code ignored;
    fs::remove_all(staged, ignored);
    return written;
  }
  return publish_folder(staged, directory, kBundleFolder, overwrite);
}

}  // namespace spyre
