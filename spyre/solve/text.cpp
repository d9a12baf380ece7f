#include "spyre/solve/text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <sstream>
#include <unordered_map>

#include "spyre/base/text.h"

namespace spyre::solve {
namespace {

/// Words of one line, with the place to name in a message.
class Line {
 public:
  Line(std::string_view text, std::string where) : rest_(text), where_(std::move(where)) {}

  /// The next word; empty at the end of the line.
  std::string_view word() {
    skip_blanks();
    const size_t end = std::min(rest_.find_first_of(" \t\r"), rest_.size());
    const std::string_view out = rest_.substr(0, end);
    rest_.remove_prefix(end);
    return out;
  }
  std::string_view rest() {
    skip_blanks();
    const size_t last = rest_.find_last_not_of(" \t\r");
    return last == std::string_view::npos ? std::string_view() : rest_.substr(0, last + 1);
  }
  Result<int64_t> number(std::string_view what) { return parse(word(), what); }

  Result<int64_t> parse(std::string_view text, std::string_view what) const {
    int64_t value = 0;
    const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (failure != std::errc() || end != text.data() + text.size() || text.empty()) {
      return error(fmt::format("found '{}', expected {}", text, what));
    }
    return value;
  }
  Error error(std::string_view message) const {
    return Error(ErrorKind::kParse, fmt::format("{}: {}", where_, message));
  }

 private:
  void skip_blanks() { rest_.remove_prefix(std::min(rest_.find_first_not_of(" \t\r"), rest_.size())); }

  std::string_view rest_;
  std::string where_;
};

/// A buffer whose parents are still names.
struct NamedParents {
  BufferIndex child;
  std::vector<std::string> names;
  Line line;
};

Result<Lifetime> parse_lifetime(Line& line) {
  const std::string_view text = line.word();
  const size_t dots = text.find("..");
  if (dots == std::string_view::npos) {
    return line.error(fmt::format("found '{}', expected a lifetime such as 0..3", text));
  }
  SPYRE_ASSIGN_OR_RETURN(const int64_t begin,
                         line.parse(text.substr(0, dots), "the first step of a lifetime"));
  SPYRE_ASSIGN_OR_RETURN(const int64_t end, line.parse(text.substr(dots + 2), "the end of a lifetime"));
  return Lifetime{Step(begin), Step(end)};
}

Status parse_field(std::string_view field, Line& line, Buffer& b, std::optional<Bytes>& saves,
                   std::vector<std::string>& parents) {
  if (field == "live") {
    SPYRE_ASSIGN_OR_RETURN(b.live, parse_lifetime(line));
  } else if (field == "input") {
    b.input = true;
  } else if (field == "in_place") {
    parents = split_trimmed(line.word(), ',');
  } else if (field == "ineligible") {
    b.ineligible = line.rest();
    if (b.ineligible.empty()) return line.error("'ineligible' needs a reason after it");
  } else if (field == "tensor" || field == "group") {
    SPYRE_ASSIGN_OR_RETURN(const int64_t number, line.number("a number"));
    (field == "tensor" ? b.tensor : b.group) = static_cast<int>(number);
  } else if (field == "uses") {
    SPYRE_ASSIGN_OR_RETURN(b.uses, line.number("a count of uses"));
  } else if (field == "size" || field == "align" || field == "saves" || field == "at") {
    SPYRE_ASSIGN_OR_RETURN(const int64_t bytes, line.number("a number of bytes"));
    if (field == "size") b.size = Bytes(bytes);
    if (field == "align") b.align = Bytes(bytes);
    if (field == "saves") saves = Bytes(bytes);
    if (field == "at") b.fixed = Bytes(bytes);
  } else {
    return line.error(
        fmt::format("found '{}', expected live, size, align, uses, saves, input, in_place, at, tensor, group "
                    "or ineligible",
                    field));
  }
  return Status();
}

Result<Buffer> parse_buffer(Line& line, std::vector<std::string>& parents) {
  Buffer b{.name = std::string(line.word())};
  std::optional<Bytes> saves;
  while (b.ineligible.empty()) {
    const std::string_view field = line.word();
    if (field.empty()) break;
    SPYRE_TRY(parse_field(field, line, b, saves, parents));
  }
  b.saves = saves.value_or(b.size * b.uses);
  return b;
}

Status resolve_parents(Problem& problem, const std::vector<NamedParents>& pending) {
  std::unordered_map<std::string_view, BufferIndex> ids;
  for (BufferIndex i = 0; i < std::ssize(problem.buffers); ++i) ids.emplace(problem.buffers[i].name, i);
  for (const NamedParents& entry : pending) {
    for (const std::string& name : entry.names) {
      const auto found = ids.find(name);
      if (found == ids.end())
        return entry.line.error(fmt::format("in_place parent '{}' is no buffer here", name));
      problem.buffers[entry.child].in_place_parents.push_back(found->second);
    }
  }
  return Status();
}

template <typename PerLine>
Status each_line(std::string_view text, std::string_view origin, PerLine per_line) {
  int number = 0;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view content = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    const size_t first = content.find_first_not_of(" \t\r");
    if (first == std::string_view::npos || content[first] == '#') continue;
    SPYRE_TRY(per_line(content, Line(content, fmt::format("{}:{}", origin, number))));
  }
  return Status();
}

std::string print_buffer(const Problem& problem, const Buffer& b) {
  std::string out = fmt::format("buffer {}  live {}..{}  size {}", b.name, b.live.begin.count(),
                                b.live.end.count(), b.size.count());
  if (b.align != kPlacementAlign) out += fmt::format("  align {}", b.align.count());
  if (b.uses != 1) out += fmt::format("  uses {}", b.uses);
  if (b.saves != b.size * b.uses) out += fmt::format("  saves {}", b.saves.count());
  if (b.input) out += "  input";
  if (!b.in_place_parents.empty()) {
    std::vector<std::string_view> names;
    for (const BufferIndex id : b.in_place_parents) names.push_back(problem.buffers[id].name);
    out += fmt::format("  in_place {}", fmt::join(names, ","));
  }
  if (b.fixed.has_value()) out += fmt::format("  at {}", b.fixed->count());
  if (b.tensor >= 0) out += fmt::format("  tensor {}", b.tensor);
  if (b.group >= 0) out += fmt::format("  group {}", b.group);
  if (!b.ineligible.empty()) out += "  ineligible " + b.ineligible;
  return out + "\n";
}

}  // namespace

