#include "glue/log_filter.h"

#include <c10/util/Exception.h>

#include <cerrno>
#include <cstring>

#include "glue/progress.h"

namespace spyre::glue {
namespace {

int number_of(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return 10;
    case LogLevel::kInfo:
      return 20;
    case LogLevel::kWarning:
      return 30;
    case LogLevel::kError:
      return 40;
  }
  return 0;
}

}  // namespace

LogFilter& LogFilter::instance() {
  static auto* filter = new LogFilter;  // never freed: streams log while the process ends
  return *filter;
}

void LogFilter::listen() {
  if (listening_) {
    return;
  }
  listening_ = true;
  set_log_sink(
      [this](LogLevel level, std::string_view layer, std::string_view text) { print(level, layer, text); });
}

void LogFilter::print(LogLevel level, std::string_view layer, std::string_view text) {
  const std::lock_guard lock(mutex_);
  if (number_of(level) < level_locked("spyre." + std::string(layer))) {
    return;
  }
  std::FILE* const out = file_ == nullptr ? stderr : file_;
  ProgressLine* const progress = file_ == nullptr ? progress_line() : nullptr;
  if (progress != nullptr) progress->erase();
  std::fprintf(out, "[spyre %s] %s: %s\n", std::string(layer).c_str(), std::string(to_string(level)).c_str(),
               std::string(text).c_str());
  std::fflush(out);
  if (progress != nullptr) progress->others_wrote(true);
}

int LogFilter::level_locked(std::string_view component) const {
  while (true) {
    const auto found = levels_.find(std::string(component));
    if (found != levels_.end() && found->second != 0) {
      return found->second;
    }
    const size_t dot = component.rfind('.');
    if (dot == std::string_view::npos) {
      return kDefault;
    }
    component = component.substr(0, dot);
  }
}

int LogFilter::level(std::string_view component) const {
  const std::lock_guard lock(mutex_);
  return level_locked(component);
}

void LogFilter::set_level(const std::string& component, int level) {
  const std::lock_guard lock(mutex_);
  levels_[component] = level;
  listen();
}

void LogFilter::replace_levels(std::map<std::string, int> levels) {
  const std::lock_guard lock(mutex_);
  levels_ = std::move(levels);
  listen();
}

std::vector<std::string> LogFilter::components() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> names;
  for (const auto& [name, level] : levels_) {
    names.push_back(name);
  }
  return names;
}

void LogFilter::set_file(const std::string& path) {
  std::FILE* file = nullptr;
  if (!path.empty()) {
    file = std::fopen(path.c_str(), "a");
    TORCH_CHECK(file != nullptr, "set_log_file: ", path, " cannot be opened: ", std::strerror(errno));
  }
  const std::lock_guard lock(mutex_);
  if (file_ != nullptr) {
    std::fclose(file_);
  }
  file_ = file;
  listen();
}

}  // namespace spyre::glue
