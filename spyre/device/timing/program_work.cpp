#include "spyre/device/timing/program_work.h"

#include <fmt/format.h>

#include <set>

namespace spyre::timing {
namespace {

using program::DeviceProgram;
using program::ProgramLoop;
using program::Step;

/// From one tensor argument to the next. Parameter i begins at (i + 1) times this, the bundle's own pool after the last.
constexpr int64_t kApart = int64_t{1} << 40;

/// Addresses that no two tensors share, so that time does not depend on where they lie.
exec::LaunchValues apart(const DeviceProgram& program, const exec::LaunchValues& launch) {
  exec::LaunchValues placed = launch;
  for (size_t i = 0; i < program.parameters.size() && i < placed.parameters.size(); ++i) {
    if (program.parameters[i].kind == program::ParameterKind::kAddress) {
      placed.parameters[i] = static_cast<int64_t>(i + 1) * kApart;
    }
  }
  placed.pool_base = static_cast<int64_t>(program.parameters.size() + 1) * kApart;
  return placed;
}

void collect_tiled(const std::vector<Step>& steps, bool in_loop, std::set<int>& tiled) {
  for (const Step& step : steps) {
    if (const auto* loop = std::get_if<ProgramLoop>(&step.what)) {
      collect_tiled(loop->body, true, tiled);
    } else if (in_loop) {
      tiled.insert(std::get<program::Execute>(step.what).op);
    }
  }
}

class Collector {
 public:
  Collector(const DeviceProgram& program, const Machine& machine, const Rates& rates)
      : program_(program), machine_(machine), rates_(rates), last_starts_(program.ops.size()) {
    collect_tiled(program.steps, false, tiled_);
    alone_ = program.steps.size() == 1 && tiled_.empty();
  }

  Status add(const exec::BoundOp& bound, int op) {
    for (const program::CoreWork& core : bound.op->cores) {
      if (core.core >= machine_.cores) {
        return Error(ErrorKind::kInvalidArgument,
                     fmt::format("{}: found core {}, allowed: 0 to {}, as machine '{}' has", bound.where(),
                                 core.core, machine_.cores - 1, machine_.name))
            .try_instead("compiling for that many cores (SENCORES)");
      }
    }
    Surroundings surroundings = {.alone = alone_, .tiled = tiled_.contains(op)};
    std::vector<std::vector<int64_t>>& last = last_starts_[static_cast<size_t>(op)];
    for (size_t t = 0; t < last.size(); ++t) surroundings.again.push_back(last[t] == bound.start[t]);
    last = bound.start;
    works_.push_back(work_of(bound, surroundings, machine_, rates_));
    works_.back().op = op;
    return Status();
  }

  std::vector<ExecuteWork> take() { return std::move(works_); }

 private:
  const DeviceProgram& program_;
  const Machine& machine_;
  const Rates& rates_;
  std::set<int> tiled_;
  bool alone_ = false;
  std::vector<std::vector<std::vector<int64_t>>> last_starts_;  // [op][tensor][core position]
  std::vector<ExecuteWork> works_;
};

}  // namespace

Result<std::vector<ExecuteWork>> program_work(const DeviceProgram& program, const exec::LaunchValues& launch,
                                              const Machine& machine, const Rates& rates) {
  Collector collector(program, machine, rates);
  SPYRE_TRY(visit_executes(program, launch,
                           [&](const exec::BoundOp& bound, int op) { return collector.add(bound, op); }));
  return collector.take();
}

Status visit_executes(const DeviceProgram& program, const exec::LaunchValues& launch,
                      const VisitBound& visit) {
  return exec::walk_program(program, apart(program, launch),
                            [&](int op, const exec::SymbolValues& symbols, int64_t instruction) -> Status {
                              SPYRE_ASSIGN_OR_RETURN(
                                  const exec::BoundOp bound,
                                  exec::bind_op(program.ops[static_cast<size_t>(op)], symbols, instruction));
                              return visit(bound, op);
                            });
}

bool in_pool(const DeviceProgram& program, int64_t address) {
  const int64_t parameter = address / kApart - 1;
  if (parameter < 0) return false;
  return parameter >= static_cast<int64_t>(program.parameters.size()) ||
         program.parameters[static_cast<size_t>(parameter)].is_pool;
}

}  // namespace spyre::timing