Result<Problem> parse_problem(std::string_view text, std::string_view origin) {
  Problem problem;
  std::vector<NamedParents> pending;
  SPYRE_TRY(each_line(text, origin, [&](std::string_view, Line line) -> Status {
    const std::string_view head = line.word();
    if (head == "capacity") {
      SPYRE_ASSIGN_OR_RETURN(const int64_t bytes, line.number("the capacity in bytes"));
      problem.capacity = Bytes(bytes);
    } else if (head == "buffer") {
      std::vector<std::string> parents;
      SPYRE_ASSIGN_OR_RETURN(Buffer buffer, parse_buffer(line, parents));
      problem.buffers.push_back(std::move(buffer));
      const BufferIndex id = std::ssize(problem.buffers) - 1;
      if (!parents.empty()) pending.push_back({id, std::move(parents), line});
    } else {
      return line.error(fmt::format("found '{}', expected 'capacity' or 'buffer'", head));
    }
    return Status();
  }));
  SPYRE_TRY(resolve_parents(problem, pending));
  SPYRE_TRY(check_problem(problem));
  return problem;
}

std::string print_problem(const Problem& problem) {
  std::string out = fmt::format("capacity {}\n", problem.capacity.count());
  for (const Buffer& b : problem.buffers) out += print_buffer(problem, b);
  return out;
}

Result<Problem> parse_allocation_csv(std::string_view text, std::string_view origin, Bytes capacity,
                                     Bytes align) {
  Problem problem{.capacity = capacity};
  bool header = true;
  SPYRE_TRY(each_line(text, origin, [&](std::string_view content, Line line) -> Status {
    const std::vector<std::string> cells = split_trimmed(content, ',');
    if (std::exchange(header, false)) {
      if (cells == std::vector<std::string>{"id", "lower", "upper", "size"}) return Status();
      return line.error(fmt::format("found '{}', expected the header id,lower,upper,size", content));
    }
    if (cells.size() != 4) return line.error(fmt::format("found {} cells, expected 4", cells.size()));
    SPYRE_ASSIGN_OR_RETURN(const int64_t lower, line.parse(cells[1], "the first step"));
    SPYRE_ASSIGN_OR_RETURN(const int64_t upper, line.parse(cells[2], "the end step"));
    SPYRE_ASSIGN_OR_RETURN(const int64_t size, line.parse(cells[3], "a size in bytes"));
    problem.buffers.push_back({.name = cells[0],
                               .live = {Step(lower), Step(upper)},
                               .size = Bytes(size),
                               .align = align,
                               .saves = Bytes(size)});
    return Status();
  }));
  SPYRE_TRY(check_problem(problem));
  return problem;
}

std::string print_placement(const Problem& problem, const Placement& placement) {
  std::string out;
  for (BufferIndex i = 0; i < std::ssize(problem.buffers); ++i) {
    const std::string& name = problem.buffers[i].name;
    out += placement.offset[i].has_value() ? fmt::format("{} at {}\n", name, placement.offset[i]->count())
                                           : fmt::format("{} off chip: {}\n", name, spill_reason(problem, i));
  }
  return out;
}

}  // namespace spyre::solve
