#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "glue/kernel_artifact.h"
#include "spyre/program/origin.h"
#include "spyre/runtime/activity_log.h"

namespace spyre::glue {

/// Where a kernel comes from, for profiles. Read out of its files and its text when a trace is written, not before.

/// What a kernel's bundle says.
class ArtifactFacts final : public KernelFacts {
 public:
  explicit ArtifactFacts(std::shared_ptr<const KernelArtifact> artifact) : artifact_(std::move(artifact)) {}

  /// By the names of sdsc files.
  std::map<std::string, program::OpOrigin> origins() const;

 private:
  const std::shared_ptr<const KernelArtifact> artifact_;
};

/// What the code that launches a kernel says.
class CallFacts final : public KernelFacts {
 public:
  CallFacts(std::string text, std::string modules, std::string artifact)
      : text_(std::move(text)), modules_(std::move(modules)), artifact_(std::move(artifact)) {}

  const std::string& modules() const { return modules_; }    ///< paths of the model's modules
  const std::string& artifact() const { return artifact_; }  ///< folder

  /// Nodes of the graph by ATen operator and source line; several where a line is run more than once.
  std::map<std::pair<std::string, std::string>, std::vector<std::string>> nodes() const;

 private:
  const std::string text_;  ///< of the graph, as the compiler reads it
  const std::string modules_, artifact_;
};

}  // namespace spyre::glue
