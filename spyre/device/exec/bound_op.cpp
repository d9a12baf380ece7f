#include "spyre/device/exec/bound_op.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace spyre::exec {
namespace {

/// The value of a symbol; the reader made sure that every execute binds every symbol of its op.
int64_t value_of(const SymbolValues& symbols, int64_t symbol) {
  const auto found =
      std::find_if(symbols.begin(), symbols.end(), [&](const auto& pair) { return pair.first == symbol; });
  SPYRE_CHECK(found != symbols.end(), "an execute step leaves a symbol unbound");
  return found->second;
}

Status bind_extents(BoundOp& bound, const SymbolValues& symbols) {
  bound.extents = declared_extents(*bound.op);
  bound.limit = bound.extents.total;
  for (int d = 0; d < bound.dims(); ++d) {
    const ProgramDim& dim = bound.op->dims[d];
    if (!dim.symbol) {
      continue;
    }
    const int64_t extent = value_of(symbols, *dim.symbol);
    if (extent < 1 || extent > dim.extent) {
      return Error(ErrorKind::kDeviceFault, fmt::format("{}: extent of '{}': found {}, allowed: 1 to {}",
                                                        bound.where(), dim.label, extent, dim.extent));
    }
    bound.limit[d] = extent;
  }
  return Status();
}

void bind_boxes(BoundOp& bound) {
  for (const CoreWork& work : bound.op->cores) {
    Box box;
    for (int d = 0; d < bound.dims(); ++d) {
      const int64_t slice = ceil_div(bound.limit[d], bound.op->dims[d].splits);
      box.lower[d] = std::min(work.slice[d] * slice, bound.limit[d]);
      box.upper[d] = std::min(box.lower[d] + slice, bound.limit[d]);
    }
    bound.boxes.push_back(box);
  }
}

Status bind_starts(BoundOp& bound, const SymbolValues& symbols) {
  for (const Tensor& tensor : bound.op->tensors) {
    std::vector<int64_t> starts;
    for (size_t c = 0; c < tensor.start.size(); ++c) {
      const CoreStart& start = tensor.start[c];
      const int64_t address = start.symbolic ? value_of(symbols, start.value) : start.value;
      if (address < 0 || address % start_alignment(tensor) != 0) {
        return device_fault(
            bound, bound.op->cores[c].core, static_cast<uint64_t>(address),
            fmt::format("start of {} is no multiple of {}", tensor.name, start_alignment(tensor)));
      }
      starts.push_back(address);
    }
    bound.start.push_back(std::move(starts));
  }
  return Status();
}

void bind_groups(BoundOp& bound) {
  const Tensor& out = bound.output();
  std::map<std::vector<int64_t>, std::vector<std::pair<std::vector<int64_t>, int>>> groups;
  for (size_t c = 0; c < bound.op->cores.size(); ++c) {
    std::vector<int64_t> kept, reduced;
    for (int d = 0; d < bound.dims(); ++d) {
      (out.find(d) != nullptr && out.find(d)->scale > 0 ? kept : reduced)
          .push_back(bound.op->cores[c].slice[d]);
    }
    groups[kept].emplace_back(reduced, static_cast<int>(c));
  }
  for (auto& [kept, members] : groups) {
    std::sort(members.begin(), members.end());
    std::vector<int>& group = bound.groups.emplace_back();
    for (const auto& [reduced, core] : members) {
      group.push_back(core);
    }
  }
}

}  // namespace

Box BoundOp::held(int tensor, int core) const {
  const Tensor& t = tensors[tensor];
  if (t.own_slices.empty()) {
    return boxes[core];
  }
  Box box;
  for (int d = 0; d < dims() && !t.own_slices[core].empty(); ++d) {
    const int64_t size = extents.total[d] / t.own_splits[d];
    box.lower[d] = t.own_slices[core][d] * size;
    box.upper[d] = box.lower[d] + size;
  }
  return box;
}

std::string BoundOp::where() const {
  return fmt::format("{} ({}), instruction {}", op->file, op->name, instruction);
}

Error device_fault(const BoundOp& bound, int core, uint64_t address, std::string_view what) {
  return Error(ErrorKind::kDeviceFault,
               fmt::format("core {}, address {:#x}, {}: {}", core, address, bound.where(), what));
}

Result<BoundOp> bind_op(const ProgramOp& op, const SymbolValues& symbols, int64_t instruction) {
  BoundOp bound;
  bound.op = &op;
  bound.instruction = instruction;
  bound.tensors = op.tensors;
  SPYRE_TRY(bind_extents(bound, symbols));
  bind_boxes(bound);
  SPYRE_TRY(bind_starts(bound, symbols));
  bind_groups(bound);
  return bound;
}

BoundOp bind_extents_only(const ProgramOp& op) {
  BoundOp bound;
  bound.op = &op;
  bound.tensors = op.tensors;
  const Status bindable = bind_extents(bound, {});
  SPYRE_CHECK(bindable.ok(), "an op with dynamic extents is bound before its launch");
  bind_boxes(bound);
  bind_groups(bound);
  return bound;
}

}  // namespace spyre::exec
