#include "spyre/forms/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "spyre/forms/forms.h"

namespace spyre::forms {
namespace {

constexpr HostType kScore = HostType::kFloat32;
constexpr int64_t kKeysOfStick = 64;  // widened scores are folded by whole sticks only
constexpr double kLowestOfMask =
    -0x1p32;  // in 16 bits: beside it scores vanish, and -inf is held as twice as much
constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();

/// One axis as two, of which the inner one has `inner` positions.
TensorView split_axis(const TensorView& x, size_t dim, int64_t inner) {
  TensorView seen = unsqueeze(x, dim + 1);
  seen.size[dim] = x.size[dim] / inner;
  seen.size[dim + 1] = inner;
  seen.stride[dim] = x.stride[dim] * inner;
  seen.stride[dim + 1] = x.stride[dim];
  return seen;
}

TensorView transposed(const TensorView& x) {
  return move_dim(x, x.size.size() - 1, x.size.size() - 2);
}

/// The steps that attention and its gradient share.
class Attention {
 public:
  Attention(Builder& builder, const AttentionCall& call)
      : builder_(builder), causal_(call.causal), type_(call.query.dtype), mask_(call.mask) {
    const size_t heads = call.query.size.size() - 3;
    shared_ = call.key.size[heads];
    groups_ = shared_ > 0 ? call.query.size[heads] / shared_ : 1;
    scale_ = call.scale.value_or(1 / std::sqrt(static_cast<double>(call.query.size.back())));
    keys_ = call.key.size[heads + 1];
    extra_ = type_ == kScore ? 0 : (kKeysOfStick - keys_ % kKeysOfStick) % kKeysOfStick;
    query_ = of_queries(call.query);
    key_ = padded(builder, of_keys(call.key), last() - 1, 0, extra_);
    value_ = padded(builder, of_keys(call.value), last() - 1, 0, extra_);
    if (mask_ && groups_ > 1 && mask_->size.size() >= 3) {
      const size_t axis = mask_->size.size() - 3;
      mask_ = mask_->size[axis] == 1 ? unsqueeze(*mask_, axis) : split_axis(*mask_, axis, groups_);
    }
  }

  /// Heads as [shared, groups], where several share keys.
  TensorView of_queries(const TensorView& x) const {
    return groups_ > 1 ? split_axis(x, x.size.size() - 3, groups_) : x;
  }
  TensorView of_keys(const TensorView& x) const { return groups_ > 1 ? unsqueeze(x, x.size.size() - 2) : x; }

  size_t last() const { return query_.size.size() - 1; }
  const TensorView& key() const { return key_; }
  const TensorView& value() const { return value_; }
  double scale() const { return scale_; }
  int64_t keys() const { return keys_; }
  const std::optional<TensorView>& mask() const { return mask_; }

  TensorView scaled_query() const { return compute(builder_, Element(query_) * scale_); }

  /// Of float32, for every key and those behind the last one.
  TensorView probabilities(const TensorView& scaled_query) const {
    TensorView scores = product(builder_, scaled_query, transposed(key_), kScore);
    if (causal_) {
      scores = compute(builder_, Element(scores) + causal_mask(scores.size[last() - 1], scores.size[last()]));
    }
    scores = masked(scores);
    const std::vector<bool> over_keys = only(last() + 1, last());
    const TensorView highest = fold(builder_, "max", scores, over_keys, /*keepdim=*/true);
    const TensorView weights = compute(builder_, ::spyre::forms::call("exp", {Element(scores) - highest}));
    const TensorView total = fold(builder_, "sum", weights, over_keys, /*keepdim=*/true);
    return compute(builder_, Element(weights) / total);
  }

  /// Which rows a mask forbids whole, by False or -inf: PyTorch makes them zero. In float16 -inf is held as a number far
  /// below the smallest of PyTorch's. In bfloat16 the two are held alike, and a row of either is what it is for the
  /// smallest: the mean.
  std::optional<Element> nothing_allowed() const {
    if (!mask_ || mask_->dtype == HostType::kBFloat16) {
      return std::nullopt;
    }
    const std::vector<bool> over_keys = only(mask_->size.size(), mask_->size.size() - 1);
    if (mask_->dtype == HostType::kBool) {
      return !Element(fold(builder_, "any", *mask_, over_keys, /*keepdim=*/true));
    }
    const TensorView highest = fold(builder_, "max", *mask_, over_keys, /*keepdim=*/true);
    return Element(highest) <= (mask_->dtype == kScore ? kMinusInfinity : kLowestOfMask);
  }

