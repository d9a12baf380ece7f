#pragma once

#include <limits>

#include "spyre/program/fields.h"
#include "spyre/program/sdsc_record.h"

/// What the sources behind sdsc_record.h share.
namespace spyre::program {

inline constexpr int64_t kAnyLow = std::numeric_limits<int64_t>::min();
inline constexpr int64_t kAnyHigh = std::numeric_limits<int64_t>::max();
inline constexpr size_t kManyCores = kMaxCoreId + 1;

/// A core id written as the key of an object.
Result<int64_t> core_key(const Field& owner, std::string_view key);

/// `{"0": {"mb": 0, "out": 1}, ...}`: the slice of every dim, by core.
Result<std::map<int64_t, std::map<std::string, int64_t>>> read_core_slices(const Field& field);

/// One entry of scheduleTree_.
Result<AllocateRecord> read_node(const Field& field);

}  // namespace spyre::program
