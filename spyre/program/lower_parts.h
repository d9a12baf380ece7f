#pragma once

#include "spyre/program/device_program.h"
#include "spyre/program/refusal.h"
#include "spyre/program/sdsc_record.h"

/// What the sources behind lower.h share. Each field name is told from the top of the file.
namespace spyre::program {

inline Error refuse(const SdscRecord& record, std::string_view field, std::string_view found,
                    std::string_view allowed, ErrorKind kind = ErrorKind::kInvalidArgument) {
  return refusal(record.file, record.at(field), found, allowed, kind);
}

/// The position of a label among the op's dims; `field` is where the label was written.
Result<int> dim_index(const SdscRecord& record, const ProgramOp& op, std::string_view field,
                      std::string_view label);

/// A format by name, of whole bytes.
Result<DataFormat> format_of(const SdscRecord& record, std::string_view field, const std::string& name);

/// One tensor: its dims in memory order, its stick, where it starts on each core. Expects the op's dims and
/// cores to be there. Strides, windows and indirections come later.
Result<Tensor> lower_tensor(const SdscRecord& record, const AllocateRecord& node, const ProgramOp& op);

}  // namespace spyre::program
