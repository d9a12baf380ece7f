#pragma once

#include <optional>

#include "spyre/graph/graph.h"

/// What passes over calls ask about buffers: who writes them, and which view of one is a view of another.
namespace spyre {

/// Whether a call or a loop writes elements of a buffer.
bool writes(const Node& node, BufferId id);

/// The elements that a load or a store touches, by loop of the node, if they lie as those of a view do.
std::optional<TensorView> view_of(const Graph& graph, const Node& node, BufferId id, const Expr& index);

/// A view of a buffer, whose elements `whole` lists, as one of `place`, which has the same elements. None where it steps
/// from one dimension into another.
std::optional<TensorView> moved(const TensorView& view, const TensorView& whole, const TensorView& place);

/// Every tensor of a call, as a place to change; those it reads come first.
template <class Visit>
void for_each_operand(Call& call, Visit&& visit) {
  for (Argument& argument : call.arguments) {
    if (auto* view = std::get_if<TensorView>(&argument)) visit(*view);
    if (auto* list = std::get_if<TensorList>(&argument)) {
      for (std::optional<TensorView>& view : *list) {
        if (view) visit(*view);
      }
    }
  }
}
template <class Visit>
void for_each_view(Call& call, Visit&& visit) {
  for_each_operand(call, visit);
  for (TensorView& view : call.results) visit(view);
}

}  // namespace spyre