  TensorView padded_mask() const { return padded(builder_, *mask_, mask_->size.size() - 1, 0, extra_); }

 private:
  TensorView causal_mask(int64_t rows, int64_t columns) const {
    const TensorView mask = builder_.local({rows, columns}, kScore);
    NodeBuilder node = builder_.node(mask, mask.size);
    const Value distance = node.index(node.loop(0) + -1 * node.loop(1), HostType::kInt32);
    const Value allowed = node.op("ge", {distance, node.constant(0, HostType::kInt32)});
    node.store(
        node.op("where", {allowed, node.constant(0, kScore), node.constant(lowest_of(kScore), kScore)}));
    return mask;
  }

  /// Of the columns behind the last key.
  TensorView padding_mask() const {
    const TensorView mask = builder_.local({keys_ + extra_}, type_);
    NodeBuilder node = builder_.node(mask, mask.size);
    const Value position = node.index(node.loop(0), HostType::kInt32);
    const Value kept = node.op("lt", {position, node.constant(static_cast<double>(keys_), HostType::kInt32)});
    node.store(node.op("where",
                       {kept, node.constant(0, type_), node.constant(lowest_of(HostType::kFloat16), type_)}));
    return mask;
  }

  /// Scores without those that the mask forbids, and without those of the columns behind the last key. The smallest
  /// number rather than infinity: a row that is masked everywhere stays a number.
  TensorView masked(const TensorView& scores) const {
    if (!mask_) {
      return extra_ == 0 ? scores : compute(builder_, Element(scores) + cast(padding_mask(), kScore));
    }
    if (mask_->dtype == HostType::kBool) {
      return compute(builder_, where(padded_mask(), scores, lowest_of(kScore)));
    }
    // Columns behind the last key lie below every number of a mask: a row of the smallest ones is their keys' mean.
    TensorView mask = *mask_;
    const Element bounded = ::spyre::forms::call("maximum", {mask, cast(kLowestOfMask, mask.dtype)});
    if (mask.dtype == kScore && type_ != kScore) {
      mask = compute(builder_, cast(bounded, type_));  // as the scores came to be float32
    } else if (mask.dtype == HostType::kBFloat16 && extra_ > 0) {
      mask = compute(builder_, bounded);
    }
    mask = padded(builder_, mask, mask.size.size() - 1, 0, extra_, kMinusInfinity);
    return compute(builder_, Element(scores) + cast(mask, kScore));
  }

