"""Scaled dot-product attention as products, a softmax and a product, over the batch axes as they are.

Scores of 16-bit attention stay float32 between the products: unscaled ones reach hundreds, where 16 bits round to
halves and a softmax makes per cents of that.
"""

import math

import torch
import torch.nn.functional as F

_KINDS = (torch.float16, torch.bfloat16, torch.float32)
_STICK = 64  # elements; widened ones are folded by whole sticks only
_LOWEST = -(2.0**32)  # of a mask in 16 bits: beside it scores vanish, and -inf is held as twice as much


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
    scores = _masked(scores, attn_mask, keys, extra, query.dtype)
    out = torch.ops.spyre.batched_matmul(torch.softmax(scores, dim=-1).to(query.dtype), value)
    nothing_allowed = _nothing_allowed(attn_mask)
    out = out if nothing_allowed is None else torch.where(nothing_allowed, 0.0, out)
    return out.flatten(-4, -3) if groups > 1 else out


def _grouped(mask, shared: int, groups: int):
    """The mask of heads [h*g] as one of [h, g]."""
    if mask is None or mask.dim() < 3:
        return mask
    return mask.unflatten(-3, (shared, groups)) if mask.shape[-3] != 1 else mask.unsqueeze(-3)


def _nothing_allowed(mask):
    """Which rows a mask forbids whole, by False or -inf: PyTorch makes them zero.

    In float16 -inf is held as a number far below finfo.min. In bfloat16 the two are held alike, and a row of either is
    what it is for finfo.min: the mean.
    """
    if mask is None or mask.dtype == torch.bfloat16:
        return None
    if mask.dtype == torch.bool:
        return torch.logical_not(mask.any(-1, keepdim=True))
    return mask.amax(-1, keepdim=True) <= (-math.inf if mask.dtype == torch.float32 else _LOWEST)


def _masked(scores, mask, keys: int, extra: int, kind):
    """Scores without those that the mask forbids, and without those of the ``extra`` columns behind the last key.

    The smallest number rather than infinity: a row that is masked everywhere stays a number.
    """
    if mask is None:
        if not extra:
            return scores
        return scores + torch.ops.spyre.padding_mask(keys + extra, keys, kind, scores.device).to(scores.dtype)
    if mask.dtype == torch.bool:
        mask = F.pad(mask, (0, extra)) if extra else mask
        return torch.where(mask, scores, torch.finfo(scores.dtype).min)
    # Columns behind the last key lie below every number of a mask: a row of the smallest ones is their keys' mean.
    if mask.dtype == torch.float32 and scores.dtype != kind:
        mask = mask.clamp_min(_LOWEST).to(
            kind
        )  # widened scores lie in another order than a float32 mask: it takes their way
    elif mask.dtype == torch.bfloat16 and extra:
        mask = mask.clamp_min(_LOWEST)
    mask = F.pad(mask, (0, extra), value=-math.inf) if extra else mask
    return scores + mask.to(scores.dtype)
