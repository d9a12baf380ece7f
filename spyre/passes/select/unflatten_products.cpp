#include "spyre/passes/select/unflatten_products.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <numeric>
#include <optional>
#include <string_view>

#include "spyre/passes/select/call_views.h"

namespace spyre {
namespace {

constexpr size_t kMostAxes = 2;  // of rows, and of stacks; with more the card needs them merged

/// Where the operands of a product are among its arguments, and whether it is one of stacks.
struct Product {
  std::string_view op;
  size_t left;
  bool stacked;
};
constexpr std::array kProducts = {
    Product{.op = "aten.mm.default", .left = 0, .stacked = false},
    Product{.op = "aten.addmm.default", .left = 1, .stacked = false},
    Product{.op = "aten.bmm.default", .left = 0, .stacked = true},
    Product{.op = "aten.baddbmm.default", .left = 1, .stacked = true},
};

const Product* product_of(const Node& node) {
  if (!node.call) return nullptr;
  const auto* const found = std::ranges::find(kProducts, node.call->op, &Product::op);
  if (found == kProducts.end()) return nullptr;
  const std::vector<Argument>& arguments = node.call->arguments;
  const auto is_tensor = [&](size_t i) {
    return i < arguments.size() && std::holds_alternative<TensorView>(arguments[i]);
  };
  const size_t rank = found->stacked ? 3 : 2;
  const bool complete = is_tensor(found->left) && is_tensor(found->left + 1) &&
                        node.call->results.size() == 1 && node.call->results[0].size.size() == rank;
  return complete && std::get<TensorView>(arguments[found->left]).size.size() == rank &&
                 std::get<TensorView>(arguments[found->left + 1]).size.size() == rank
             ? found
             : nullptr;
}

/// The sizes that a buffer has where a view of it has one dimension, outermost first; that dimension if it has none.
std::vector<int64_t> apart(const Buffer& buffer, int64_t size, int64_t stride) {
  std::vector<int64_t> sizes;
  int64_t reached = 1;
  while (reached < size) {
    size_t d = 0;
    while (d < buffer.size.size() && (buffer.size[d] == 1 || buffer.stride[d] != stride * reached)) ++d;
    if (d == buffer.size.size()) return {size};
    sizes.insert(sizes.begin(), buffer.size[d]);
    reached *= buffer.size[d];
  }
  return reached == size ? sizes : std::vector<int64_t>{size};
}

/// The first dimension of a view as several.
void split_first(TensorView& view, const std::vector<int64_t>& sizes) {
  std::vector<int64_t> strides(sizes.size());
  int64_t stride = view.stride[0];
  for (size_t i = sizes.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= sizes[i];
  }
  view.size.erase(view.size.begin());
  view.stride.erase(view.stride.begin());
  view.size.insert(view.size.begin(), sizes.begin(), sizes.end());
  view.stride.insert(view.stride.begin(), strides.begin(), strides.end());
}

/// A node that copies elements: from which view of a buffer into which.
struct Copy {
  TensorView source, made;
};

std::optional<Copy> copy_of(const Graph& graph, const Node& node) {
  if (node.call || node.body.size() != 1 || !node.body[0].is_load()) return std::nullopt;
  std::optional<TensorView> source = view_of(graph, node, node.body[0].buffer, node.body[0].index);
  std::optional<TensorView> made = view_of(graph, node, node.target, node.target_index);
  if (!source || !made || source->dtype != made->dtype) return std::nullopt;
  return Copy{.source = *std::move(source), .made = *std::move(made)};
}

class Unflattening {
 public:
  explicit Unflattening(Graph& graph) : graph_(graph) {}

  void run() {
    for (at_ = 0; at_ < graph_.nodes.size(); ++at_) {
      Node& node = graph_.nodes[at_];
      const Product* product = product_of(node);
      if (product == nullptr) continue;
      TensorView& left = std::get<TensorView>(node.call->arguments[product->left]);
      TensorView& right = std::get<TensorView>(node.call->arguments[product->left + 1]);
      unflatten(node, *product, left, right);
    }
  }

 private:
  void unflatten(Node& node, const Product& product, TensorView& left, TensorView& right) {
    if (const std::vector<int64_t> sizes = axes(product, left, right);
        sizes.size() > 1 && sizes.size() <= kMostAxes) {
      TensorView a = left, b = right;
      split_first(a, sizes);
      if (product.stacked) {
        split_first(b, sizes);
      } else {
        b.size.insert(b.size.begin(), sizes.size() - 1, 1);
        b.stride.insert(b.stride.begin(), sizes.size() - 1, 0);
      }
      const bool reads_sources = product.stacked && read_sources_of_copies(a, b);
      const bool reshapes = may_reshape(node.call->results[0]);
      if (reads_sources || reshapes) {
        left = std::move(a);
        right = std::move(b);
        if (product.left == 1) split_addend(node.call->arguments[0], sizes);
        split_result(node, sizes, reshapes);
        return;
      }
    }
    if (product.stacked) read_sources_of_copies(left, right);
  }

