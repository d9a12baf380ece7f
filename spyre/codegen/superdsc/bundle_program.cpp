#include "spyre/codegen/superdsc/bundle_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <unordered_map>

#include "spyre/base/json.h"
#include "spyre/codegen/superdsc/physical.h"

namespace spyre::superdsc {
namespace {

struct WrittenFile {
  SdscPlan plan;
  OpSymbols symbols;
  SdscPosition position;
  Json content;  // to compare with; null until someone does
};

class Builder {
 public:
  Builder(const Kernel& kernel, const BundleOptions& options) : kernel_(kernel), options_(options) {}

  Result<BundleProgram> build() {
    program_.pool_bytes = kernel_.pool_bytes;
    program_.pool_is_parameter = options_.frontend_pool_allocation && kernel_.pool_bytes > 0;
    for (size_t i = 0; i < kernel_.body.size(); ++i) {
      const Status added = add(kernel_.body[i], program_.steps);
      if (!added.ok()) return Error(added.error()).at_item(i);
    }
    SPYRE_TRY(parameters());
    return std::move(program_);
  }

 private:
  Status add(const KernelItem& item, std::vector<Step>& to) {
    if (const auto* op = std::get_if<OpSpec>(&item)) {
      SPYRE_ASSIGN_OR_RETURN(Execution execution, execute(*op));
      to.emplace_back(std::move(execution));
      return Status();
    }
    const auto& loop = std::get<LoopSpec>(item);
    loops_.push_back(&loop);
    BundleLoop out{.count = loop.count, .count_symbol = loop.count_symbol, .bound = loop.bound};
    for (const KernelItem& inner : loop.body) SPYRE_TRY(add(inner, out.steps));
    to.emplace_back(std::move(out));
    loops_.pop_back();
    if (!loop.count_symbol.empty()) loop_extents_.emplace(loop.count_symbol, loop.bound);
    return Status();
  }

  Result<Execution> execute(const OpSpec& op) {
    SPYRE_ASSIGN_OR_RETURN(const SdscPlan plan, plan_sdsc(op, options_.machine));
    const OpSymbols symbols = number_symbols(plan);
    const SdscPosition position = file_for(plan, symbols);
    Execution execution{.file = position.file};
    for (const int symbol : symbols.binding_order()) {
      execution.ids.push_back(symbol_id(position, symbol));
      SPYRE_ASSIGN_OR_RETURN(Operand operand, bind(plan, symbols.all[symbol]));
      execution.operands.push_back(std::move(operand));
    }
    for (const Symbol& symbol : symbols.all) {
      if (symbol.arg_index >= 0) used_arguments_.insert(symbol.arg_index);
    }
    for (const Dim& dim : plan.dims) {
      if (!dim.dynamic.empty()) dim_extents_.emplace(dim.dynamic, dim.bound);
    }
    return execution;
  }

  // The file of an equal op, or a new one with the next numbers.
  SdscPosition file_for(const SdscPlan& plan, const OpSymbols& symbols) {
    std::vector<WrittenFile>& alike = written_[outline(plan)];
    if (options_.share_equal_sdscs && !alike.empty()) {
      const Json content = comparable(plan, symbols);
      for (WrittenFile& file : alike) {
        if (file.content.is_null()) file.content = comparable(file.plan, file.symbols);
        if (file.content == content) return file.position;
      }
    }
    const SdscPosition position{.file = static_cast<int64_t>(program_.files.size()),
                                .first_symbol = static_cast<int64_t>(program_.symbols.size())};
    program_.files.push_back(sdsc_json(plan, symbols, position));
    program_.symbols.insert(program_.symbols.end(), symbols.all.begin(), symbols.all.end());
    alike.push_back({plan, symbols, position, {}});
    return position;
  }

  // Some of what a file says: equal files have equal outlines, and few others do.
  static std::string outline(const SdscPlan& plan) {
    std::string text = plan.function;
    for (const Dim& dim : plan.dims)
      fmt::format_to(std::back_inserter(text), " {}/{}", dim.extent, dim.split);
    for (const Tensor& tensor : plan.tensors) {
      if (!tensor.in_lx()) continue;
      const int64_t address = tensor.arg->allocation.value + slice_offset_bytes(plan, tensor);
      fmt::format_to(std::back_inserter(text), " @{}", address);
    }
    return text;
  }

