#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "spyre/arch/machine.h"
#include "spyre/base/result.h"
#include "spyre/program/device_program.h"

/// The door of this layer: artifact text in, a program the card can run out.
///
/// Reading is total. Whatever the bytes, the answer is a program or an `Error`, in time and memory bounded by
/// the size of the input: sizes, nesting, loop counts and extents all have limits, stated where they are
/// checked.
namespace spyre::program {

/// The files of a bundle by name: `bundle.mlir`, `sdsc_0.json`, ..., `launch_spec.json`.
using ProgramFiles = std::map<std::string, std::string>;

/// Reads a bundle. Two forms are understood:
///  - with `bundle.mlir`: executes what it says; sdsc files it does not mention are not looked at;
///  - without it: exactly one sdsc JSON with baked addresses, executed once.
/// `launch_spec.json` is optional (also found as `spyreCodeDir/launch_spec.json`).
Result<DeviceProgram> read_program(const ProgramFiles& files, const Machine& machine = spyre_card());

/// The files of a compile directory that `read_program` may need, or a single sdsc JSON file.
Result<ProgramFiles> load_program_files(const std::filesystem::path& path);

/// Both at once.
Result<DeviceProgram> read_program_at(const std::filesystem::path& path,
                                      const Machine& machine = spyre_card());

}  // namespace spyre::program
