#pragma once

#include <unistd.h>

#include <cstdio>

#include "spyre/driver/pass_log.h"
#include "spyre/driver/progress_line.h"

namespace spyre::tools {

/// Shows on stderr, if somebody sits there, that planning takes its time.
inline void show_progress(PassLog& log, const std::string& graph) {
  if (isatty(STDERR_FILENO) == 0) return;
  log.on_progress(
      ProgressLine(graph, [](const std::string& line) { std::fprintf(stderr, "%s\n", line.c_str()); }));
}

}  // namespace spyre::tools
