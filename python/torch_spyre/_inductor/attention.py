"""Scaled dot-product attention as products, a softmax and a product, over the batch axes as they are."""

import math

import torch


def supported(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False) -> bool:
    return (
        query.device.type == "spyre"
        and query.dtype in (torch.float16, torch.bfloat16, torch.float32)
        and query.dim() == key.dim() == value.dim()
        and query.dim() >= 3
        and dropout_p == 0.0
    )


def attention(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
    """The meaning of ``F.scaled_dot_product_attention``, without copies of shared key and value heads.

    With g query heads for each key head, heads [h*g] become [h, g] and keys get an axis of one: products broadcast.
    """
    if dropout_p:
        raise NotImplementedError("attention with dropout has no device form")
    matmul = torch.ops.spyre.batched_matmul
    scale = 1.0 / math.sqrt(query.shape[-1]) if scale is None else scale
    heads, shared = query.shape[-3], key.shape[-3]
    groups = heads // shared if heads != shared else 1
    if groups > 1:
        query = query.unflatten(-3, (shared, groups))
        key, value = key.unsqueeze(-3), value.unsqueeze(-3)
    scores = matmul(query * scale, key.transpose(-2, -1))
    if is_causal:
        scores = scores + torch.ops.spyre.causal_mask(scores.shape[-2], scores.shape[-1], scores.dtype, scores.device)
    if attn_mask is not None:
        scores = _masked(scores, attn_mask, shared, groups)
    out = matmul(torch.softmax(scores, dim=-1), value)
    return out.flatten(-4, -3) if groups > 1 else out


def _masked(scores, mask, shared: int, groups: int):
    if groups > 1 and mask.dim() >= 3:
        per_head = mask.shape[-3] != 1
        mask = mask.unflatten(-3, (shared, groups)) if per_head else mask.unsqueeze(-3)
    if mask.dtype == torch.bool:
        # The smallest number rather than infinity: a row that is masked everywhere stays a number.
        return torch.where(mask, scores, torch.finfo(scores.dtype).min)
    return scores + mask.to(scores.dtype)
