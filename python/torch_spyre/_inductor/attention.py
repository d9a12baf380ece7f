"""Scaled dot-product attention as products, a softmax and a product, over the batch axes as they are.

Scores of 16-bit attention stay float32 between the products: unscaled ones reach hundreds, where 16 bits round to
halves and a softmax makes per cents of that.
"""

import math

import torch
import torch.nn.functional as F

_KINDS = (torch.float16, torch.bfloat16, torch.float32)
_STICK = 64  # elements; widened ones are folded by whole sticks only


def supported(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False) -> bool:
    return (
        query.device.type == "spyre"
        and query.dtype in _KINDS
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
    scale = 1.0 / math.sqrt(query.shape[-1]) if scale is None else scale
    heads, shared = query.shape[-3], key.shape[-3]
    groups = heads // shared if heads != shared else 1
    if groups > 1:
        query = query.unflatten(-3, (shared, groups))
        key, value = key.unsqueeze(-3), value.unsqueeze(-3)
        attn_mask = _grouped(attn_mask, shared, groups)
    keys = key.shape[-2]
    extra = -keys % _STICK if query.dtype != torch.float32 else 0
    if extra:
        key, value = F.pad(key, (0, 0, 0, extra)), F.pad(value, (0, 0, 0, extra))
    scores = torch.ops.spyre.batched_matmul_wide(query * scale, key.transpose(-2, -1))
    if is_causal:
        scores = scores + torch.ops.spyre.causal_mask(scores.shape[-2], scores.shape[-1], scores.dtype, scores.device)
    allowed = attn_mask if attn_mask is not None and attn_mask.dtype == torch.bool else None
    if allowed is not None and extra:
        attn_mask = allowed = F.pad(allowed, (0, extra))
    scores = _masked(scores, attn_mask, keys, extra, query.dtype)
    weights = torch.softmax(scores, dim=-1).to(query.dtype)
    if allowed is not None:
        weights = torch.where(allowed, weights, 0.0)  # a query that may see no key sees none, as in PyTorch
    out = torch.ops.spyre.batched_matmul(weights, value)
    return out.flatten(-4, -3) if groups > 1 else out


def _grouped(mask, shared: int, groups: int):
    """The mask of heads [h*g] as one of [h, g]."""
    if mask is None or mask.dim() < 3:
        return mask
    return mask.unflatten(-3, (shared, groups)) if mask.shape[-3] != 1 else mask.unsqueeze(-3)


def _masked(scores, mask, keys: int, extra: int, kind):
    """Scores without those that the mask forbids, and without those of the ``extra`` columns behind the last key.

    The smallest number rather than infinity: a row that is masked everywhere stays a number.
    """
    if mask is None:
        if not extra:
            return scores
        return scores + torch.ops.spyre.padding_mask(keys + extra, keys, kind, scores.device).to(scores.dtype)
    if mask.dtype == torch.bool:
        return torch.where(mask, scores, torch.finfo(scores.dtype).min)
    lowest = torch.finfo(torch.float16).min
    if scores.dtype != kind:  # widened scores lie in another order than a float32 mask: it takes their way
        mask = (mask.clamp_min(lowest) if mask.dtype == torch.float32 else mask).to(kind)
    mask = F.pad(mask, (0, extra), value=lowest) if extra else mask
    return scores + mask.to(scores.dtype)