  Builder& builder_;
  bool causal_;
  HostType type_;
  std::optional<TensorView> mask_;
  TensorView query_, key_, value_;
  int64_t shared_ = 1, groups_ = 1, keys_ = 0, extra_ = 0;
  double scale_ = 1;
};

Status check_attention(const AttentionCall& call) {
  const TensorView &query = call.query, &key = call.key, &value = call.value;
  const size_t rank = query.size.size();
  const bool floats = is_float(query.dtype) && query.dtype == key.dtype && query.dtype == value.dtype;
  if (!floats || rank < 3 || key.size.size() != rank || value.size.size() != rank) {
    return refuse("attention of other tensors than heads of rows");
  }
  SPYRE_TRY(arithmetic_type(query.dtype));
  const int64_t shared = key.size[rank - 3];
  if (element_count(query) == 0 || element_count(key) == 0 || element_count(value) == 0 || shared == 0 ||
      query.size[rank - 3] % shared != 0 || value.size[rank - 3] != shared ||
      key.size[rank - 2] != value.size[rank - 2] || key.size[rank - 1] != query.size[rank - 1]) {
    return refuse("attention of heads that do not fit one another");
  }
  if (call.mask) {
    const std::vector<int64_t>& mask = call.mask->size;
    if (mask.size() < 2 || mask.size() > rank || mask.back() != key.size[rank - 2]) {
      return refuse("a mask that is not of rows of keys");
    }
    return arithmetic_type(call.mask->dtype).ok() && !is_integer(call.mask->dtype)
               ? Status()
               : refuse("a mask of integers");
  }
  return Status();
}

/// (query, key, value, mask, is_causal, scale) from `first` on.
AttentionCall attention_call(Arguments args, size_t first) {
  AttentionCall call{
      .query = tensor(args[first]), .key = tensor(args[first + 1]), .value = tensor(args[first + 2])};
  if (!is_none(args[first + 3])) {
    call.mask = tensor(args[first + 3]);
  }
  call.causal = flag(args[first + 4]);
  if (!is_none(args[first + 5])) {
    call.scale = number(args[first + 5]);
  }
  return call;
}

/// Undoes broadcasting: sums the axes along which a tensor of the size of `target` was repeated.
void sum_to(Builder& builder, const TensorView& target, const TensorView& x) {
  const size_t more = x.size.size() - target.size.size();
  std::vector<bool> repeated(x.size.size(), false);
  for (size_t d = 0; d < x.size.size(); ++d) {
    repeated[d] = d < more || (target.size[d - more] == 1 && x.size[d] != 1);
  }
  TensorView whole = target;
  for (size_t d = 0; d < more; ++d) {
    whole = unsqueeze(whole, 0);
  }
  if (std::find(repeated.begin(), repeated.end(), true) == repeated.end()) {
    fill(builder, target, x);
  } else {
    fill(builder, whole, fold(builder, "sum", x, repeated, /*keepdim=*/true));
  }
}

}  // namespace

Status attend(Builder& builder, const TensorView& target, const AttentionCall& call) {
  SPYRE_TRY(check_attention(call));
  const Attention attention(builder, call);
  const HostType type = call.query.dtype;
  const TensorView weights = as(builder, attention.probabilities(attention.scaled_query()), type);
  const TensorView out = product(builder, weights, attention.value(), type);
  const std::optional<Element> nothing = attention.nothing_allowed();
  fill(builder, attention.of_queries(target), nothing ? where(*nothing, 0.0, out) : Element(out));
  return Status();
}

Status attention(Builder& builder, Arguments args, std::string_view /*op*/) {
  return attend(builder, builder.result(), attention_call(args, 0));
}

/// (gradient, query, key, value, mask, is_causal, scale) -> gradients of queries, keys and values, or of the mask alone.
Status attention_backward(Builder& builder, Arguments args, std::string_view op) {
  const AttentionCall call = attention_call(args, 1);
  SPYRE_TRY(check_attention(call));
  if (tensor(args[0]).size.size() != call.query.size.size()) {
    return refuse("a gradient of other dimensions");
  }
  const Attention attention(builder, call);
  const HostType type = call.query.dtype;
  const size_t last = attention.last();
  const TensorView query = attention.scaled_query();
  const TensorView weights = attention.probabilities(query);
  const TensorView& given = tensor(args[0]);
  const bool repeats = std::ranges::find(given.stride, 0) != given.stride.end();  // that of a sum, say
  TensorView gradient = attention.of_queries(repeats ? compute(builder, given) : given);
  if (const std::optional<Element> nothing = attention.nothing_allowed()) {
    gradient = compute(builder, where(*nothing, 0.0, gradient));
  }
  const auto of_keys = [&](const TensorView& each) { return narrow(each, last - 1, 0, attention.keys()); };
  if (op != "mask" && builder.wants(2)) {
    const TensorView sums = product(builder, transposed(as(builder, weights, type)), gradient, type);
    sum_to(builder, attention.of_keys(builder.result(2)), of_keys(sums));
  }
  const TensorView slopes =
      as(builder, product(builder, gradient, transposed(attention.value()), type), kScore);
  const TensorView shares = fold(builder, "sum", compute(builder, Element(slopes) * weights),
                                 only(last + 1, last), /*keepdim=*/true);
  TensorView of_scores = compute(builder, Element(weights) * (Element(slopes) - shares));
  if (op == "mask") {
    TensorView target = builder.result();
    const std::optional<TensorView>& mask = attention.mask();
    if (!mask || target.size != call.mask->size) {
      return refuse("a gradient of other dimensions");
    }
    if (mask->size.size() != target.size.size()) {  // heads as [shared, groups]
      const size_t axis = target.size.size() - 3;
      target =
          target.size[axis] == 1 ? unsqueeze(target, axis) : split_axis(target, axis, mask->size[axis + 1]);
    }
    sum_to(builder, target, narrow(of_scores, last, 0, attention.keys()));
    return Status();
  }
  if (call.mask && call.mask->dtype == HostType::kBool) {
    of_scores = compute(builder, where(attention.padded_mask(), of_scores, 0.0));
  }
  of_scores = as(builder, of_scores, type);
  if (builder.wants(0)) {
    const TensorView sums = product(builder, of_scores, attention.key(), type);
    fill(builder, attention.of_queries(builder.result(0)), Element(sums) * attention.scale());
  }
  if (builder.wants(1)) {
    const TensorView sums = product(builder, transposed(of_scores), query, type);
    sum_to(builder, attention.of_keys(builder.result(1)), of_keys(sums));
  }
  return Status();
}

}  // namespace spyre::forms
