#include <fmt/format.h>
#include <fmt/ranges.h>

#include "spyre/base/text.h"
#include "spyre/opspec/text.h"

namespace spyre {
namespace {

template <typename Range, typename Print>
std::string joined(const Range& range, Print&& print) {
  std::vector<std::string> parts;
  for (const auto& item : range) parts.push_back(print(item));
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string in_quotes(std::string_view text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') out += '\\';
    out += c;
  }
  return out + "'";
}

std::string quoted_list(const std::vector<std::string>& items) {
  return "[" + joined(items, in_quotes) + "]";
}

std::string bound_text(const SymbolBound& bound) {
  return fmt::format("({}, {})", bound.max, bound.granularity);
}

std::string place_text(const Allocation& allocation) {
  return fmt::format("{}={}", to_string(allocation.place), allocation.value);
}

std::string size_text(const SizeOrSymbol& size) {
  return std::holds_alternative<int64_t>(size) ? fmt::format("{}", std::get<int64_t>(size))
                                               : std::get<std::string>(size);
}

std::string division_text(const WorkDivision& d) {
  return fmt::format("{}: ({}, {})", d.symbol, d.split, d.owner.to_string());
}

std::string tensor_text(const TensorArg& arg) {
  std::string text = fmt::format("{} {} {{", arg.is_input ? "in" : "out", arg.name);
  if (arg.format != DataFormat::SEN169_FP16) text += fmt::format(" format={}", to_string(arg.format));
  if (arg.arrangement != ElementArrangement::STANDARD) {
    text += fmt::format(" arrangement={}", to_string(arg.arrangement));
  }
  text += fmt::format(" device_size={}", list_text(arg.device_size));
  text += fmt::format(" coords=[{}]",
                      joined(arg.device_coordinates, [](const Expr& e) { return e.to_string(); }));
  text += " " + place_text(arg.allocation);
  if (arg.tile_advance) text += fmt::format(" tile_advance={}", arg.tile_advance->to_string());
  if (!arg.work_division.empty()) {
    text += fmt::format(" work_division={{{}}}", joined(arg.work_division, division_text));
  }
  if (arg.kernel_local) text += " kernel_local=True";
  return text + " }";
}

std::string extent_text(const IterationDim& dim) {
  const std::string extent = dim.dynamic.empty() ? fmt::format("{}", dim.extent) : dim.dynamic;
  return fmt::format("{}: ({}, {})", dim.symbol, extent, dim.split);
}

std::string window_text(const WindowParams& w) {
  return fmt::format(
      "{{stride_i: {}, stride_j: {}, kernel_h: {}, kernel_w: {}, pad_i: {}, pad_j: {}, dilation_i: {}, "
      "dilation_j: {}}}",
      w.stride_i, w.stride_j, w.kernel_h, w.kernel_w, w.pad_i, w.pad_j, w.dilation_i, w.dilation_j);
}

std::string handle_text(const DebugHandle& h) {
  return fmt::format(
      "{{id: {}, source: ({}, {}, {}, {}, {}), aten_op: {}, ir_chain: {}, fused_from: {}, "
      "transform_history: {}}}",
      h.id, in_quotes(h.file), h.start_line, h.start_col, h.end_line, h.end_col, in_quotes(h.aten_op),
      quoted_list(h.ir_chain), quoted_list(h.fused_from), quoted_list(h.transform_history));
}

// The attributes of an op that are not tensors, in printing order; those that hold their default are left
// out.
std::vector<std::string> op_attributes(const OpSpec& op) {
  std::vector<std::string> lines;
  const auto map = [&](std::string_view key, const std::string& body) {
    lines.push_back(fmt::format("{}={{{}}}", key, body));
  };
  if (op.is_reduction) lines.emplace_back("is_reduction=True");
  map("iteration_space", joined(op.iteration_space, extent_text));
  map("core_id_to_work_slice", joined(op.core_id_to_work_slice, [](const auto& entry) {
        return fmt::format("{}: {}", entry.first, entry.second.to_string());
      }));
  if (!op.constants.empty()) {
    map("constants",
        joined(op.constants, [](const auto& c) { return fmt::format("{}: {}", c.first, c.second); }));
  }
  if (op.window) lines.push_back("conv_params=" + window_text(*op.window));
  if (!op.tiled_symbols.empty()) {
    lines.push_back(fmt::format("tiled_symbols=[{}]", joined(op.tiled_symbols, [](const auto& level) {
                                  return fmt::format("[{}]", fmt::join(level, ", "));
                                })));
  }
  if (!op.tiled_symbol_trip_counts.empty()) {
    map("tiled_symbol_trip_counts", joined(op.tiled_symbol_trip_counts, [](const auto& c) {
          return fmt::format("{}: {}", c.first, c.second);
        }));
  }
  if (!op.symbolic_dim_bounds.empty()) {
    map("symbolic_dim_bounds", joined(op.symbolic_dim_bounds, [](const auto& b) {
          return fmt::format("{}: {}", b.first, bound_text(b.second));
        }));
  }
  if (!op.node_output_ranges.empty())
    lines.push_back("node_output_ranges=" + list_text(op.node_output_ranges));
  if (!op.completed_producer_cores.empty()) {
    lines.push_back("completed_producer_cores=" + list_text(op.completed_producer_cores));
  }
  if (op.receiving_cores != 0) lines.push_back(fmt::format("receiving_cores={}", op.receiving_cores));
  if (op.debug_handle) lines.push_back("debug_handle=" + handle_text(*op.debug_handle));
  return lines;
}

void print_op(const OpSpec& op, const std::string& indent, std::string& out) {
  out += fmt::format("{}op {} {{\n", indent, to_string(op.op));
  for (const std::string& line : op_attributes(op)) out += fmt::format("{}  {}\n", indent, line);
  for (const TensorArg& arg : op.args) out += fmt::format("{}  {}\n", indent, tensor_text(arg));
  out += indent + "}\n";
}

void print_items(const std::vector<KernelItem>& items, const std::string& indent, std::string& out);

void print_loop(const LoopSpec& loop, const std::string& indent, std::string& out) {
  if (loop.count_symbol.empty()) {
    out += fmt::format("{}loop {} {{\n", indent, loop.count);
  } else {
    out += fmt::format("{}loop {} max={} granularity={} {{\n", indent, loop.count_symbol, loop.bound.max,
                       loop.bound.granularity);
  }
  print_items(loop.body, indent + "  ", out);
  out += indent + "}\n";
}

void print_items(const std::vector<KernelItem>& items, const std::string& indent, std::string& out) {
  for (const KernelItem& item : items) {
    if (const auto* op = std::get_if<OpSpec>(&item)) {
      print_op(*op, indent, out);
    } else {
      print_loop(std::get<LoopSpec>(item), indent, out);
    }
  }
}

std::string argument_text(const LaunchArgument& arg) {
  std::string text = fmt::format("argument {} {{ role={} dtype={} shape=[{}] device_size={} stride_map={}",
                                 arg.index, to_string(arg.role), arg.dtype, joined(arg.shape, size_text),
                                 list_text(arg.device_size), list_text(arg.stride_map));
  if (!arg.stride.empty()) text += fmt::format(" stride={}", list_text(arg.stride));
  if (arg.offset != 0) text += fmt::format(" offset={}", arg.offset);
  if (arg.storage != 0) text += fmt::format(" storage={}", arg.storage);
  if (arg.fill) text += fmt::format(" fill=({}, {})", arg.fill->start, arg.fill->step);
  if (arg.format != DataFormat::SEN169_FP16) text += fmt::format(" format={}", to_string(arg.format));
  if (arg.arrangement != ElementArrangement::STANDARD) {
    text += fmt::format(" arrangement={}", to_string(arg.arrangement));
  }
  return text + " }";
}

}  // namespace

std::string to_text(const Kernel& kernel) {
  std::string out = fmt::format("kernel {} {{\n", kernel.name);
  if (kernel.pool_bytes != 0) out += fmt::format("  pool_bytes={}\n", kernel.pool_bytes);
  for (const LaunchArgument& arg : kernel.arguments) out += fmt::format("  {}\n", argument_text(arg));
  print_items(kernel.body, "  ", out);
  return out + "}\n";
}

std::string to_text(const OpSpec& op) {
  std::string out;
  print_op(op, "", out);
  return out;
}

}  // namespace spyre
