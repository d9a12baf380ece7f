#pragma once

#include <cstdio>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "spyre/base/log.h"

namespace spyre::glue {

/// Which messages of the C++ layers are printed, and where: levels by component, in the numbers of Python's
/// `logging` (10 debug, 20 info, 30 warning, 40 error, 50 critical). A component is `spyre` or
/// `spyre.<layer>`; one without a level of its own has its parent's. Until a level or a file is set nothing
/// is printed.
class LogFilter {
 public:
  static constexpr int kDefault = 30;

  static LogFilter& instance();

  void set_level(const std::string& component, int level);
  void replace_levels(std::map<std::string, int> levels);
  int level(std::string_view component) const;
  bool is_enabled(std::string_view component, int level) const { return level >= this->level(component); }
  std::vector<std::string> components() const;

  /// Appends to a file from now on; an empty path means stderr. A file that cannot be opened is an error.
  void set_file(const std::string& path);

 private:
  LogFilter() = default;
  void listen();
  void print(LogLevel level, std::string_view layer, std::string_view text);
  int level_locked(std::string_view component) const;

  mutable std::mutex mutex_;  // guards the members below
  std::map<std::string, int> levels_;
  std::FILE* file_ = nullptr;  // null: stderr
  bool listening_ = false;
};

}  // namespace spyre::glue
