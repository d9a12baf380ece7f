#include "spyre/codegen/superdsc/save_bundle.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <set>

#include "spyre/base/json.h"
#include "spyre/codegen/superdsc/pretty_json.h"

namespace spyre {
namespace {

namespace fs = std::filesystem;

constexpr const char* kManifest = "manifest.json";
constexpr const char* kFormat = "spyre-bundle";

Error failed(const fs::path& path, std::string_view what, const std::error_code& why) {
  return Error(ErrorKind::kNotFound, fmt::format("{}: {}: {}", path.string(), what, why.message()));
}

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
      "bundle.mlir", "graph.ir", "kernel.opspec", "launch_spec.json", "symbol_kinds.json", kManifest};
  static constexpr std::array<std::string_view, 3> kCode = {
      "spyreCodeDir/launch_spec.json", "spyreCodeDir/spyrecode.json", "spyreCodeDir/init_binary.bin"};
  if (std::find(kCode.begin(), kCode.end(), name) != kCode.end()) return true;
  if (const size_t slash = name.find('/'); slash != std::string_view::npos) {
    if (!is_numbered(name.substr(0, slash), "bundle_", "")) return false;
    name.remove_prefix(slash + 1);
  }
  return is_numbered(name, "sdsc_", ".json") || std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

/// The files that the manifest lists; none: there is no manifest of ours.
std::optional<std::set<std::string>> listed_files(const fs::path& directory) {
  std::error_code failure;
  if (!fs::is_regular_file(directory / kManifest, failure)) return std::nullopt;
  const Result<Json> manifest = read_json(directory / kManifest);
  if (!manifest.ok() || !manifest.value().is_object()) return std::nullopt;
  const Json& json = manifest.value();
  const auto format = json.find("format");
  const auto files = json.find("files");
  if (format == json.end() || *format != kFormat || files == json.end() || !files->is_array())
    return std::nullopt;
  std::set<std::string> names;
  for (const Json& file : *files) {
    if (file.is_string()) names.insert(file.get<std::string>());
  }
  return names;
}

/// The files in a folder that a bundle may have, by their names alone.
std::set<std::string> files_named_like_ours(const fs::path& directory) {
  std::set<std::string> names;
  std::error_code failure;
  fs::recursive_directory_iterator entry(directory, failure), end;
  for (; !failure && entry != end; entry.increment(failure)) {
    const std::string name = entry->path().lexically_relative(directory).generic_string();
    if (name != "spyreCodeDir" && !is_numbered(name, "bundle_", "")) entry.disable_recursion_pending();
    if (is_bundle_name(name)) names.insert(name);
  }
  return names;
}

Status write_files(const Bundle& bundle, const fs::path& directory) {
  Json names = Json::array();
  for (const auto& [name, text] : bundle.files) {
    std::error_code failure;
    fs::create_directories((directory / name).parent_path(), failure);
    if (failure) return failed(directory, "cannot be created", failure);
    SPYRE_TRY(write_text(directory / name, text));
    names.push_back(name);
  }
  // Last: whoever finds it finds the rest.
  const Json manifest = {{"format", kFormat}, {"version", 1}, {"files", names}};
  return write_text(directory / kManifest, superdsc::pretty_json(manifest));
}

Status remove_stale(const std::set<std::string>& former, const Bundle& bundle, const fs::path& directory) {
  for (const std::string& name : former) {
    if (bundle.files.contains(name) || name == kManifest || !is_bundle_name(name)) continue;
    std::error_code failure;
    fs::remove(directory / name, failure);
    if (failure) return failed(directory / name, "cannot be removed", failure);
    fs::remove((directory / name).parent_path(), failure);  // when that was the last file in it
  }
  return Status();
}

Error not_ours(const fs::path& directory) {
  std::error_code failure;
  std::string found = "files";
  if (const fs::directory_iterator first(directory, failure); !failure && first != fs::end(first)) {
    found = "'" + first->path().filename().string() + "'";
  }
  return Error(
             ErrorKind::kInvalidArgument,
             fmt::format("{}: found {} and no {} of a bundle, allowed: a new or an empty folder, or one that "
                         "was written as a bundle",
                         directory.string(), found, kManifest))
      .try_instead("another folder, or --force, which replaces the files of a bundle and leaves all others");
}

/// Writes a directory that does not exist yet. False: someone else made it meanwhile.
Result<bool> publish_new(const Bundle& bundle, const fs::path& directory) {
  static std::atomic<int> number = 0;
  const fs::path fresh = fmt::format("{}.new{}_{}", directory.string(), ::getpid(), ++number);
  const auto clean_up = [&] {
    std::error_code ignored;
    fs::remove_all(fresh, ignored);
  };
  if (const Status written = write_files(bundle, fresh); !written.ok()) {
    clean_up();
    return written.error();
  }
  std::error_code failure;
  fs::rename(fresh, directory, failure);
  if (!failure) return true;
  clean_up();
  std::error_code ignored;
  if (fs::is_directory(directory, ignored)) return false;
  return failed(directory, "cannot be put in place", failure);
}

}  // namespace

Status save_bundle(const Bundle& bundle, const fs::path& given, Overwrite overwrite) {
  fs::path directory = given.lexically_normal();
  if (!directory.has_filename()) directory = directory.parent_path();  // a slash at the end
  std::error_code failure;
  if (!fs::exists(directory, failure)) {
    SPYRE_ASSIGN_OR_RETURN(const bool published, publish_new(bundle, directory));
    if (published) return Status();
  }
  if (!fs::is_directory(directory, failure)) {
    return Error(ErrorKind::kInvalidArgument,
                 fmt::format("{}: found a file, allowed: a folder to write", directory.string()));
  }
  std::optional<std::set<std::string>> former = listed_files(directory);
  if (!former && !fs::is_empty(directory, failure)) {
    if (overwrite != Overwrite::kForce) return not_ours(directory);
    former = files_named_like_ours(directory);
  }
  SPYRE_TRY(write_files(bundle, directory));
  return former ? remove_stale(*former, bundle, directory) : Status();
}

}  // namespace spyre
