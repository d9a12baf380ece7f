#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

#include "spyre/base/json_fwd.h"
#include "spyre/base/result.h"
#include "spyre/runtime/spyre_code.h"

namespace spyre {

/// The parts of a compile directory say the same thing: an artifact has one truth.
///
///     spyreCodeDir/init_binary.bin     the texts in it are what runs
///     bundle.mlir, sdsc_N.json, ...    the same texts beside it, byte for byte
///     spyreCodeDir/launch_spec.json    the same arguments
///     spyreCodeDir/spyrecode.json      the same parameters; symbol_kinds.json as well
///
/// `code_directory` has spyrecode.json, which reads `code`; `plan` is its text, `binaries` are the files of
/// its init transfers. A spyreCodeDir alone is whole. An image that cannot be read is not looked at here: the
/// card says so. A part that differs, one that is missing beside others, or one too many is refused; the
/// message names both files.
Status check_parts(const std::filesystem::path& code_directory, const Json& plan, const SpyreCode& code,
                   std::span<const std::string> binaries);

/// What the init transfers put into the program region from `entry` on; empty: nothing.
std::span<const std::byte> bytes_from(Bytes entry, const SpyreCode& code,
                                      std::span<const std::string> binaries);

}  // namespace spyre
