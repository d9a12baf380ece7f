#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "glue/kernel_facts.h"
#include "spyre/runtime/run_facts.h"

namespace spyre::glue {

/// What a trace says about activities and operations beside names and times. One trace, one thread.
class TraceDetails {
 public:
  using Details = std::vector<std::pair<std::string, std::string>>;  ///< names, and values as JSON text

  Details of(const Activity& activity);

  /// One operation of a launched program, for the rows of cores.
  Details of(const ProgramRun& run, size_t op);

 private:
  struct Origins {
    std::map<std::string, program::OpOrigin> by_file;
    std::map<std::pair<std::string, std::string>, std::vector<std::string>> nodes;
  };
  void add_kernel(const ProgramRun& run, Details& details);
  const Origins& origins_of(const ProgramRun& run);

  RunFactsCache facts_;
  std::map<std::pair<const KernelFacts*, const KernelFacts*>, Origins>
      origins_;  // the record keeps the keys alive
};

}  // namespace spyre::glue
