// Pools: each element of the result from a window of the input. The window is unrolled, one load for each of
// its places.
//
//     average of 2 x 2      out[n, c, i, j] = (x[n, c, 2i, 2j] + x[n, c, 2i, 2j+1] + ... ) / 4

#include <fmt/format.h>

#include <algorithm>

#include "spyre/forms/columns.h"
#include "spyre/forms/forms.h"
#include "spyre/forms/windows.h"

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
  bool over_edge = !all_are(each(args[3], kDims, {0, 0}), 0);
  if (ceil_mode) {  // the last window may begin inside and end outside
    const size_t rank = x.size.size();
    for (size_t d = 0; d < kDims; ++d) {
      const bool known = rank >= kDims && size.size() == kDims && stride.size() == kDims && stride[d] > 0;
      over_edge = over_edge || !known || (x.size[rank - kDims + d] - size[d]) % stride[d] != 0;
    }
  }
  if (over_edge) {
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

namespace {

constexpr int64_t kTapsAtMost = 1024;

/// The largest pixel of every window. Windows are taken apart as those of convolutions are: by place in the window an
/// image of the pixels seen there. The largest of them goes along from image to image, with the place it came from in
/// 16 bits; positions in the input are counted in 32.
struct MaximumPool {
  Sweep sweep;
  PerAxis image{}, extents{};

  /// How many pixels there are before and behind the image that some window sees.
  Around around() const {
    Around found;
    for (size_t d = 0; d < found.size(); ++d) {
      const int64_t end = (extents[d] - 1) * sweep.stride[d] + sweep.dilation[d] * (sweep.window[d] - 1) + 1;
      found[d] = {sweep.padding[d], end - image[d] - sweep.padding[d]};
    }
    return found;
  }

  /// By window the row or the column of the input where it begins, [height, width].
  TensorView starts(Builder& builder, size_t d) const {
    const TensorView numbers = builder.local({extents[0], extents[1]}, HostType::kFloat16);
    NodeBuilder node = builder.node(numbers, numbers.size);
    node.store(node.index(node.loop(d), HostType::kFloat16));
    const Element wide = cast(numbers, HostType::kFloat32);
    return compute(builder,
                   wide * static_cast<double>(sweep.stride[d]) - static_cast<double>(sweep.padding[d]));
  }
};

/// (size, stride, padding, dilation, ceil_mode) from `first` on.
Result<MaximumPool> maximum_pool_of(const TensorView& x, Arguments args, size_t first) {
  const size_t rank = x.size.size();
  if (!is_float(x.dtype) || (rank != 3 && rank != 4) || element_count(x) == 0) {
    return refuse("a pool of other tensors than images");
  }
  SPYRE_TRY(arithmetic_type(x.dtype));
  MaximumPool pool;
  Sweep& sweep = pool.sweep;
  SPYRE_ASSIGN_OR_RETURN(sweep.window, pair_of(args[first], {0, 0}));
  SPYRE_ASSIGN_OR_RETURN(sweep.stride, pair_of(args[first + 1], sweep.window));
  SPYRE_ASSIGN_OR_RETURN(sweep.padding, pair_of(args[first + 2], {0, 0}));
  SPYRE_ASSIGN_OR_RETURN(sweep.dilation, pair_of(args[first + 3], {1, 1}));
  pool.image = {x.size[rank - 2], x.size[rank - 1]};
  const bool ceil_mode = flag(args[first + 4]);
  for (size_t d = 0; d < pool.image.size(); ++d) {
    const int64_t n = pool.image[d], s = sweep.stride[d], p = sweep.padding[d];
    const int64_t reach = sweep.dilation[d] * (sweep.window[d] - 1), room = n + 2 * p - reach - 1;
    if (sweep.window[d] < 1 || s < 1 || sweep.dilation[d] < 1 || room < 0 ||
        std::max({n, room / s + 2, reach}) > kExactIn16Bits) {
      return refuse("a window that cannot be counted in 16 bits, or sees nothing");
    }
    pool.extents[d] = (ceil_mode ? room + s - 1 : room) / s + 1;
    if (ceil_mode && (pool.extents[d] - 1) * s >= n + p) {  // none begins behind the image
      --pool.extents[d];
    }
  }
  if (element_count(sweep.window) > kTapsAtMost) {
    return refuse("a window of more pixels than are looked at one by one");
  }
  return pool;
}

TensorView with_batch(const TensorView& x) {
  return x.size.size() == 3 ? unsqueeze(x, 0) : x;
}

}  // namespace

Status maximum_pool(Builder& builder, Arguments args, std::string_view /*op*/) {
  const TensorView& x = tensor(args[0]);
  SPYRE_ASSIGN_OR_RETURN(const MaximumPool pool, maximum_pool_of(x, args, 1));
  if (builder.result(0).size.size() != x.size.size() || builder.result(1).size != builder.result(0).size) {
    return refuse("a pool into other dimensions");
  }
  // What no number is smaller than stands around the image.
  const TensorView image = padded_image(builder, channels_last(with_batch(x)), pool.around(),
                                        pool.sweep.stride, lowest_of(x.dtype));
  const std::vector<TensorView> taps = taps_of(builder, image, pool.sweep, pool.extents);
  const std::vector<PerAxis> places = pool.sweep.places();
  TensorView best = taps[0];
  std::array<TensorView, 2> at;
  for (TensorView& coordinate : at) {
    coordinate = builder.local(best.size, x.dtype);
    fill(builder, coordinate, cast(0.0, x.dtype));
  }
  for (size_t i = 1; i < taps.size(); ++i) {
    const TensorView larger = compute(builder, Element(taps[i]) > best);
    for (size_t d = 0; d < at.size(); ++d) {
      at[d] = compute(builder, where(larger, static_cast<double>(places[i][d]), at[d]));
    }
    best = compute(builder, call("maximum", {best, taps[i]}));
  }
  fill(builder, with_batch(builder.result(0)), channels_first(best));
  std::array<TensorView, 2> position;
  for (size_t d = 0; d < at.size(); ++d) {
    const TensorView inside = in_rows(builder, channels_first(at[d]));
    position[d] = compute(builder, cast(inside, HostType::kFloat32) + pool.starts(builder, d));
  }
  const Element row = Element(position[0]) * static_cast<double>(pool.image[1]);
  fill(builder, with_batch(builder.result(1)), row + position[1]);
  return Status();
}

Status maximum_pool_backward(Builder& builder, Arguments args, std::string_view /*op*/) {
  const TensorView& x = tensor(args[1]);
  SPYRE_ASSIGN_OR_RETURN(const MaximumPool pool, maximum_pool_of(x, args, 2));
  const TensorView &indices = tensor(args[7]), &gradient = tensor(args[0]);
  if (builder.result().size != x.size || gradient.size != indices.size ||
      gradient.size.size() != x.size.size()) {
    return refuse("a pool into other dimensions");
  }
  const Sweep& sweep = pool.sweep;
  const auto width = static_cast<double>(pool.image[1]);
  const Element corner = Element(pool.starts(builder, 0)) * width + pool.starts(builder, 1);
  const TensorView first = compute(builder, cast(corner, HostType::kInt64));
  std::optional<TensorView> sum;
  for (const PerAxis& place : sweep.places()) {
    const auto offset = static_cast<double>(place[0] * pool.image[1] + place[1]);
    const TensorView meant = compute(builder, equal(with_batch(indices), Element(first) + offset));
    const TensorView own = compute(builder, where(meant, with_batch(gradient), 0.0));
    Around around;
    for (size_t d = 0; d < around.size(); ++d) {
      const int64_t start = place[d] - sweep.padding[d];
      around[d] = {start, pool.image[d] - (pool.extents[d] - 1) * sweep.stride[d] - 1 - start};
    }
    const TensorView part = padded_image(builder, spread(builder, channels_last(own), sweep.stride), around);
    sum = sum ? compute(builder, Element(*sum) + part) : part;
  }
  fill(builder, with_batch(builder.result()), channels_first(*sum));
  return Status();
}

}  // namespace spyre::forms