  // All that a file says, but for where in the bundle it is and what it comes from.
  static Json comparable(const SdscPlan& plan, const OpSymbols& symbols) {
    return sdsc_json(plan, symbols, {.with_handle = false});
  }

  Result<Operand> bind(const SdscPlan& plan, const Symbol& symbol) const {
    Operand operand{.symbol = symbol};
    for (size_t level = 0; level < loops_.size(); ++level) {
      int64_t stride = 0;
      if (symbol.tensor >= 0) {
        // tiled_symbols counts loops from the innermost, the operand from the outermost.
        const auto& moved = plan.op->tiled_symbols[loops_.size() - 1 - level];
        for (const std::string& name : moved) stride += advance(plan, plan.tensors[symbol.tensor], name);
      }
      const int64_t step = loops_[level]->count_symbol.empty() ? 1 : loops_[level]->bound.granularity;
      if (stride % step != 0) {
        return plan.refuse(
            plan.tensors[symbol.tensor],
            fmt::format("advances {} bytes a trip, not a multiple of the loop's step {}", stride, step));
      }
      operand.byte_stride.push_back(stride / step);
    }
    return operand;
  }

  // Bytes one step of a tiled symbol moves a tensor; a tensor that lacks the dimension stays.
  static int64_t advance(const SdscPlan& plan, const Tensor& tensor, const std::string& symbol) {
    if (!tensor.arg->tile_advance) return 0;
    if (const auto dim = plan.find_symbol(symbol)) {
      const TensorDim* d = tensor.find(*dim);
      if (d != nullptr && d->scale < 0) return 0;
    }
    return tensor.arg->tile_advance->coefficient(symbol) * tensor.word_length;
  }

  Status parameters() {
    if (program_.pool_is_parameter) program_.parameters.push_back({.kind = Parameter::Kind::kPool});
    for (const int64_t index : used_arguments_) {
      program_.parameters.push_back({.kind = Parameter::Kind::kKernel, .arg_index = index});
    }
    for (const auto& [name, bound] : dim_extents_)
      SPYRE_TRY(extent(Parameter::Kind::kDimension, name, bound));
    for (const auto& [name, bound] : loop_extents_)
      SPYRE_TRY(extent(Parameter::Kind::kLoopDimension, name, bound));
    return Status();
  }

  // A runtime extent is read off the shape of the first argument that has it.
  Status extent(Parameter::Kind kind, const std::string& name, const SymbolBound& bound) {
    for (const LaunchArgument& arg : kernel_.arguments) {
      for (size_t i = 0; i < arg.shape.size(); ++i) {
        if (arg.shape[i] != SizeOrSymbol(name)) continue;
        program_.parameters.push_back({kind, arg.index, static_cast<int64_t>(i), name, bound});
        return Status();
      }
    }
    return Error(
        ErrorKind::kInvalidArgument,
        fmt::format("kernel '{}': runtime extent '{}' is in no argument's shape", kernel_.name, name));
  }

  const Kernel& kernel_;
  const BundleOptions& options_;
  BundleProgram program_;
  std::vector<const LoopSpec*> loops_;                                 // outermost first
  std::unordered_map<std::string, std::vector<WrittenFile>> written_;  // by outline
  std::set<int64_t> used_arguments_;
  std::map<std::string, SymbolBound> dim_extents_, loop_extents_;
};

}  // namespace

std::string Parameter::value_name() const {
  switch (kind) {
    case Kind::kPool:
      return "%pool";
    case Kind::kKernel:
      return fmt::format("%arg_{}", arg_index);
    case Kind::kDimension:
      return fmt::format("%sym_{}_{}", arg_index, dim_index);
    case Kind::kLoopDimension:
      return fmt::format("%dim_{}", symbol);
  }
  return "%unknown";
}

std::string Parameter::type() const {
  const bool extent = kind == Kind::kDimension || kind == Kind::kLoopDimension;
  return extent ? fmt::format("!sdscbundle.input_arg<index, granularity={}, max_value={}>", bound.granularity,
                              bound.max)
                : "!sdscbundle.input_arg<index>";
}

Result<BundleProgram> build_program(const Kernel& kernel, const BundleOptions& options) {
  return Builder(kernel, options).build();
}

}  // namespace spyre::superdsc
