// bundle.mlir: constants and addresses first, then loops and executions.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "spyre/codegen/superdsc/bundle_program.h"

namespace spyre::superdsc {
namespace {

class Printer {
 public:
  explicit Printer(const BundleProgram& program) : program_(program) {}

  std::string print() {
    steps(program_.steps, "    ", {});
    std::string out;
    for (size_t i = 0; i < maps_.size(); ++i) out += fmt::format("#map_{} = {}\n", i, maps_[i]);
    out += "module {\n";
    out += fmt::format("  func.func @sdsc_bundle({}) {{\n", signature());
    out += extraction();
    if (loop_count_ > 0) out += "    %c0 = arith.constant 0 : index\n    %c1 = arith.constant 1 : index\n";
    return out + entry_ + body_ + "    return\n  }\n}\n";
  }

 private:
  std::string signature() const {
    std::vector<std::string> parameters;
    for (const Parameter& p : program_.parameters) {
      parameters.push_back(fmt::format("{}: {}", base_name(p), p.type()));
    }
    return fmt::format("{}", fmt::join(parameters, ", "));
  }

  static std::string base_name(const Parameter& p) {
    const bool address = p.kind == Parameter::Kind::kPool || p.kind == Parameter::Kind::kKernel;
    return p.value_name() + (address ? "_base_addr" : "_base");
  }

  std::string extraction() const {
    std::string out;
    if (program_.pool_bytes > 0 && !program_.pool_is_parameter) {
      out +=
          fmt::format("    %pool = sdscbundle.device_mem_allocate {} bytes : index\n", program_.pool_bytes);
    }
    for (const Parameter& p : program_.parameters) {
      out += fmt::format("    {} = sdscbundle.input_arg_extract value from {} : {} -> index\n",
                         p.value_name(), base_name(p), p.type());
    }
    return out;
  }

  // Defines a value in the entry block, once.
  void define(const std::string& name, const std::string& definition) {
    if (defined_.insert(name).second) entry_ += fmt::format("    {} = {}\n", name, definition);
  }

  std::string shifted(const std::string& base, const std::string& name, const std::string& offset_name,
                      int64_t offset) {
    define(offset_name, fmt::format("arith.constant {} : index", offset));
    define(name, fmt::format("arith.addi {}, {} : index", base, offset_name));
    return name;
  }

  // The SSA name of a symbol's value outside of loops, before runtime extents are added.
  std::string value(const Symbol& s) {
    if (s.kind == SymbolKind::kDimension) return extent(s.dimension);
    if (s.kind == SymbolKind::kPool) {
      return shifted("%pool", fmt::format("%pool_addr_{}", s.offset),
                     fmt::format("%pool_offset_{}", s.offset), s.offset);
    }
    const std::string arg = fmt::format("%arg_{}", s.arg_index);
    if (s.offset == 0) return arg;
    const std::string_view use = s.kind == SymbolKind::kKernelSlice ? "slice" : "core";
    return shifted(arg, fmt::format("{}_{}_{}", arg, use, s.offset),
                   fmt::format("{}_{}_offset_{}", arg, use, s.offset), s.offset);
  }

  std::string extent(const std::string& name) const {
    for (const Parameter& p : program_.parameters) {
      if (p.kind == Parameter::Kind::kDimension && p.symbol == name) return p.value_name();
    }
    SPYRE_CHECK(false, "every runtime extent is a parameter");
    return "";
  }

  std::string operand(const Operand& o, const std::string& indent,
                      const std::vector<std::string>& variables) {
    // One term per enclosing loop that moves the operand, one per runtime extent.
    const std::string base = value(o.symbol);
    std::vector<std::string> inputs = variables;
    std::vector<int64_t> factors = o.byte_stride;
    for (const auto& [name, bytes] : o.symbol.per_extent) {
      inputs.push_back(extent(name));
      factors.push_back(bytes);
    }
    if (std::all_of(factors.begin(), factors.end(), [](int64_t f) { return f == 0; })) return base;
    std::vector<std::string> dims;
    std::string sum = "s0";
    for (size_t i = 0; i < factors.size(); ++i) {
      dims.push_back(fmt::format("d{}", i));
      if (factors[i] != 0) sum += fmt::format(" + {}*d{}", factors[i], i);
    }
    const std::string map = fmt::format("affine_map<({})[s0] -> ({})>", fmt::join(dims, ", "), sum);
    auto at = std::find(maps_.begin(), maps_.end(), map);
    if (at == maps_.end()) at = maps_.insert(maps_.end(), map);
    const std::string name = fmt::format("%addr_{}", address_count_++);
    body_ += fmt::format("{}{} = affine.apply #map_{}({})[{}]\n", indent, name, at - maps_.begin(),
                         fmt::join(inputs, ", "), base);
    return name;
  }

  void execution(const Execution& e, const std::string& indent, const std::vector<std::string>& variables) {
    std::vector<std::string> operands;
    for (const Operand& o : e.operands) operands.push_back(operand(o, indent, variables));
    body_ += fmt::format(
        "{}sdscbundle.sdsc_execute ({}) {{sdsc_filename=\"sdsc_{}.json\", \"symbol_ids\"=[{}]}}\n", indent,
        fmt::join(operands, ", "), e.file, fmt::join(e.ids, ", "));
  }

  void loop(const BundleLoop& l, const std::string& indent, std::vector<std::string> variables) {
    const int64_t number = loop_count_++;
    const std::string variable = fmt::format("%i_{}", number);
    std::string bound = fmt::format("%loop_bound_{}", number);
    std::string step = "%c1";
    if (l.count_symbol.empty()) {
      define(bound, fmt::format("arith.constant {} : index", l.count));
    } else {
      // The variable counts elements of the runtime extent, one granule a trip.
      bound = fmt::format("%dim_{}", l.count_symbol);
      step = fmt::format("%step_{}", number);
      define(step, fmt::format("arith.constant {} : index", l.bound.granularity));
    }
    body_ += fmt::format("{}scf.for {} = %c0 to {} step {} {{\n", indent, variable, bound, step);
    variables.push_back(variable);
    steps(l.steps, indent + "  ", variables);
    body_ += indent + "}\n";
  }

  void steps(const std::vector<Step>& list, const std::string& indent,
             const std::vector<std::string>& variables) {
    for (const Step& step : list) {
      if (const auto* e = std::get_if<Execution>(&step)) {
        execution(*e, indent, variables);
      } else {
        loop(std::get<BundleLoop>(step), indent, variables);
      }
    }
  }

  const BundleProgram& program_;
  std::vector<std::string> maps_;
  std::set<std::string> defined_;
  std::string entry_;
  std::string body_;
  int64_t loop_count_ = 0;
  int64_t address_count_ = 0;
};

}  // namespace

std::string bundle_mlir(const BundleProgram& program) {
  return Printer(program).print();
}

}  // namespace spyre::superdsc
