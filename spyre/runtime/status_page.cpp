#include "spyre/runtime/status_page.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <fstream>
#include <mutex>
#include <new>
#include <optional>

#include "spyre/base/settings.h"

namespace spyre {
namespace {

constexpr uint64_t kMagic = 0x3165'6761'7065'7273;  // "srepage1": the version is in it
constexpr size_t kCards = 8;

struct StatusPage {
  std::atomic<uint64_t> magic = 0;  ///< written last: a page without it is not ready
  int64_t started = 0;              ///< of the system's clock, ns
  std::array<CardStatus, kCards> cards;
};
static_assert(std::atomic<int64_t>::is_always_lock_free, "other processes share these");

int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

std::string folder() {
  return fmt::format("/dev/shm/spyre-{}", getuid());
}

/// Ours alone: nobody else could have put something there, or can look into it.
bool is_private(const std::string& path) {
  struct stat found = {};
  return lstat(path.c_str(), &found) == 0 && S_ISDIR(found.st_mode) && found.st_uid == getuid() &&
         (found.st_mode & 077) == 0;
}

/// The lock of a whole file, held until its process ends or closes it, whatever way it goes.
struct flock whole_file(short type) {
  struct flock lock = {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  return lock;
}

class OpenFile {
 public:
  explicit OpenFile(int file) : file_(file) {}
  ~OpenFile() {
    if (file_ >= 0) close(file_);
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  int get() const { return file_; }
  int release() { return std::exchange(file_, -1); }

 private:
  int file_;
};

class Publisher {
 public:
  static Publisher& instance() {
    static Publisher* const publisher = new Publisher();  // cards may write until the very end
    return *publisher;
  }

