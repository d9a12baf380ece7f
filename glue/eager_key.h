#pragma once

#include <ATen/core/ivalue.h>

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace spyre::glue {

/// Everything the kernel of an eager call depends on, as numbers: the operator, and of each argument what a
/// graph is made from: sizes, strides, offset, dtype and device layout of a tensor (never its values), the
/// value of a number, which tensors share memory; then the settings that change code. Equal keys mean equal
/// kernels.
struct EagerKey {
  std::vector<int64_t> words;
  size_t hash = 0;

  friend bool operator==(const EagerKey& a, const EagerKey& b) {
    return a.hash == b.hash && a.words == b.words;
  }
};

struct EagerKeyHash {
  size_t operator()(const EagerKey& key) const noexcept { return key.hash; }
};

/// `op` tells operators apart. Nothing for arguments that no form takes: generators, tensors with
/// dimensions on the CPU, storages.
std::optional<EagerKey> eager_key(const void* op, std::span<const c10::IValue> arguments);

}  // namespace spyre::glue
