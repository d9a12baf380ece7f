#include "spyre/device/timing/lx_lives.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace spyre::timing {
namespace {

bool overlap(const LxLife& a, const LxLife& b) {
  return a.address < b.address + b.bytes && b.address < a.address + a.bytes;
}

}  // namespace

void LxLives::read(int core, const LxLife& touched) {
  bool found = false;
  for (LxLife& life : open_[static_cast<size_t>(core)]) {
    if (!overlap(life, touched)) continue;
    life.last = execute_;
    found = true;
  }
  if (!found) open_[static_cast<size_t>(core)].push_back(touched);
}

void LxLives::write(int core, const LxLife& touched) {
  std::vector<LxLife>& open = open_[static_cast<size_t>(core)];
  for (const LxLife& life : open) {
    if (overlap(life, touched)) ended_[static_cast<size_t>(core)].push_back(life);
  }
  std::erase_if(open, [&](const LxLife& life) { return overlap(life, touched); });
  open.push_back(touched);
}

void LxLives::add(const exec::BoundOp& bound, int op) {
  for (const bool writes : {false, true}) {
    for (int t = 0; t < static_cast<int>(bound.tensors.size()); ++t) {
      const exec::Tensor& tensor = bound.tensors[static_cast<size_t>(t)];
      if (tensor.residence != exec::Residence::kLx || (t == bound.op->output) != writes) continue;
      const int64_t bytes = program::allocated_elements(tensor) * bits_of(tensor.format) / 8;
      for (size_t position = 0; position < bound.op->cores.size(); ++position) {
        const int core = bound.op->cores[position].core;
        if (open_.size() <= static_cast<size_t>(core)) {
          open_.resize(static_cast<size_t>(core) + 1);
          ended_.resize(static_cast<size_t>(core) + 1);
        }
        const LxLife touched = {.tensor = tensor.name,
                                .op = op,
                                .address = bound.start[static_cast<size_t>(t)][position],
                                .bytes = bytes,
                                .first = execute_,
                                .last = execute_,
                                .cores = 1};
        writes ? write(core, touched) : read(core, touched);
      }
    }
  }
  ++execute_;
}

std::vector<LxLife> LxLives::take() {
  std::map<std::tuple<int, int64_t, int64_t, int, int, std::string>, LxLife> alike;
  for (size_t core = 0; core < open_.size(); ++core) {
    for (const std::vector<LxLife>* lives : {&ended_[core], &open_[core]}) {
      for (const LxLife& life : *lives) {
        const auto [place, fresh] =
            alike.try_emplace({life.first, life.address, life.bytes, life.last, life.op, life.tensor}, life);
        if (!fresh) ++place->second.cores;
      }
    }
  }
  std::vector<LxLife> lives;
  for (auto& [key, life] : alike) lives.push_back(std::move(life));
  return lives;
}

}  // namespace spyre::timing
