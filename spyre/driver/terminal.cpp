#include "spyre/driver/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <string>

#include "spyre/base/settings.h"

namespace spyre {
namespace {

constexpr int kUsualColumns = 80;

int columns_of(int descriptor) {
  winsize size{};
  const bool known = ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : kUsualColumns;
}

bool can_be_written_over(int descriptor) {
  const std::string_view kind = terminal_kind();
  return isatty(descriptor) != 0 && !kind.empty() && kind != "dumb";
}

void write_all(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(descriptor, bytes.data(), bytes.size());
    if (written <= 0) return;  // nobody reads it any more
    bytes.remove_prefix(static_cast<size_t>(written));
  }
}

}  // namespace

Result<std::optional<ProgressLine::Screen>> progress_screen(int descriptor) {
  SPYRE_ASSIGN_OR_RETURN(const std::string asked, read_string("SPYRE_PROGRESS"));
  const bool in_lines = asked == "lines";
  if (asked == "off" || (!in_lines && !can_be_written_over(descriptor)))
    return std::optional<ProgressLine::Screen>();
  ProgressLine::Screen screen;
  screen.write = [descriptor](std::string_view bytes) { write_all(descriptor, bytes); };
  if (!in_lines) screen.columns = [descriptor] { return columns_of(descriptor); };
  return std::optional(std::move(screen));
}

}  // namespace spyre
