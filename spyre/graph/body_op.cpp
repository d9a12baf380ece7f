#include "spyre/graph/body_op.h"

#include <array>
#include <unordered_map>

namespace spyre {
namespace {

constexpr std::array kNames = {
#define SPYRE_VALUE(name) std::string_view(#name),
#define SPYRE_ELEMENTWISE(name) std::string_view(#name),
#define SPYRE_FOLD(name) std::string_view("reduce." #name),
#include "spyre/graph/body_ops.def"
};

}  // namespace

std::string_view to_string(BodyOp op) {
  return kNames[static_cast<size_t>(op)];
}

std::optional<BodyOp> body_op_from_name(std::string_view name) {
  using Rows = std::unordered_map<std::string_view, BodyOp>;
  static const Rows& rows = *new Rows([] {  // never destroyed: threads may outlive `exit`
    Rows known;
    for (size_t i = 0; i < kNames.size(); ++i) known.emplace(kNames[i], static_cast<BodyOp>(i));
    return known;
  }());
  const auto row = rows.find(name);
  return row == rows.end() ? std::nullopt : std::optional(row->second);
}

bool is_fold(BodyOp op) {
  switch (op) {
#define SPYRE_FOLD(name) case BodyOp::name:
#include "spyre/graph/body_ops.def"
    return true;
    default:
      return false;
  }
}

}  // namespace spyre
