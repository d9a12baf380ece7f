#pragma once

#include "spyre/base/json.h"
#include "spyre/codegen/superdsc/bundle.h"
#include "spyre/codegen/superdsc/sdsc_json.h"

/// What a bundle does, before it is text: parameters, files, and executions inside loops.
namespace spyre::superdsc {

/// A parameter of the bundle, in signature order: the pool if the caller passes it, one per launch argument
/// used, then runtime extents of dimensions, then those of loops.
struct Parameter {
  enum class Kind : uint8_t { kPool, kKernel, kDimension, kLoopDimension };
  Kind kind = Kind::kKernel;
  int64_t arg_index = -1;  ///< of the argument, or of the one whose shape has the extent
  int64_t dim_index = -1;  ///< position of the extent in that shape
  std::string symbol;      ///< name of the extent
  SymbolBound bound;

  std::string value_name() const;  ///< SSA name of its value: %arg_0, %pool, %sym_0_1, %dim_s0
  std::string type() const;        ///< !sdscbundle.input_arg<...>
};

/// One operand of an execution: a symbol's value, moved on by the loops around it.
struct Operand {
  Symbol symbol;
  std::vector<int64_t> byte_stride;  ///< per trip of each enclosing loop, outermost first
};

struct Execution {
  int64_t file = 0;
  std::vector<int64_t> ids;  ///< parallel to operands
  std::vector<Operand> operands;
};

struct BundleLoop;
using Step = std::variant<Execution, BundleLoop>;
struct BundleLoop {
  int64_t count = 0;
  std::string count_symbol;
  SymbolBound bound;
  std::vector<Step> steps;
};

struct BundleProgram {
  std::vector<Parameter> parameters;
  int64_t pool_bytes = 0;
  bool pool_is_parameter = false;
  std::vector<Step> steps;
  std::vector<Json> files;      ///< sdsc_N.json
  std::vector<Symbol> symbols;  ///< symbols[|id| - 1]
};

Result<BundleProgram> build_program(const Kernel& kernel, const BundleOptions& options);

/// The parts of a bundle, each from the program and the kernel.
std::string bundle_mlir(const BundleProgram& program);
Json symbol_kinds_json(const BundleProgram& program);
Json launch_spec_json(const Kernel& kernel, const BundleProgram& program);

/// The program image of one bundle, and the job that loads and runs all bundles of a kernel.
std::string program_image(const BundleProgram& program, const std::map<std::string, std::string>& texts);
struct LoadedPart {
  BundleProgram program;
  int64_t offset = 0;  ///< of its correction bytes in the program region; its image follows them
  bool non_terminal = false;
};
Json spyre_code_json(const std::vector<LoadedPart>& parts, const Machine& machine, int64_t region_bytes,
                     size_t launch_tensors);
/// Bytes at the start of the image that the launch fills with parameter values.
int64_t correction_bytes(const BundleProgram& program);

}  // namespace spyre::superdsc
