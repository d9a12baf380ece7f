#include "spyre/base/publish_folder.h"

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <optional>
#include <set>
#include <string>

#include "spyre/base/json.h"

namespace spyre {
namespace {

namespace fs = std::filesystem;

Error folder_failed(const fs::path& path, std::string_view what, const std::error_code& why) {
  return Error(ErrorKind::kNotFound, fmt::format("{}: {}: {}", path.string(), what, why.message()));
}

// Without a slash at the end.
fs::path folder_path(const fs::path& given) {
  const fs::path normal = given.lexically_normal();
  return normal.has_filename() ? normal : normal.parent_path();
}

/// The files that the manifest lists; none: there is no manifest of this kind.
std::optional<std::set<std::string>> listed_files(const fs::path& directory, const FolderKind& kind) {
  std::error_code failure;
  if (!fs::is_regular_file(directory / kManifestFile, failure)) return std::nullopt;
  const Result<Json> manifest = read_json(directory / kManifestFile);
  if (!manifest.ok() || !manifest.value().is_object()) return std::nullopt;
  const Json& json = manifest.value();
  const auto format = json.find("format");
  const auto files = json.find("files");
  if (format == json.end() || *format != kind.format || files == json.end() || !files->is_array())
    return std::nullopt;
  std::set<std::string> names;
  for (const Json& file : *files) {
    if (file.is_string()) names.insert(file.get<std::string>());
  }
  return names;
}

/// The files of a folder that one of this kind may have, by their names alone.
std::set<std::string> files_named_like_ours(const fs::path& directory, const FolderKind& kind) {
  std::set<std::string> names;
  std::error_code failure;
  fs::recursive_directory_iterator entry(directory, failure), end;
  for (; !failure && entry != end; entry.increment(failure)) {
    const std::string name = entry->path().lexically_relative(directory).generic_string();
    if (!kind.may_contain(name)) entry.disable_recursion_pending();
    if (kind.may_hold(name)) names.insert(name);
  }
  return names;
}

std::set<std::string> staged_files(const fs::path& staged) {
  std::set<std::string> names;
  for (const auto& entry : fs::recursive_directory_iterator(staged)) {
    if (entry.is_regular_file()) names.insert(entry.path().lexically_relative(staged).generic_string());
  }
  return names;
}

Status move_files(const fs::path& staged, const std::set<std::string>& names, const fs::path& directory) {
  const auto move = [&](const std::string& name) -> Status {
    std::error_code failure;
    fs::create_directories((directory / name).parent_path(), failure);
    if (failure) return folder_failed(directory, "cannot be created", failure);
    fs::rename(staged / name, directory / name, failure);
    return failure ? Status(folder_failed(directory / name, "cannot be put in place", failure)) : Status();
  };
  for (const std::string& name : names) {
    if (name != kManifestFile) SPYRE_TRY(move(name));
  }
  return move(kManifestFile);  // last: whoever finds it finds the rest
}

Status remove_stale(const std::set<std::string>& former, const std::set<std::string>& names,
                    const fs::path& directory, const FolderKind& kind) {
  for (const std::string& name : former) {
    if (names.contains(name) || name == kManifestFile || !kind.may_hold(name)) continue;
    std::error_code failure;
    fs::remove(directory / name, failure);
    if (failure) return folder_failed(directory / name, "cannot be removed", failure);
    for (fs::path folder = fs::path(name).parent_path(); !folder.empty(); folder = folder.parent_path()) {
      fs::remove(directory / folder, failure);  // when that was the last file in it
    }
  }
  return Status();
}

/// Something in a folder besides what is to be put there; empty: nothing.
std::string found_in(const fs::path& directory, const fs::path& staged) {
  std::error_code failure;
  for (const auto& entry : fs::directory_iterator(directory, failure)) {
    if (entry.path().filename() != staged.filename()) return entry.path().filename().string();
  }
  return "";
}

Error not_ours(const fs::path& directory, const std::string& found, const FolderKind& kind) {
  return Error(ErrorKind::kInvalidArgument,
               fmt::format("{}: found '{}' and no {} of a {}, allowed: a new or an empty folder, or one that "
                           "was written as a {}",
                           directory.string(), found, kManifestFile, kind.word, kind.word))
      .try_instead(std::string(kind.hint));
}

Status put_in_place(const fs::path& staged, const fs::path& directory, const FolderKind& kind,
                    Overwrite overwrite) {
  std::error_code failure;
  if (!fs::exists(directory, failure)) {
    fs::rename(staged, directory, failure);
    if (!failure) return Status();
    std::error_code ignored;  // someone else may have made it meanwhile
    if (!fs::is_directory(directory, ignored))
      return folder_failed(directory, "cannot be put in place", failure);
  }
  if (!fs::is_directory(directory, failure)) {
    return Error(ErrorKind::kInvalidArgument,
                 fmt::format("{}: found a file, allowed: a folder to write", directory.string()));
  }
  std::optional<std::set<std::string>> former = listed_files(directory, kind);
  if (const std::string found = found_in(directory, staged); !former && !found.empty()) {
    if (overwrite != Overwrite::kForce) return not_ours(directory, found, kind);
    former = files_named_like_ours(directory, kind);
  }
  const std::set<std::string> names = staged_files(staged);
  SPYRE_TRY(move_files(staged, names, directory));
  return former ? remove_stale(*former, names, directory, kind) : Status();
}

}  // namespace

fs::path staging_name(const fs::path& directory) {
  static std::atomic<int> number = 0;
  const std::string name = fmt::format(".new{}_{}", ::getpid(), ++number);
  const fs::path folder = folder_path(directory);
  std::error_code failure;
  return fs::is_directory(folder, failure) ? folder / name : fs::path(folder.string() + name);
}

Status publish_folder(const fs::path& staged, const fs::path& directory, const FolderKind& kind,
                      Overwrite overwrite) {
  Status placed = put_in_place(staged, folder_path(directory), kind, overwrite);
  std::error_code ignored;
  fs::remove_all(staged, ignored);
  return placed;
}

}  // namespace spyre
