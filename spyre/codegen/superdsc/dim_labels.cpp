// Which label each iteration symbol gets. Labels are positional; only windows go by role.

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "spyre/codegen/superdsc/plan.h"
#include "spyre/ops/legality.h"

namespace spyre::superdsc {
namespace {

using Labels = std::vector<std::string_view>;

constexpr std::array<std::string_view, 7> kInputLabels = {"mb", "x", "y", "i", "j", "ki", "kj"};
static_assert(kInputLabels.size() + 1 == kMostDims);
constexpr std::array<std::string_view, 7> kMatmulLabels = {"ki", "kj", "y", "x", "mb", "out", "in"};

bool moves_in_window(std::string_view label) {
  return label == "ki" || label == "kj";
}

// First n-1 of the input labels, then `out`.
Result<Labels> general_labels(const SdscPlan& plan, size_t n) {
  if (n > kMostDims) {
    return plan.refuse(fmt::format("{} dimensions, an op has at most {}", n, kMostDims));
  }
  Labels labels(kInputLabels.begin(), kInputLabels.begin() + static_cast<int64_t>(n > 0 ? n - 1 : 0));
  if (n > 0) labels.push_back("out");
  return labels;
}

// Last n of the matmul labels: batch, M, N, K.
Result<Labels> matmul_labels(const SdscPlan& plan, size_t n) {
  if (n > kMatmulLabels.size()) {
    return plan.refuse(fmt::format("{} dimensions, a matmul has at most {}", n, kMatmulLabels.size()));
  }
  return Labels(kMatmulLabels.end() - static_cast<int64_t>(n), kMatmulLabels.end());
}

Labels window_roles(const SdscPlan& plan) {
  if (plan.is(OpFamily::kPool)) return {"mb", "i", "j", "out", "ki", "kj"};
  if (plan.is(OpFamily::kConv)) return {"mb", "i", "j", "out", "in", "ki", "kj"};
  return {"mb", "out", "i", "j", "ki", "kj"};
}

// Loops of one trip are dropped by the front end, and their roles with them.
bool role_survives(const OpSpec& op, std::string_view role) {
  const std::vector<int64_t>& nchw = op.node_output_ranges;
  if (role == "mb") return nchw[0] > 1;
  if (role == "out") return nchw[1] > 1;
  if (role == "i") return nchw[2] > 1;
  if (role == "j") return nchw[3] > 1;
  if (role == "ki") return op.window->kernel_h > 1;
  if (role == "kj") return op.window->kernel_w > 1;
  return true;
}

Result<Labels> window_labels(const SdscPlan& plan, size_t n) {
  Labels roles = window_roles(plan);
  if (n == roles.size()) return roles;
  std::erase_if(roles, [&](std::string_view role) { return !role_survives(*plan.op, role); });
  if (n != roles.size()) {
    return plan.refuse(fmt::format("{} loops, the output ranges and the kernel leave {}: {}", n, roles.size(),
                                   fmt::join(roles, ", ")));
  }
  return roles;
}

}  // namespace

Status label_dims(SdscPlan& plan) {
  const auto& space = plan.op->iteration_space;
  SPYRE_ASSIGN_OR_RETURN(const Labels labels, plan.has_window() ? window_labels(plan, space.size())
                                              : plan.is(OpFamily::kMatmul)
                                                  ? matmul_labels(plan, space.size())
                                                  : general_labels(plan, space.size()));
  for (size_t i = 0; i < space.size(); ++i) {
    Dim dim{.label = std::string(labels[i]),
            .symbol = space[i].symbol,
            .logical = space[i].extent,
            .extent = space[i].extent,
            .split = space[i].split,
            .dynamic = space[i].dynamic};
    dim.window = plan.has_window() && moves_in_window(dim.label);
    for (const auto& [name, bound] : plan.op->symbolic_dim_bounds) {
      if (name == dim.dynamic) dim.bound = bound;
    }
    plan.dims.push_back(std::move(dim));
  }
  if (!plan.has_window()) return Status();
  // A window needs both directions to be described, even where no loop runs along one.
  for (const std::string_view role : {"i", "j", "ki", "kj"}) {
    if (!plan.find_label(role)) plan.dims[plan.add_dim(std::string(role), 1)].window = moves_in_window(role);
  }
  return Status();
}

Result<std::string> unused_label(const SdscPlan& plan) {
  // A matmul looks from the back (mb, x, y, ...); others start behind the labels that as many loops would
  // take.
  Labels candidates(kInputLabels.begin(), kInputLabels.end());
  if (plan.is(OpFamily::kMatmul)) {
    candidates.assign(kMatmulLabels.rbegin(), kMatmulLabels.rend());
  } else {
    const auto taken = static_cast<int64_t>(std::min(plan.op->iteration_space.size(), candidates.size()));
    std::rotate(candidates.begin(), candidates.begin() + taken, candidates.end());
  }
  for (const std::string_view label : candidates) {
    if (!plan.find_label(label)) return std::string(label);
  }
  return plan.refuse("no dimension label is left for an extra dimension");
}

}  // namespace spyre::superdsc
