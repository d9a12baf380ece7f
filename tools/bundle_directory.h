#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "spyre/base/json.h"
#include "spyre/program/device_program.h"
#include "spyre/program/origin.h"

/// A compile directory on disk, as the tools take it: the directory itself or its spyreCodeDir.
namespace spyre::tools {

struct BundleDirectory {
  std::filesystem::path code;      ///< with spyrecode.json
  program::LaunchSpec launch;      ///< what the caller passes
  program::DeviceProgram program;  ///< decoded from the image, as the card will see it
};

/// Reads and checks everything that can be checked without a card. Every failure is the artifact's.
Result<BundleDirectory> open_bundle(const std::filesystem::path& path);

/// Where the operations of a bundle come from, by sdsc file; of a kernel of several bundles (`part` from 0 on), those of
/// one. Empty where the directory has no sdsc files, as a spyreCodeDir alone.
std::map<std::string, program::OpOrigin> origins_in(const std::filesystem::path& path, int part = -1);

}  // namespace spyre::tools
