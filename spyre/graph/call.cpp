#include "spyre/graph/call.h"

namespace spyre {

int64_t Number::whole() const {
  constexpr double kEnd = 0x1p63;  // the first that is no integer of 64 bits
  if (value >= kEnd) return kUnbounded;
  return value >= -kEnd ? static_cast<int64_t>(value) : std::numeric_limits<int64_t>::min();
}

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