  const Buffer& buffer(const TensorView& view) const {
    return graph_.buffers[static_cast<size_t>(view.buffer)];
  }

  std::vector<int64_t> axes(const Product& product, const TensorView& left, const TensorView& right) const {
    const std::vector<int64_t> of_left = apart(buffer(left), left.size[0], left.stride[0]);
    if (!product.stacked) return of_left;
    const std::vector<int64_t> of_right = apart(buffer(right), right.size[0], right.stride[0]);
    return of_left == of_right ? of_left : std::vector<int64_t>{left.size[0]};
  }

  /// Whether the buffer behind a result may have other dimensions: the whole of it is this result, nobody sees it as it is
  /// but products, which follow, and what is merged in it is no extent.
  bool may_reshape(const TensorView& result) const {
    const Buffer& whole = buffer(result);
    if (!graph_.is_local(result.buffer) || result.size != whole.size || result.stride != whole.stride ||
        result.offset != 0 || whole.reach() != whole.elements() || whole.bound(0) != kFixed) {
      return false;
    }
    return std::ranges::none_of(graph_.nodes, [&](const Node& node) {
      if (!node.call) return false;
      const Product* product = product_of(node);
      const std::vector<TensorView> operands = operands_of(*node.call);
      return std::ranges::any_of(operands, [&](const TensorView& operand) {
        const bool is_left =
            product != nullptr && operand == std::get<TensorView>(node.call->arguments[product->left]);
        return operand.buffer == result.buffer && operand.size == whole.size && !is_left;
      });
    });
  }

  void split_addend(Argument& argument, const std::vector<int64_t>& sizes) const {
    auto* view = std::get_if<TensorView>(&argument);
    const auto merged = std::reduce(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<>());
    // With fewer dimensions it is repeated along the first one anyway.
    if (view == nullptr || view->size.size() < graph_.nodes[at_].call->results[0].size.size()) return;
    split_first(*view, view->size[0] == merged ? sizes : std::vector<int64_t>(sizes.size(), 1));
  }

  void split_result(Node& node, const std::vector<int64_t>& sizes, bool reshapes) {
    TensorView& result = node.call->results[0];
    split_first(result, sizes);
    if (reshapes) {
      Buffer& whole = graph_.buffers[static_cast<size_t>(result.buffer)];
      whole.size = result.size;
      whole.stride = result.stride;
      if (!whole.bounds.empty()) whole.bounds.insert(whole.bounds.begin(), sizes.size() - 1, kFixed);
    }
    // Wishes count dimensions of the result: one for those that were merged is one for the outermost.
    for (auto& [loop, count] : node.hints) {
      for (size_t dim = 1; dim + sizes.size() <= result.size.size(); ++dim) {
        if (loop == fmt::format("p{}", dim)) {
          loop = fmt::format("p{}", dim + sizes.size() - 1);
          break;
        }
      }
    }
  }

  bool read_sources_of_copies(TensorView& left, TensorView& right) const {
    const bool of_left = read_source_of_copy(left), of_right = read_source_of_copy(right);
    return of_left || of_right;
  }

  /// Puts a view of what was copied in place of one of the copy. Whether it could.
  bool read_source_of_copy(TensorView& operand) const {
    const auto end = graph_.nodes.begin() + static_cast<std::ptrdiff_t>(at_);
    const auto fills = [](BufferId id) { return [id](const Node& node) { return writes(node, id); }; };
    const auto copy = std::find_if(graph_.nodes.begin(), end, fills(operand.buffer));
    if (copy == end) return false;
    const std::optional<Copy> found = copy_of(graph_, *copy);
    if (!found || operand.offset != found->made.offset || std::any_of(copy + 1, end, fills(operand.buffer)) ||
        std::any_of(copy, end, fills(found->source.buffer))) {
      return false;
    }
    const auto& [source, made] = *found;
    TensorView seen{.buffer = source.buffer,
                    .dtype = source.dtype,
                    .size = operand.size,
                    .stride = {},
                    .offset = source.offset};
    for (size_t i = 0; i < operand.size.size(); ++i) {
      size_t d = 0;
      while (d < made.size.size() && (made.size[d] != operand.size[i] || made.stride[d] != operand.stride[i]))
        ++d;
      if (d == made.size.size() && operand.size[i] != 1) return false;
      seen.stride.push_back(operand.size[i] == 1 ? 0 : source.stride[d]);
    }
    operand = std::move(seen);
    return true;
  }

  Graph& graph_;
  size_t at_ = 0;
};

}  // namespace

void unflatten_products(Graph& graph) {
  Unflattening(graph).run();
}

}  // namespace spyre
