#include "spyre/forms/expand.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "spyre/forms/forms.h"

namespace spyre::forms {
namespace {

constexpr auto kForms = [] {
  std::array rows = {
#define SPYRE_FORM(name, form, op, arguments) FormRow{name, &form, op, arguments},
#include "spyre/forms/table.def"
  };
  std::ranges::sort(rows, {}, &FormRow::name);
  return rows;
}();
static_assert(std::ranges::adjacent_find(kForms, {}, &FormRow::name) == kForms.end(),
              "an operator has one form");

/// A tensor that nodes may read and write: the elements it names are inside its buffer.
Status check_view(const Graph& graph, const TensorView& view) {
  if (view.buffer < 0 || static_cast<size_t>(view.buffer) >= graph.buffers.size()) {
    // Without elements there is nothing to point at.
    return std::ranges::find(view.size, 0) != view.size.end() ? Status()
                                                              : refuse("a tensor without a buffer");
  }
  const Buffer& buffer = graph.buffers[static_cast<size_t>(view.buffer)];
  if (view.size.size() != view.stride.size() || view.dtype != buffer.dtype) {
    return refuse(fmt::format("it reads '{}' as what it is not", buffer.name));
  }
  int64_t elements = 1;
  for (const int64_t extent : view.size) {
    if (extent < 0 || (elements > 0 && extent > kMostElements / elements)) {
      return refuse(fmt::format("a view of '{}' with {} elements along one dimension", buffer.name, extent));
    }
    elements *= extent;
  }
  return Status();
}

Status check_views(const Graph& graph, const Argument& argument) {
  if (const auto* view = std::get_if<TensorView>(&argument)) {
    return check_view(graph, *view);
  }
  if (const auto* list = std::get_if<TensorList>(&argument)) {
    for (const std::optional<TensorView>& view : *list) {
      SPYRE_TRY(view ? check_view(graph, *view) : Status());
    }
  }
  return Status();
}

bool is_kind(char letter, const Argument& argument) {
  const bool is_tensor = std::holds_alternative<TensorView>(argument);
  switch (letter) {
    case 't':
      return is_tensor;
    case 'o':
      return is_tensor || is_number(argument);
    case 'n':
      return is_number(argument);
    case 'i':
      return is_number(argument) || std::holds_alternative<std::vector<int64_t>>(argument);
    case 's':
      return std::holds_alternative<std::string>(argument);
    case 'l':
      return std::holds_alternative<TensorList>(argument);
    default:
      return false;
  }
}

std::string_view kind_name(char letter) {
  switch (letter) {
    case 't':
      return "a tensor";
    case 'o':
      return "a tensor or a number";
    case 'n':
      return "a number";
    case 'i':
      return "integers";
    case 's':
      return "text";
    default:
      return "a list of tensors";
  }
}

/// Whether the arguments are of the kinds that the table lists, and the results as many.
Status check_kinds(const FormRow& row, const Call& call) {
  const size_t arrow = std::min(row.arguments.find('>'), row.arguments.size());
  const size_t results =
      arrow < row.arguments.size() ? static_cast<size_t>(row.arguments[arrow + 1] - '0') : 1;
  if (call.results.size() != results) {
    return refuse(fmt::format("{} has {} results, found {}", row.name, results, call.results.size()));
  }
  const Arguments arguments(call.arguments);
  size_t number = 0;
  for (size_t at = 0; at < arrow; ++at, ++number) {
    const char letter = row.arguments[at];
    const bool optional = at + 1 < arrow && row.arguments[at + 1] == '?';
    at += optional ? 1 : 0;
    const Argument& argument = arguments[number];
    if (!is_kind(letter, argument) && !(optional && is_none(argument))) {
      return refuse(fmt::format("argument {} of {} is not {}", number, row.name, kind_name(letter)));
    }
  }
  return Status();
}

Status expand_checked(Graph& graph, const FormRow& row, const Call& call, const Origin& origin,
                      const Options& options) {
  SPYRE_TRY(check_kinds(row, call));
  for (const Argument& argument : call.arguments) {
    SPYRE_TRY(check_views(graph, argument));
  }
  for (const TensorView& result : call.results) {
    SPYRE_TRY(check_view(graph, result));
  }
  Builder builder(graph, call.results, origin, options);
  SPYRE_TRY(row.form(builder, Arguments(call.arguments), row.op));
  return builder.status();
}

}  // namespace

size_t argument_count(const FormRow& row) {
  const std::string_view letters = row.arguments.substr(0, row.arguments.find('>'));
  return letters.size() - static_cast<size_t>(std::ranges::count(letters, '?'));
}

const FormRow* find_form(std::string_view op) {
  const auto* const row = std::ranges::lower_bound(kForms, op, {}, &FormRow::name);
  return row != kForms.end() && row->name == op ? &*row : nullptr;
}

std::span<const FormRow> all_forms() {
  return kForms;
}

Status expand_form(Graph& graph, const FormRow& row, const Call& call, const Origin& origin,
                   const Options& options) {
  const size_t buffers = graph.buffers.size(), nodes = graph.nodes.size();
  Status expanded = expand_checked(graph, row, call, origin, options);
  if (!expanded.ok()) {
    graph.buffers.resize(buffers);
    graph.nodes.resize(nodes);
  }
  return expanded;
}

Status expand_call(Graph& graph, const Call& call, std::string_view name, std::string_view source,
                   const Options& options) {
  const FormRow* row = find_form(call.op);
  if (row == nullptr) {
    return refuse(fmt::format("no form says what '{}' means", call.op));
  }
  // Nodes name operators without the overload that needs no name.
  const std::string aten = call.op.ends_with(".default") ? call.op.substr(0, call.op.rfind('.')) : call.op;
  const Origin origin{.aten = aten, .source = std::string(source), .prefix = std::string(name) + "_"};
  return expand_form(graph, *row, call, origin, options);
}

}  // namespace spyre::forms
