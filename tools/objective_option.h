#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "spyre/lx/objective.h"

namespace spyre::tools {

/// `--objective traffic|time`, as SPYRE_PLAN_OBJECTIVE says where it is not given.
inline void add_objective(CLI::App& app, lx::Objective& objective) {
  app.add_option_function<std::string>(
         "--objective", [&](const std::string& name) { objective = lx::objective_of(name); },
         "What joint planning makes small (SPYRE_PLAN_OBJECTIVE)")
      ->check(CLI::IsMember({"traffic", "time"}));
}

}  // namespace spyre::tools
