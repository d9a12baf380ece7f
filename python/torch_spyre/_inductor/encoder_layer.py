"""The fused operators that PyTorch's transformer modules call in eval mode, as products, softmax and norms.

``nn.TransformerEncoderLayer`` and ``nn.MultiheadAttention`` call them without asking the device; on the card each of
their steps is an operator of its own.
"""

import torch
import torch.nn.functional as F

from torch_spyre.constants import BYTES_IN_STICK


def _project(query, key, value, weight, bias):
    """One product where all three are the same tensor. Otherwise each has its part of the weights, as a matrix of its
    own: products cannot read one from the middle of another."""
    if query is key and key is value:
        return F.linear(query, weight, bias).chunk(3, dim=-1)
    parts = zip((query, key, value), weight.chunk(3), bias.chunk(3), strict=True)
    return [F.linear(x, w.clone(), b.clone()) for x, w, b in parts]


def _split_heads(x, heads: int):
    return x.unflatten(-1, (heads, x.shape[-1] // heads)).transpose(1, 2)


def _join_heads(x):
    """Heads that are no whole sticks lie apart when joined, which products do not read: a copy closes them up."""
    joined = x.transpose(1, 2).flatten(-2)
    return joined if x.shape[-1] * x.element_size() % BYTES_IN_STICK == 0 else joined.clone()


def _kept(mask, mask_type):
    """Where attention may look, for ``F.scaled_dot_product_attention``: the fused operators' masks say where not, by
    True or by any number but zero, one row for all (0), a row of keys for each text (1), or in full (2)."""
    if mask is None:
        return None
    kept = mask == 0 if mask.dtype != torch.bool else ~mask
    return kept[:, None, None, :] if mask_type == 1 else kept


def multi_head_attention(
    query,
    key,
    value,
    embed_dim,
    num_head,
    qkv_weight,
    qkv_bias,
    proj_weight,
    proj_bias,
    mask=None,
    need_weights=True,
    average_attn_weights=True,
    mask_type=None,
):
    if query.is_nested or query.dim() != 3:
        return NotImplemented
    projected = [_split_heads(x, num_head) for x in _project(query, key, value, qkv_weight, qkv_bias)]
    kept = _kept(mask, mask_type)
    weights = query.new_empty(0)
    if need_weights:
        q, k, v = projected
        scores = (q * q.shape[-1] ** -0.5) @ k.transpose(-2, -1)
        if kept is not None:
            scores = torch.where(kept, scores, torch.finfo(scores.dtype).min)
        weights = torch.softmax(scores, dim=-1)
        heads = weights @ v
        weights = weights.mean(1) if average_attn_weights else weights
    else:
        heads = F.scaled_dot_product_attention(*projected, attn_mask=kept)
    return F.linear(_join_heads(heads), proj_weight, proj_bias), weights


def transformer_encoder_layer(
    src,
    embed_dim,
    num_heads,
    qkv_weight,
    qkv_bias,
    proj_weight,
    proj_bias,
    use_gelu,
    norm_first,
    eps,
    norm_weight_1,
    norm_bias_1,
    norm_weight_2,
    norm_bias_2,
    ffn_weight_1,
    ffn_bias_1,
    ffn_weight_2,
    ffn_bias_2,
    mask=None,
    mask_type=None,
):
    if src.is_nested or src.dim() != 3:
        return NotImplemented

    def norm_1(x):
        return F.layer_norm(x, (embed_dim,), norm_weight_1, norm_bias_1, eps)

    def norm_2(x):
        return F.layer_norm(x, (embed_dim,), norm_weight_2, norm_bias_2, eps)

    def attend(x):
        given = (qkv_weight, qkv_bias, proj_weight, proj_bias)
        return multi_head_attention(x, x, x, embed_dim, num_heads, *given, mask, False, True, mask_type)[0]

    def feed_forward(x):
        hidden = F.linear(x, ffn_weight_1, ffn_bias_1)
        return F.linear(F.gelu(hidden) if use_gelu else F.relu(hidden), ffn_weight_2, ffn_bias_2)

    if norm_first:
        x = src + attend(norm_1(src))
        return x + feed_forward(norm_2(x))
    x = norm_1(src + attend(src))
    return norm_2(x + feed_forward(x))
