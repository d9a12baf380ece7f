#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "spyre/device/exec/bound_op.h"

namespace spyre::timing {

/// A value in scratchpads, from the execute that writes it to the last that reads it before something else is written
/// there. Cores that hold one alike, at the same address for the same executes, are one life.
struct LxLife {
  std::string tensor;  ///< by its name in the op that wrote it
  int op = 0;          ///< that wrote it; that first read it where nothing did
  int64_t address = 0, bytes = 0;
  int first = 0, last = 0;  ///< executes
  int cores = 0;            ///< that hold it
};

/// Follows a launch, execute by execute, and gathers what lies in LX.
class LxLives {
 public:
  void add(const exec::BoundOp& bound, int op);
  /// By first execute, then address.
  std::vector<LxLife> take();

 private:
  void read(int core, const LxLife& touched);
  void write(int core, const LxLife& touched);

  int execute_ = 0;
  std::vector<std::vector<LxLife>> open_;   // [core]
  std::vector<std::vector<LxLife>> ended_;  // [core]
};

}  // namespace spyre::timing
