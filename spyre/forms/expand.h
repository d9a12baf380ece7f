#pragma once

#include <span>
#include <string_view>

#include "spyre/base/result.h"
#include "spyre/forms/form.h"
#include "spyre/graph/call.h"
#include "spyre/graph/graph.h"

/// The one door into this layer: a call in, the nodes of its form out.
namespace spyre::forms {

/// One row of table.def.
struct FormRow {
  std::string_view name;  ///< of the operator, with its overload: aten.add.Tensor
  Form form = nullptr;
  std::string_view op, arguments;
};

/// How many arguments the form looks at.
size_t argument_count(const FormRow& row);

/// None: the operator has no form.
const FormRow* find_form(std::string_view op);
std::span<const FormRow> all_forms();

/// Appends the nodes of the call's form to `graph`; buffers and nodes get names that start with `name`. Its tensors are
/// views of buffers of `graph`, its results are filled. A refusal (no form, arguments of other kinds than the operator
/// has, what the card cannot do) leaves the graph as it was.
Status expand_call(Graph& graph, const Call& call, std::string_view name, std::string_view source,
                   const Options& options = {});

/// The same for a form that is at hand.
Status expand_form(Graph& graph, const FormRow& row, const Call& call, const Origin& origin,
                   const Options& options);

}  // namespace spyre::forms
