#pragma once

#include <unistd.h>

#include <memory>
#include <string>

#include "spyre/driver/pass_log.h"
#include "spyre/driver/terminal.h"

namespace spyre::tools {

/// Shows on stderr what the passes of this log do, as long as it lives.
class TerminalProgress {
 public:
  TerminalProgress(PassLog& log, const std::string& graph) {
    Result<std::optional<ProgressLine::Screen>> screen = progress_screen(STDERR_FILENO);
    if (!screen.ok() || !screen.value()) return;
    line_ = std::make_unique<ProgressLine>(*std::move(screen).value());
    line_->begin("compiling " + graph);
    log.on_progress([line = line_.get()](std::string_view pass, int64_t plans) { line->pass(pass, plans); });
  }
  ~TerminalProgress() {
    if (line_) line_->end();
  }
  TerminalProgress(const TerminalProgress&) = delete;
  TerminalProgress& operator=(const TerminalProgress&) = delete;

 private:
  std::unique_ptr<ProgressLine> line_;
};

}  // namespace spyre::tools