  void publish() {
    const std::lock_guard lock(mutex_);
    const Result<bool> wanted = read_bool("SPYRE_STATUS");
    if (page_ != nullptr || !wanted.ok() || !wanted.value()) return;
    (void)mkdir(folder().c_str(), 0700);
    if (!is_private(folder())) return;
    path_ = fmt::format("{}/{}", folder(), getpid());
    (void)unlink(path_.c_str());  // of a process that is gone and had this number
    OpenFile file(open(path_.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (file.get() < 0) return;
    struct flock mine = whole_file(F_WRLCK);
    if (fcntl(file.get(), F_SETLK, &mine) != 0 || ftruncate(file.get(), sizeof(StatusPage)) != 0) {
      (void)unlink(path_.c_str());
      return;
    }
    void* const place = mmap(nullptr, sizeof(StatusPage), PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
    if (place == MAP_FAILED) {
      (void)unlink(path_.c_str());
      return;
    }
    page_ = new (place) StatusPage();
    page_->started = now_ns();
    page_->magic.store(kMagic, std::memory_order_release);
    owner_ = getpid();
    file.release();  // closing it would give up the lock
  }

  void withdraw() {
    const std::lock_guard lock(mutex_);
    if (page_ != nullptr && owner_ == getpid()) (void)unlink(path_.c_str());
  }

  CardStatus& claim(int index) {
    const std::lock_guard lock(mutex_);
    if (page_ == nullptr || owner_ != getpid() || index < 0 || index >= static_cast<int>(kCards)) {
      return unpublished_status();
    }
    CardStatus& status = page_->cards[static_cast<size_t>(index)];
    int64_t free = 0;
    return status.in_use.compare_exchange_strong(free, 1) ? status : unpublished_status();
  }

 private:
  std::mutex mutex_;  // guards everything below; a leaf
  StatusPage* page_ = nullptr;
  std::string path_;
  pid_t owner_ = 0;  // a child that was forked is not
};

std::string command_of(int64_t pid) {
  std::ifstream file(fmt::format("/proc/{}/cmdline", pid), std::ios::binary);
  std::string words((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  while (!words.empty() && words.back() == '\0') words.pop_back();
  std::replace_if(
      words.begin(), words.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; }, ' ');
  return words;
}

std::string name_in(const CardStatus& status) {
  std::array<char, CardStatus::kNameWords* 8> text = {};
  for (size_t i = 0; i < CardStatus::kNameWords; ++i) {
    const uint64_t word = status.kernel[i].load(std::memory_order_relaxed);
    std::memcpy(text.data() + 8 * i, &word, 8);
  }
  std::string name(text.data(), strnlen(text.data(), text.size()));
  std::replace_if(
      name.begin(), name.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; }, '?');
  return name;
}

SeenCard seen_card(int index, const CardStatus& status, int64_t now) {
  SeenCard seen = {.index = index,
                   .total = Bytes(status.total.load()),
                   .allocated = Bytes(status.allocated.load()),
                   .peak = Bytes(status.peak.load()),
                   .launches = status.launches.load(),
                   .busy_ns = status.busy_ns.load(),
                   .kernel = name_in(status)};
  if (const int64_t since = status.running_since.load(); since != 0)
    seen.running_ns = std::max<int64_t>(1, now - since);
  for (const CardStatus::Stream& stream : status.streams) {
    const int64_t done = stream.done.load(), given = stream.given.load();
    seen.streams += given > 0;
    seen.waiting += std::max<int64_t>(0, given - done);
  }
  return seen;
}

/// Nothing where the file is no page, or its process is gone; then it is removed, too.
std::optional<SeenProcess> seen_process(const std::string& path) {
  // For writing: a lock for reading would do, but the question must be one that the writer's lock conflicts with.
  const OpenFile file(open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  struct stat size = {};
  if (file.get() < 0 || fstat(file.get(), &size) != 0) return std::nullopt;
  struct flock other = whole_file(F_WRLCK);
  if (fcntl(file.get(), F_GETLK, &other) != 0) return std::nullopt;
  if (other.l_type == F_UNLCK) {
    // A page that is being made has no lock yet; it is young.
    struct timespec now = {};
    (void)clock_gettime(CLOCK_REALTIME, &now);
    if (now.tv_sec - size.st_mtim.tv_sec > 2) (void)unlink(path.c_str());
    return std::nullopt;
  }
  if (size.st_size != static_cast<off_t>(sizeof(StatusPage))) return std::nullopt;
  void* const place = mmap(nullptr, sizeof(StatusPage), PROT_READ, MAP_SHARED, file.get(), 0);
  if (place == MAP_FAILED) return std::nullopt;
  const auto* const page = static_cast<const StatusPage*>(place);
  std::optional<SeenProcess> seen;
  if (page->magic.load(std::memory_order_acquire) == kMagic) {
    const int64_t now = now_ns();
    seen = SeenProcess{.pid = other.l_pid, .command = command_of(other.l_pid), .age_ns = now - page->started};
    for (size_t i = 0; i < kCards; ++i) {
      if (page->cards[i].in_use.load() != 0)
        seen->cards.push_back(seen_card(static_cast<int>(i), page->cards[i], now));
    }
  }
  (void)munmap(place, sizeof(StatusPage));
  return seen;
}

}  // namespace

void CardStatus::begin(std::string_view name) {
  std::array<char, kNameWords* 8> text = {};
  std::memcpy(text.data(), name.data(), std::min(name.size(), text.size() - 1));
  for (size_t i = 0; i < kNameWords; ++i) {
    uint64_t word = 0;
    std::memcpy(&word, text.data() + 8 * i, 8);
    kernel[i].store(word, std::memory_order_relaxed);
  }
  launches.fetch_add(1, std::memory_order_relaxed);
  running_since.store(now_ns(), std::memory_order_release);
}

void CardStatus::end() {
  busy_ns.fetch_add(now_ns() - running_since.exchange(0, std::memory_order_acq_rel),
                    std::memory_order_relaxed);
}

CardStatus& unpublished_status() {
  static CardStatus* const nobody_looks = new CardStatus();
  return *nobody_looks;
}

CardStatus& claim_status(int index) {
  return Publisher::instance().claim(index);
}

void release_status(CardStatus& status) {
  status.in_use.store(0);
}

void publish_status() {
  Publisher::instance().publish();
}

void withdraw_status() {
  Publisher::instance().withdraw();
}

std::vector<SeenProcess> seen_processes() {
  std::vector<SeenProcess> seen;
  if (!is_private(folder())) return seen;
  DIR* const directory = opendir(folder().c_str());
  if (directory == nullptr) return seen;
  while (const dirent* entry = readdir(directory)) {
    const std::string name = entry->d_name;
    if (name.empty() || name.find_first_not_of("0123456789") != std::string::npos) continue;
    if (name == std::to_string(getpid())) continue;  // closing our own page here would give up its lock
    if (auto process = seen_process(folder() + "/" + name)) seen.push_back(std::move(*process));
  }
  closedir(directory);
  std::sort(seen.begin(), seen.end(),
            [](const SeenProcess& a, const SeenProcess& b) { return a.pid < b.pid; });
  return seen;
}

}  // namespace spyre
