"""Products of groups of rows with a matrix for each group, and counts by group: what a mixture of experts consists of.

The sizes of groups are values, and the shapes of kernels are not: every row is multiplied with the matrices of all
groups, and its own product is chosen. Rows are taken so many at a time that all their products fit, and that their
numbers are exact in 16 bits.
"""

import torch

from torch_spyre._inductor import columns, integers

_ROWS_AT_MOST = columns.ROWS_AT_MOST
_ELEMENTS_AT_MOST = 2**26
_HALVES = (torch.float16, torch.bfloat16)
_MULTIPLIED = (*_HALVES, torch.float32)


def supported(x, weight, ends, bias=None, out_dtype=None) -> bool:
    """Rows [S, K] in groups that end at ``ends`` times [E, K, N]; or, with groups of columns, [M, S] times [S, N]."""
    if x.ndim != 2 or weight.ndim not in (2, 3) or ends is None or bias is not None:
        return False
    same = x.dtype == weight.dtype and x.dtype in _MULTIPLIED and out_dtype in (None, x.dtype)
    return same and x.numel() > 0 and weight.numel() > 0


def grouped_product(x, weight, ends):
    """The meaning of ``torch._grouped_mm``. What is behind the last group is zero."""
    if weight.ndim == 2:
        return _grouped_sums(x, weight, ends)
    groups, _, width = weight.shape
    step = max(64, min(_ROWS_AT_MOST, _ELEMENTS_AT_MOST // (groups * width)))
    parts = []
    for first in range(0, x.shape[0], step):
        rows = x.narrow(0, first, min(step, x.shape[0] - first))
        mine = _members(ends, first, rows.shape[0]).unsqueeze(-1)
        products = torch.bmm(rows.expand(groups, *rows.shape), weight)
        parts.append(torch.where(mine, products, 0.0).sum(0))
    return parts[0] if len(parts) == 1 else torch.cat(parts)


def _grouped_sums(x, y, ends):
    """[M, S] times [S, N], a sum for each group of S: [E, M, N]."""
    total = None
    for first in range(0, x.shape[1], _ROWS_AT_MOST):
        count = min(_ROWS_AT_MOST, x.shape[1] - first)
        mine = _members(ends, first, count).unsqueeze(1)
        part = torch.matmul(torch.where(mine, x.narrow(1, first, count), 0.0), y.narrow(0, first, count))
        total = part if total is None else total + part
    return total


def _members(ends, first: int, count: int):
    """[E, count]: whether row ``first + i`` is in group e, the number of groups that end before it."""
    ends = (ends.to(torch.float32) - float(first)).clamp(0.0, float(count)).to(torch.float16)
    rows = torch.arange(count, dtype=torch.float16, device=ends.device)
    group = (ends.unsqueeze(-1) <= rows).to(torch.float16).sum(0)
    return torch.arange(ends.shape[0], dtype=torch.float16, device=ends.device).unsqueeze(-1) == group


def can_count(x, bins: int) -> bool:
    known = x.dtype in (torch.float32, *_HALVES, *integers.INTEGERS)
    return known and 0 < bins <= _ROWS_AT_MOST and 0 < x.numel() and x.numel() * bins <= _ELEMENTS_AT_MOST


def counts(places, bins: int):
    """How many of ``places`` are 0, 1, ... ``bins`` - 1, as float32; others count nowhere. Halves, or numbers that
    rounding to halves does not move into the range."""
    numbers = torch.arange(bins, dtype=torch.float16, device=places.device)
    return (places.flatten().to(torch.float16).unsqueeze(-1) == numbers).to(torch.float32).sum(0)


def histogram(x, bins: int, low: float, high: float):
    """The meaning of ``torch.histc``: ``bins`` intervals of equal width, the last with both its ends."""
    if low == high:
        low, high = low - 1, high + 1
    numbers = x.to(torch.float32)
    place = torch.floor((numbers - low) * float(bins) / float(high - low))
    place = torch.where(numbers == high, bins - 1.0, place)
    inside = (numbers >= low) & (numbers <= high)
    return counts(torch.where(inside, place, -1.0), bins).to(x.dtype)
