#pragma once

#include <filesystem>

#include "spyre/base/json.h"
#include "spyre/program/device_program.h"

/// A compile directory on disk, as the tools take it: the directory itself or its spyreCodeDir.
namespace spyre::tools {

struct BundleDirectory {
  std::filesystem::path code;      ///< with spyrecode.json
  program::LaunchSpec launch;      ///< what the caller passes
  program::DeviceProgram program;  ///< decoded from the image, as the card will see it
};

/// Reads and checks everything that can be checked without a card. Every failure is the artifact's.
Result<BundleDirectory> open_bundle(const std::filesystem::path& path);

}  // namespace spyre::tools
