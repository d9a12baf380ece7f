// The fused operators that PyTorch's transformer modules call in eval mode, as products, softmax and norms.
// `nn.TransformerEncoderLayer` and `nn.MultiheadAttention` call them without asking the device.

#include <cmath>

#include "spyre/forms/attention.h"
#include "spyre/forms/forms.h"

namespace spyre::forms {
namespace {

constexpr int64_t kStickBytes = 128;

/// x [batch, rows, in] times a weight [out, in], plus a bias.
TensorView linear(Builder& builder, const TensorView& x, const TensorView& weight, const TensorView& bias) {
  const TensorView matrix = unsqueeze(permute(weight, {1, 0}), 0);
  return compute(builder, Element(product(builder, x, matrix, x.dtype)) + bias);
}

TensorView norm_of(Builder& builder, const TensorView& x, const Argument& weight, const Argument& bias,
                   double eps) {
  std::vector<int64_t> each = x.size;
  each.back() = 1;
  const TensorView out = builder.local(x.size, x.dtype);
  const std::vector<Argument> args = {x, std::vector{x.size.back()}, weight, bias, Number{.value = eps}};
  builder.apply(&layer_norm, Arguments(args), "",
                {out, builder.local(each, x.dtype), builder.local(each, x.dtype)});
  return out;
}

/// The weights and biases of queries, keys and values, side by side, and of the result.
struct Projections {
  TensorView weight, bias, out_weight, out_bias;
};

struct Heads {
  std::array<TensorView, 3> each;  ///< query, key, value: [batch, heads, rows, width]
  int64_t width = 0;
};

/// One product where all three are the same tensor. Otherwise each has its part of the weights, as a matrix of its own:
/// products cannot read one from the middle of another.
Heads project(Builder& builder, const std::array<TensorView, 3>& inputs, const Projections& to,
              int64_t heads) {
  const int64_t embedded = to.weight.size[0] / 3;
  std::array<TensorView, 3> projected;
  if (inputs[0] == inputs[1] && inputs[1] == inputs[2]) {
    const TensorView all = linear(builder, inputs[0], to.weight, to.bias);
    for (size_t i = 0; i < projected.size(); ++i) {
      projected[i] = narrow(all, 2, static_cast<int64_t>(i) * embedded, embedded);
    }
  } else {
    for (size_t i = 0; i < projected.size(); ++i) {
      const int64_t first = static_cast<int64_t>(i) * embedded;
      const TensorView weight = compute(builder, narrow(to.weight, 0, first, embedded));
      projected[i] =
          linear(builder, inputs[i], weight, compute(builder, narrow(to.bias, 0, first, embedded)));
    }
  }
  Heads found{.width = embedded / heads};
  for (size_t i = 0; i < projected.size(); ++i) {
    TensorView split = unsqueeze(projected[i], 2);
    split.size = {split.size[0], split.size[1], heads, found.width};
    split.stride[2] = split.stride[3] * found.width;
    found.each[i] = permute(split, {0, 2, 1, 3});
  }
  return found;
}

/// Where attention may look: the fused operators' masks say where not, by True or by any number but zero, one row for
/// all (0), a row of keys for each text (1), or in full (2).
std::optional<TensorView> kept_by(Builder& builder, const Argument& mask, const Argument& type) {
  if (is_none(mask)) {
    return std::nullopt;
  }
  const TensorView& given = tensor(mask);
  const Element allowed = given.dtype == HostType::kBool ? !Element(given) : equal(given, 0.0);
  const TensorView kept = compute(builder, allowed);
  return integer(type, 0) == 1 && kept.size.size() == 2 ? unsqueeze(unsqueeze(kept, 1), 1) : kept;
}

/// Heads [batch, heads, rows, width] side by side. Those that are no whole sticks lie apart when joined, which products
/// do not read: a copy closes them up.
TensorView joined_heads(Builder& builder, const TensorView& x) {
  const TensorView rows = compute(builder, permute(x, {0, 2, 1, 3}));
  const TensorView side_by_side =
      reshape(builder, rows, {rows.size[0], rows.size[1], rows.size[2] * rows.size[3]});
  const int64_t bytes = x.size[3] * (x.dtype == HostType::kFloat32 ? 4 : 2);
  return bytes % kStickBytes == 0 ? side_by_side : compute(builder, side_by_side);
}

Status check_projections(const TensorView& x, const Projections& to, int64_t heads) {
  const bool matrices = to.weight.size.size() == 2 && to.out_weight.size.size() == 2 &&
                        to.bias.size.size() == 1 && to.out_bias.size.size() == 1;
  if (x.size.size() != 3 || !is_float(x.dtype) || !matrices || heads < 1 || element_count(x) == 0 ||
      to.weight.size[0] % (3 * heads) != 0 || to.weight.size[1] != x.size[2] ||
      to.out_weight.size[1] * 3 != to.weight.size[0]) {
    return refuse("heads that are not equal parts of what is projected");
  }
  SPYRE_TRY(arithmetic_type(x.dtype));
  return Status();
}

/// The result before its own projection.
Result<TensorView> attended(Builder& builder, const Heads& heads, const std::optional<TensorView>& kept) {
  const TensorView out = builder.local(heads.each[0].size, heads.each[0].dtype);
  SPYRE_TRY(attend(builder, out,
                   {.query = heads.each[0], .key = heads.each[1], .value = heads.each[2], .mask = kept}));
  return out;
}

/// The same with the weights that attention gave, in the type of the input.
TensorView attended_with_weights(Builder& builder, const Heads& heads, const std::optional<TensorView>& kept,
                                 TensorView& weights) {
  const HostType type = heads.each[0].dtype;
  const double scale = 1 / std::sqrt(static_cast<double>(heads.width));
  const TensorView query = compute(builder, Element(heads.each[0]) * scale);
  TensorView scores = product(builder, query, permute(heads.each[1], {0, 1, 3, 2}), type);
  if (kept) {
    scores = compute(builder, where(*kept, scores, lowest_of(type)));
  }
  weights = builder.local(scores.size, type);
  const std::vector<Argument> given = {scores, Number{.value = 3, .kind = Number::Kind::kInt}};
  builder.apply(&softmax, Arguments(given), "softmax", {weights});
  return product(builder, weights, heads.each[2], type);
}

}  // namespace

Status multi_head_attention(Builder& builder, Arguments args, std::string_view /*op*/) {
  const std::array<TensorView, 3> inputs = {tensor(args[0]), tensor(args[1]), tensor(args[2])};
  const Projections to = {tensor(args[5]), tensor(args[6]), tensor(args[7]), tensor(args[8])};
  const int64_t heads = integer(args[4]);
  for (const TensorView& input : inputs) {
    SPYRE_TRY(check_projections(input, to, heads));
  }
  const Heads projected = project(builder, inputs, to, heads);
  const std::optional<TensorView> kept = kept_by(builder, args[9], args[12]);
  TensorView out;
  if (is_none(args[10]) || flag(args[10])) {
    TensorView weights;
    out = attended_with_weights(builder, projected, kept, weights);
    if (is_none(args[11]) || flag(args[11])) {
      fold_result(builder, 1, "mean", weights, only(4, 1), /*keepdim=*/false);
    } else {
      fill(builder, 1, weights);
    }
  } else {
    SPYRE_ASSIGN_OR_RETURN(out, attended(builder, projected, kept));
  }
  fill(builder, 0, linear(builder, joined_heads(builder, out), to.out_weight, to.out_bias));
  return Status();
}

Status encoder_layer(Builder& builder, Arguments args, std::string_view /*op*/) {
  const TensorView& source = tensor(args[0]);
  const int64_t heads = integer(args[2]);
  const Projections to = {tensor(args[3]), tensor(args[4]), tensor(args[5]), tensor(args[6])};
  SPYRE_TRY(check_projections(source, to, heads));
  const bool use_gelu = flag(args[7]), norm_first = flag(args[8]);
  const double eps = number(args[9]);
  const std::optional<TensorView> kept = kept_by(builder, args[18], args[19]);
  const auto norm = [&](const TensorView& x, size_t first) {
    return norm_of(builder, x, args[first], args[first + 1], eps);
  };
  const auto attention_of = [&](const TensorView& x) -> Result<TensorView> {
    const Heads projected = project(builder, {x, x, x}, to, heads);
    SPYRE_ASSIGN_OR_RETURN(const TensorView out, attended(builder, projected, kept));
    return linear(builder, joined_heads(builder, out), to.out_weight, to.out_bias);
  };
  const auto feed_forward = [&](const TensorView& x) {
    const TensorView hidden = linear(builder, x, tensor(args[14]), tensor(args[15]));
    const TensorView active = compute(builder, call(use_gelu ? "gelu" : "relu", {hidden}));
    return linear(builder, active, tensor(args[16]), tensor(args[17]));
  };
  if (norm_first) {
    SPYRE_ASSIGN_OR_RETURN(const TensorView attended_norm, attention_of(norm(source, 10)));
    const TensorView x = compute(builder, Element(source) + attended_norm);
    fill(builder, 0, Element(x) + feed_forward(norm(x, 12)));
    return Status();
  }
  SPYRE_ASSIGN_OR_RETURN(const TensorView attended_source, attention_of(source));
  const TensorView x = norm(compute(builder, Element(source) + attended_source), 10);
  fill(builder, 0, norm(compute(builder, Element(x) + feed_forward(x)), 12));
  return Status();
}

}  // namespace spyre::forms
