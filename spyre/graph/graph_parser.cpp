#include "spyre/graph/graph_parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>

namespace spyre {
namespace {

// Of the narrowest elements that are computed with: whatever the type, a capacity ends with a stick.
constexpr int64_t kSticksOfCapacity = 64;

}  // namespace

Status GraphParser::integers(std::vector<int64_t>& out) {
  SPYRE_TRY(lex_.expect("["));
  if (lex_.take("]")) return Status();
  do {
    const bool negative = lex_.take("-");
    SPYRE_ASSIGN_OR_RETURN(const int64_t value, lex_.integer("a number"));
    out.push_back(negative ? -value : value);
  } while (lex_.take(","));
  return lex_.expect("]");
}

Result<HostType> GraphParser::dtype() {
  SPYRE_ASSIGN_OR_RETURN(const std::string name, lex_.word("an element type"));
  const std::optional<HostType> type = host_type_from_name(name);
  if (!type) return lex_.error_here(fmt::format("'{}' is not an element type of the card", name));
  return *type;
}

Result<DeviceLayout> GraphParser::layout() {
  DeviceLayout layout;
  SPYRE_TRY(lex_.expect("("));
  SPYRE_TRY(integers(layout.device_size));
  SPYRE_TRY(lex_.expect(","));
  SPYRE_TRY(integers(layout.stride_map));
  SPYRE_TRY(lex_.expect(","));
  SPYRE_ASSIGN_OR_RETURN(const std::string format, lex_.word("a data format"));
  const std::optional<DataFormat> known = data_format_from_name(format);
  if (!known) return lex_.error_here(fmt::format("'{}' is not a data format", format));
  layout.device_dtype = *known;
  SPYRE_TRY(lex_.expect(","));
  SPYRE_ASSIGN_OR_RETURN(const std::string arrangement, lex_.word("an element arrangement"));
  const std::optional<ElementArrangement> order = element_arrangement_from_name(arrangement);
  if (!order) return lex_.error_here(fmt::format("'{}' is not an element arrangement", arrangement));
  layout.element_arrangement = *order;
  SPYRE_TRY(lex_.expect(")"));
  const Status well_formed = layout.check_well_formed();
  if (!well_formed.ok()) return lex_.error_here(well_formed.error().message);
  return layout;
}

Status GraphParser::extent() {
  Extent extent;
  SPYRE_ASSIGN_OR_RETURN(extent.name, lex_.word("the name of an extent"));
  const bool again =
      std::ranges::any_of(table_.extents, [&](const Extent& e) { return e.name == extent.name; });
  if (again) return lex_.error_here(fmt::format("extent '{}' appears twice", extent.name));
  SPYRE_TRY(lex_.expect("<"));
  SPYRE_TRY(lex_.expect("="));
  SPYRE_ASSIGN_OR_RETURN(extent.most, lex_.integer("the most it may be"));
  extent.capacity = extent.most;
  if (lex_.take("room")) {
    SPYRE_TRY(lex_.expect("="));
    SPYRE_ASSIGN_OR_RETURN(extent.capacity, lex_.integer("a capacity"));
  }
  const bool whole = extent.most % kSticksOfCapacity == 0 && extent.capacity % kSticksOfCapacity == 0;
  if (extent.most < 1 || extent.capacity < extent.most || !whole) {
    return lex_.error_here(fmt::format(
        "extent '{}' is at most {} in memory for {}; allowed are multiples of {}, as many or more for memory",
        extent.name, extent.most, extent.capacity, kSticksOfCapacity));
  }
  if (lex_.take("of")) {
    SPYRE_TRY(lex_.expect("="));
    SPYRE_ASSIGN_OR_RETURN(extent.source, lex_.quoted("what it is computed from"));
  }
  table_.extents.push_back(std::move(extent));
  return Status();
}

Result<ExtentId> GraphParser::extent_name() {
  SPYRE_ASSIGN_OR_RETURN(const std::string name, lex_.word("a number or the name of an extent"));
  for (size_t i = 0; i < table_.extents.size(); ++i) {
    if (table_.extents[i].name == name) return static_cast<ExtentId>(i);
  }
  return lex_.error_here(fmt::format("extent '{}' was not declared", name));
}

Status GraphParser::sizes(Buffer& buffer) {
  SPYRE_TRY(lex_.expect("["));
  if (lex_.take("]")) return Status();
  do {
    if (lex_.sees_integer()) {
      SPYRE_ASSIGN_OR_RETURN(const int64_t size, lex_.integer("a number"));
      if (size < 0) return lex_.error_here(fmt::format("buffer '{}' has a negative size", buffer.name));
      buffer.size.push_back(size);
      continue;
    }
    SPYRE_ASSIGN_OR_RETURN(const ExtentId bound, extent_name());
    buffer.bounds.resize(buffer.size.size(), kFixed);
    buffer.bounds.push_back(bound);
    buffer.size.push_back(table_.extents[static_cast<size_t>(bound)].capacity);
  } while (lex_.take(","));
  if (!buffer.bounds.empty()) buffer.bounds.resize(buffer.size.size(), kFixed);
  return lex_.expect("]");
}

Status GraphParser::declaration(bool is_input) {
  Buffer buffer{.is_input = is_input};
  SPYRE_ASSIGN_OR_RETURN(buffer.name, lex_.word("the name of a buffer"));
  if (ids_.contains(buffer.name))
    return lex_.error_here(fmt::format("buffer '{}' appears twice", buffer.name));
  SPYRE_TRY(lex_.expect(":"));
  const Result<HostType> type = dtype();
  // Nodes are called like what they fill.
  if (!type.ok()) return is_input ? type.error() : Error(type.error()).about({.name = buffer.name});
  buffer.dtype = type.value();
  SPYRE_TRY(sizes(buffer));
  buffer.stride = contiguous_strides(buffer.size);
  while (true) {
    if (lex_.take("stride")) {
      SPYRE_TRY(lex_.expect("="));
      buffer.stride.clear();
      SPYRE_TRY(integers(buffer.stride));
      if (buffer.stride.size() != buffer.size.size()) {
        return lex_.error_here(fmt::format("buffer '{}' has {} sizes and {} strides", buffer.name,
                                           buffer.size.size(), buffer.stride.size()));
      }
    } else if (lex_.take("offset")) {
      SPYRE_TRY(lex_.expect("="));
      SPYRE_ASSIGN_OR_RETURN(buffer.offset, lex_.integer("an offset in elements"));
    } else if (lex_.take("storage")) {
      SPYRE_TRY(lex_.expect("="));
      SPYRE_ASSIGN_OR_RETURN(buffer.storage, lex_.integer("a number of elements"));
    } else if (lex_.take("memory_of")) {
      SPYRE_TRY(lex_.expect("="));
      SPYRE_ASSIGN_OR_RETURN(const std::string owner, lex_.word("the name of a buffer"));
      const auto known = ids_.find(owner);
      if (known == ids_.end())
        return lex_.error_here(
            fmt::format("'{}' names the memory of '{}', which is no buffer before it", buffer.name, owner));
      buffer.memory_of = known->second;
    } else if (lex_.take("value_of")) {
      SPYRE_TRY(lex_.expect("="));
      SPYRE_ASSIGN_OR_RETURN(buffer.value_of, extent_name());
    } else if (lex_.take("layout")) {
      SPYRE_TRY(lex_.expect("="));
      SPYRE_ASSIGN_OR_RETURN(buffer.layout, layout());
    } else if (lex_.take("fill")) {
      SPYRE_TRY(lex_.expect("="));
      SPYRE_TRY(lex_.expect("("));
      Fill fill;
      SPYRE_ASSIGN_OR_RETURN(fill.start, lex_.number(kNumber));
      SPYRE_TRY(lex_.expect(","));
      SPYRE_ASSIGN_OR_RETURN(fill.step, lex_.number(kNumber));
      SPYRE_TRY(lex_.expect(")"));
      buffer.fill = fill;
    } else if (lex_.sees("pool") || lex_.sees("lx")) {
      BufferPlace place{.kind = lex_.take("pool") ? BufferPlace::Kind::kPool : BufferPlace::Kind::kLx};
      if (place.kind == BufferPlace::Kind::kLx) SPYRE_TRY(lex_.expect("lx"));
      SPYRE_TRY(lex_.expect("="));
      SPYRE_ASSIGN_OR_RETURN(place.offset, lex_.integer("an offset in bytes"));
      buffer.place = place;
    } else {
      break;
    }
  }
  ids_[buffer.name] = static_cast<BufferId>(table_.buffers.size());
  table_.buffers.push_back(std::move(buffer));
  return Status();
}

Result<BufferId> GraphParser::buffer_name() {
  SPYRE_ASSIGN_OR_RETURN(const std::string name, lex_.word("the name of a buffer"));
  const auto id = ids_.find(name);
  if (id == ids_.end()) return lex_.error_here(fmt::format("buffer '{}' was not declared", name));
  return id->second;
}

Result<Expr> GraphParser::bracketed() {
  SPYRE_TRY(lex_.expect("["));
  SPYRE_ASSIGN_OR_RETURN(Expr index, lex_.expression());
  SPYRE_TRY(lex_.expect("]"));
  return index;
}

Result<int> GraphParser::value(int count, std::string_view node) {
  SPYRE_ASSIGN_OR_RETURN(const std::string name, lex_.word("a value such as v0"));
  int value = -1;
  const char* const end = name.data() + name.size();
  const bool numbered = name[0] == 'v' && std::from_chars(name.data() + 1, end, value).ptr == end;
  if (numbered && value >= 0 && value < count) return value;
  return lex_.error_here(fmt::format("'{}' is not an earlier value of node '{}'", name, node));
}

Status GraphParser::next_value(const std::string& found, int count) {
  if (found != fmt::format("v{}", count)) {
    return lex_.error_here(fmt::format("found '{}', the next value is v{}", found, count));
  }
  return lex_.expect("=");
}

Status GraphParser::attributes(std::vector<std::pair<std::string, double>>& out) {
  if (!lex_.take("{")) return Status();
  if (lex_.take("}")) return Status();
  do {
    SPYRE_ASSIGN_OR_RETURN(std::string key, lex_.word("the name of an attribute"));
    SPYRE_TRY(lex_.expect(":"));
    SPYRE_ASSIGN_OR_RETURN(const double value, lex_.number(kNumber));
    out.emplace_back(std::move(key), value);
  } while (lex_.take(","));
  return lex_.expect("}");
}

Status GraphParser::loops(NodeHead& node) {
  SPYRE_TRY(lex_.expect("("));
  std::set<std::string> names;
  bool reduced = lex_.take(";");
  if (!reduced && lex_.take(")")) return Status();
  while (true) {
    Loop loop{.reduced = reduced};
    SPYRE_ASSIGN_OR_RETURN(loop.name, lex_.word("the name of a loop"));
    if (!names.insert(loop.name).second)
      return lex_.error_here(fmt::format("loop '{}' appears twice", loop.name));
    SPYRE_TRY(lex_.expect(":"));
    if (lex_.sees_integer()) {
      SPYRE_ASSIGN_OR_RETURN(loop.extent, lex_.integer("an extent"));
    } else {
      SPYRE_ASSIGN_OR_RETURN(loop.bound, extent_name());
      loop.extent = table_.extents[static_cast<size_t>(loop.bound)].capacity;
    }
    if (lex_.take("/")) {
      SPYRE_ASSIGN_OR_RETURN(loop.split, lex_.integer("a split"));
    }
    if (lex_.take("@")) {
      SPYRE_ASSIGN_OR_RETURN(loop.step, lex_.integer("a number of cores"));
    }
    if (lex_.take("=")) {
      SPYRE_ASSIGN_OR_RETURN(loop.to_split, lex_.integer("a split"));
      SPYRE_TRY(lex_.expect("@"));
      SPYRE_ASSIGN_OR_RETURN(loop.to_step, lex_.integer("a number of cores"));
    }
    if (loop.extent < 0 || loop.split < 1 || loop.step < 0 || loop.to_split < 1 || loop.to_step < 0)
      return lex_.error_here(fmt::format(
          "loop '{}' has extent {}, splits {} and {}, steps {} and {}; allowed are splits from 1, the "
          "others from 0",
          loop.name, loop.extent, loop.split, loop.to_split, loop.step, loop.to_step));
    node.loops.push_back(std::move(loop));
    if (lex_.take(")")) return Status();
    if (!reduced && lex_.take(";")) {
      reduced = true;
    } else {
      SPYRE_TRY(lex_.expect(","));
    }
  }
}

Status GraphParser::origin(NodeHead& node, std::string_view key) {
  if (key == "aten") {
    SPYRE_ASSIGN_OR_RETURN(node.aten, lex_.quoted("an operator"));
  } else if (key == "at") {
    SPYRE_ASSIGN_OR_RETURN(node.source, lex_.quoted("a place in the source"));
  } else if (key == "of") {
    SPYRE_ASSIGN_OR_RETURN(node.origin, lex_.word("the node that it is a step of"));
  } else if (key == "hint") {
    SPYRE_TRY(lex_.expect("{"));
    while (!lex_.take("}")) {
      SPYRE_ASSIGN_OR_RETURN(std::string loop, lex_.word("the name of a loop"));
      SPYRE_TRY(lex_.expect(":"));
      SPYRE_ASSIGN_OR_RETURN(const int64_t split, lex_.integer("a split"));
      node.hints.emplace_back(std::move(loop), split);
      if (!lex_.sees("}")) SPYRE_TRY(lex_.expect(","));
    }
  } else {
    return lex_.error_here(
        fmt::format("a node has no attribute '{}', allowed are aten, at, of, hint, bundle", key));
  }
  return Status();
}

Status GraphParser::head(NodeHead& node) {
  SPYRE_ASSIGN_OR_RETURN(node.name, lex_.word("the name of a node"));
  SPYRE_TRY(loops(node));
  while (!lex_.take("{")) {
    SPYRE_ASSIGN_OR_RETURN(const std::string key, lex_.word("aten, at, of, hint, bundle or '{'"));
    SPYRE_TRY(lex_.expect("="));
    if (key == "bundle") {
      SPYRE_ASSIGN_OR_RETURN(node.bundle, lex_.integer("the number of a bundle"));
    } else {
      SPYRE_TRY(origin(node, key));
    }
  }
  return Status();
}

Status GraphParser::results() {
  if (lex_.sees("}")) return Status();
  do {
    SPYRE_ASSIGN_OR_RETURN(const BufferId id, buffer_name());
    table_.results.push_back(id);
  } while (lex_.take(","));
  return Status();
}

Status GraphParser::graph() {
  SPYRE_TRY(lex_.expect("graph"));
  SPYRE_ASSIGN_OR_RETURN(table_.name, lex_.word("the name of the graph"));
  SPYRE_TRY(lex_.expect("{"));
  while (!lex_.take("}")) {
    if (lex_.take("extent")) {
      SPYRE_TRY(extent());
    } else if (lex_.take("input")) {
      SPYRE_TRY(declaration(true));
    } else if (lex_.take("buffer")) {
      SPYRE_TRY(declaration(false));
    } else if (lex_.take("node")) {
      SPYRE_TRY(node());
    } else if (lex_.take("call")) {
      SPYRE_TRY(call());
    } else if (lex_.take("return")) {
      SPYRE_TRY(results());
    } else {
      return lex_.unexpected("extent, input, buffer, node, call, return or '}'");
    }
  }
  if (!lex_.at_end()) return lex_.unexpected("the end of the text");
  return Status();
}

}  // namespace spyre
