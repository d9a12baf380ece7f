// Pools: each element of the result from a window of the input. The window is unrolled, one load for each of
// its places.
//
//     average of 2 x 2      out[n, c, i, j] = (x[n, c, 2i, 2j] + x[n, c, 2i, 2j+1] + ... ) / 4

#include <fmt/format.h>

#include <algorithm>

#include "spyre/forms/forms.h"

namespace spyre::forms {
namespace {

// As many as torch.compile unrolls.
constexpr int64_t kPlacesAtMost = 25;

/// A list with one entry for each windowed dimension; one entry alone is for all of them.
std::vector<int64_t> each(const Argument& list, size_t dims, const std::vector<int64_t>& otherwise) {
  std::vector<int64_t> values = is_none(list) ? std::vector<int64_t>() : integers(list);
  if (values.empty()) {
    return otherwise;
  }
  values.resize(dims, values[0]);
  return values;
}

/// Where a window lies that is wholly inside the input: the last `dims` dimensions move by `stride`.
class Window {
 public:
  Window(size_t rank, size_t dims, std::vector<int64_t> size, std::vector<int64_t> stride)
      : rank_(rank), dims_(dims), stride_(std::move(stride)), places_({{}}) {
    for (const int64_t extent : size) {
      std::vector<std::vector<int64_t>> longer;
      for (const std::vector<int64_t>& place : places_) {
        for (int64_t i = 0; i < extent; ++i) {
          longer.push_back(place);
          longer.back().push_back(i);
        }
      }
      places_ = std::move(longer);
    }
  }

  /// Distances from the first element of the window, row by row.
  const std::vector<std::vector<int64_t>>& places() const { return places_; }

  std::vector<Expr> position(const NodeBuilder& node, const std::vector<int64_t>& place) const {
    std::vector<Expr> at;
    for (size_t d = 0; d < rank_; ++d) {
      const size_t w = d + dims_ - rank_;
      at.push_back(d < rank_ - dims_ ? node.loop(d) : stride_[w] * node.loop(d) + Expr::constant(place[w]));
    }
    return at;
  }

 private:
  size_t rank_;
  size_t dims_;
  std::vector<int64_t> stride_;
  std::vector<std::vector<int64_t>> places_;
};

bool all_are(const std::vector<int64_t>& values, int64_t wanted) {
  return std::all_of(values.begin(), values.end(), [&](int64_t v) { return v == wanted; });
}

/// (self, kernel_size, stride, padding, ...) of a pool over the last two dimensions.
Result<Window> window_of(Arguments args, bool ceil_mode) {
  constexpr size_t kDims = 2;
  const TensorView& x = tensor(args[0]);
  SPYRE_TRY(arithmetic_type(x.dtype));
  if (!is_float(x.dtype)) {
    return refuse("a pool of integers");
  }
  const std::vector<int64_t> size = each(args[1], kDims, {}), stride = each(args[2], kDims, size);
  if (!all_are(each(args[3], kDims, {0, 0}), 0) || ceil_mode) {
    return refuse("a pool over the edge of the input");
  }
  const auto small = [](int64_t extent) { return extent >= 1 && extent <= kPlacesAtMost; };
  if (x.size.size() < kDims || size.size() != kDims || !std::all_of(size.begin(), size.end(), small) ||
      element_count(size) > kPlacesAtMost) {
    return refuse(fmt::format("a window of more than {} elements", kPlacesAtMost));
  }
  return Window(x.size.size(), kDims, size, stride);
}

}  // namespace

Status average_pool(Builder& builder, Arguments args, std::string_view /*op*/) {
  SPYRE_ASSIGN_OR_RETURN(const Window window, window_of(args, flag(args[4])));
  const TensorView& x = tensor(args[0]);
  NodeBuilder node = builder.node(builder.result(), builder.result().size);
  std::optional<Value> sum;
  for (const std::vector<int64_t>& place : window.places()) {
    const Value value = node.load(x, window.position(node, place));
    sum = sum ? node.op("add", {*sum, value}) : value;
  }
  const double count = is_none(args[6]) ? static_cast<double>(window.places().size()) : number(args[6]);
  node.store(node.op("truediv", {*sum, node.constant(count, node.dtype(*sum))}));
  return Status();
}

}  // namespace spyre::forms
