#pragma once

#include <cstdio>
#include <exception>
#include <functional>

#include "spyre/base/result.h"

/// How our tools end. Scripts tell by the code whose turn it is.
namespace spyre::tools {

enum ExitCode {
  kDone = 0,
  kBadUsage = 1,     ///< the command line, or files given on it
  kBadArtifact = 2,  ///< the bundle is refused: its writer's turn
  kFault = 3,        ///< the card stopped while it ran the bundle: its writer's turn, or the inputs are wrong
  kBug = 4,          ///< we broke our own rule: ours
};

inline int report(const Error& error, ExitCode code) {
  std::fprintf(stderr, "error: %s\n", error.to_string().c_str());
  return code;
}

/// Runs the body of a main; whatever it throws is a bug, and said to be one.
inline int guarded_main(const std::function<int()>& body) {
  try {
    return body();
  } catch (const std::exception& thrown) {
    std::fprintf(stderr, "bug: %s\n  try  report this with the bundle and the command line\n", thrown.what());
    return kBug;
  }
}

}  // namespace spyre::tools
