#include "spyre/graph/call.h"

namespace spyre {

std::vector<TensorView> operands_of(const Call& call) {
  std::vector<TensorView> operands;
  for (const Argument& argument : call.arguments) {
    if (const auto* view = std::get_if<TensorView>(&argument)) operands.push_back(*view);
    const auto* list = std::get_if<TensorList>(&argument);
    if (list == nullptr) continue;
    for (const auto& view : *list) {
      if (view) operands.push_back(*view);
    }
  }
  return operands;
}

}  // namespace spyre
