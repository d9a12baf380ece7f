#include "spyre/base/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace spyre {
namespace {

Error failed(const std::filesystem::path& path, std::string_view what) {
  return Error(ErrorKind::kNotFound,
               fmt::format("{}: {}: {}", path.string(), what, std::generic_category().message(errno)));
}

/// An open file; closed when it goes.
class OpenFile {
 public:
  // Without waiting: opening a pipe blocks until someone writes to it.
  explicit OpenFile(const std::filesystem::path& path)
      : descriptor_(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)) {}
  ~OpenFile() {
    if (is_open()) ::close(descriptor_);
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  bool is_open() const { return descriptor_ >= 0; }
  int descriptor() const { return descriptor_; }

 private:
  int descriptor_;
};

}  // namespace

Result<std::string> read_file(const std::filesystem::path& path, int64_t most_bytes) {
  const OpenFile file(path);
  if (!file.is_open()) return failed(path, "cannot be opened for reading");
  struct stat facts = {};
  if (::fstat(file.descriptor(), &facts) != 0) return failed(path, "cannot be opened for reading");
  const auto too_large = [&](int64_t bytes) {
    return Error(ErrorKind::kInvalidArgument,
                 fmt::format("{}: found {} bytes, allowed: at most {}", path.string(), bytes, most_bytes));
  };
  if (!S_ISREG(facts.st_mode)) {
    return Error(ErrorKind::kInvalidArgument,
                 fmt::format("{}: found {}, allowed: a regular file", path.string(),
                             S_ISDIR(facts.st_mode) ? "a folder" : "a pipe or a device"));
  }
  if (facts.st_size > most_bytes) return too_large(facts.st_size);
  std::string text(static_cast<size_t>(facts.st_size), '\0');
  size_t done = 0;
  while (true) {
    if (done == text.size()) text.resize(done + 4096);  // it may have grown, and some state no size at all
    const ssize_t got = ::read(file.descriptor(), text.data() + done, text.size() - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return failed(path, "reading failed");
    if (got == 0) break;
    done += static_cast<size_t>(got);
    if (static_cast<int64_t>(done) > most_bytes) return too_large(static_cast<int64_t>(done));
  }
  text.resize(done);
  return text;
}

}  // namespace spyre
