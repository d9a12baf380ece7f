#include "spyre/runtime/memory_stats.h"

#include <array>
#include <utility>

namespace spyre {
namespace {

using Member = Stat MemoryStats::*;
constexpr std::array<std::pair<const char*, Member>, 9> kStats = {{
    {"active", &MemoryStats::active},
    {"active_bytes", &MemoryStats::active_bytes},
    {"allocated_bytes", &MemoryStats::allocated_bytes},
    {"allocation", &MemoryStats::allocation},
    {"inactive_split", &MemoryStats::inactive_split},
    {"inactive_split_bytes", &MemoryStats::inactive_split_bytes},
    {"requested_bytes", &MemoryStats::requested_bytes},
    {"reserved_bytes", &MemoryStats::reserved_bytes},
    {"segment", &MemoryStats::segment},
}};

}  // namespace

void MemoryStats::reset_peak() {
  for (const auto& [name, member] : kStats) {
    (this->*member).peak = (this->*member).current;
  }
}

void MemoryStats::reset_accumulated() {
  for (const auto& [name, member] : kStats) {
    (this->*member).allocated = 0;
    (this->*member).freed = 0;
  }
  num_alloc_retries = 0;
  num_ooms = 0;
}

std::map<std::string, int64_t> MemoryStats::by_name() const {
  std::map<std::string, int64_t> out = {{"num_alloc_retries", num_alloc_retries}, {"num_ooms", num_ooms}};
  for (const auto& [name, member] : kStats) {
    const Stat& stat = this->*member;
    const std::string prefix = std::string(name) + ".all.";
    out[prefix + "current"] = stat.current;
    out[prefix + "peak"] = stat.peak;
    out[prefix + "allocated"] = stat.allocated;
    out[prefix + "freed"] = stat.freed;
  }
  return out;
}

}  // namespace spyre
