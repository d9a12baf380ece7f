#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "spyre/runtime/allocator.h"
#include "spyre/runtime/stream.h"

/// Passes when a Result or Status is good; shows its error otherwise.
#define EXPECT_OK(expression)                                               \
  do {                                                                      \
    const auto& spyre_outcome_ = (expression);                              \
    EXPECT_TRUE(spyre_outcome_.ok()) << spyre_outcome_.error().to_string(); \
  } while (false)
#define ASSERT_OK(expression)                                               \
  do {                                                                      \
    const auto& spyre_outcome_ = (expression);                              \
    ASSERT_TRUE(spyre_outcome_.ok()) << spyre_outcome_.error().to_string(); \
  } while (false)

namespace spyre {

inline StreamRef make_stream(int device = 0) {
  return std::make_shared<Stream>(device, 1, 0);
}

/// 0, 1, 2, ... modulo 251, so that no power of two repeats.
inline std::vector<std::byte> counting_up(size_t n, size_t start = 0) {
  std::vector<std::byte> out(n);
  for (size_t i = 0; i < n; ++i) {
    out[i] = static_cast<std::byte>((start + i) % 251);
  }
  return out;
}

inline std::shared_ptr<Device> fenced_toy() {
  return std::shared_ptr<Device>(std::move(make_memory_device(toy_card(), Fence::kStrict)).value());
}

inline std::shared_ptr<Allocator> toy_allocator(AllocatorOptions options = {}) {
  return std::make_shared<Allocator>(0, fenced_toy(), options);
}

/// An environment variable for the length of a test.
class ScopedEnvironment {
 public:
  ScopedEnvironment(std::string name, const std::string& value) : name_(std::move(name)) {
    if (const char* old = std::getenv(name_.c_str())) {
      old_ = old;
    }
    setenv(name_.c_str(), value.c_str(), 1);
  }
  ~ScopedEnvironment() { old_ ? setenv(name_.c_str(), old_->c_str(), 1) : unsetenv(name_.c_str()); }
  ScopedEnvironment(const ScopedEnvironment&) = delete;
  ScopedEnvironment& operator=(const ScopedEnvironment&) = delete;

 private:
  std::string name_;
  std::optional<std::string> old_;
};

/// Work that holds its stream until the test says otherwise: what comes after it is certainly queued.
class Gate {
 public:
  /// Put this on the stream.
  std::function<Status()> work() {
    return [open = open_]() -> Status {
      open->wait(false);
      return {};
    };
  }
  void open() {
    open_->store(true);
    open_->notify_all();
  }
  ~Gate() { open(); }

 private:
  std::shared_ptr<std::atomic<bool>> open_ = std::make_shared<std::atomic<bool>>(false);
};

}  // namespace spyre
