"""The largest or smallest elements of rows, in order, from operations that the card has.

Two ways. Elements are ranked: an element's rank is the number of those before it, all pairs at once. What has too many
pairs is taken one by one: find the extreme, note it, cross it out. Both are stable and exact.
"""

import math

import torch

from torch_spyre._inductor import columns, integers

RANKED_AT_MOST = 1024  # whole numbers up to here are exact in the card's 16-bit format
_PAIRS_AT_MOST = 2**24
_ONE_BY_ONE_AT_MOST = 64
_POSITIONS_AT_MOST = 2**23  # twice as many are exact in float32


def _can_rank(x, dim) -> bool:
    n = x.shape[dim]
    ranked = (torch.float16, torch.float32, *integers.INTEGERS)
    return x.dtype in ranked and n <= RANKED_AT_MOST and x.numel() * n <= _PAIRS_AT_MOST


def supported(x, k: int, dim: int) -> bool:
    if x.ndim == 0 or x.numel() == 0:
        return False
    if not -x.ndim <= dim < x.ndim or not 0 < k <= x.shape[dim]:
        return False
    one_by_one = x.dtype.is_floating_point and k <= _ONE_BY_ONE_AT_MOST and x.shape[dim] <= _POSITIONS_AT_MOST
    return _can_rank(x, dim) or one_by_one


def first_sorted(x, k: int, dim: int, largest: bool):
    """The first k of the sorted elements along ``dim``, and their positions; of equals the earlier comes first.

    [3, 9, 3, 5], k = 3, largest: [9, 5, 3] from [1, 3, 0]
    """
    rows = x.movedim(dim, -1)
    ranked = _ranked if x.dtype == torch.float16 else _ranked_in_columns
    rows = rows if x.dtype == torch.float16 else rows.contiguous()
    found = (ranked if _can_rank(x, dim) else _one_by_one)(rows, k, largest)
    return tuple(t.movedim(-1, dim).contiguous() for t in found)


def _ramp(count: int, like):
    return torch.arange(count, dtype=like.dtype, device=like.device)


def _ranked(rows, k: int, largest: bool):
    positions = _ramp(rows.shape[-1], rows)
    other, mine = rows.unsqueeze(-1), rows.unsqueeze(-2)
    # What is not a number is the largest.
    other_nan, mine_nan = other != other, mine != mine
    before = (other > mine) | (other_nan & ~mine_nan) if largest else (other < mine) | (mine_nan & ~other_nan)
    equal = (other == mine) | (other_nan & mine_nan)
    ahead = before | (equal & (positions[:, None] < positions))
    rank = ahead.to(rows.dtype).sum(-2, keepdim=True)
    chosen = rank == _ramp(k, rows)[:, None]
    values = torch.where(chosen, mine, 0.0).sum(-1)
    return values, torch.where(chosen, positions, 0.0).sum(-1).to(torch.int64)


def _keys(rows) -> list:
    """What is compared, the first part first: integers as two digits, of which the lower is not negative."""
    if rows.dtype not in integers.INTEGERS:
        return [rows]
    low, high = integers.digits(rows)
    under = low < 0.0
    return [torch.where(under, high - 1.0, high), torch.where(under, low + float(integers.DIGIT), low)]


def _compared(other, mine, largest: bool):
    """Which of the others come before, and which are the same. What is not a number is the largest, and like others."""
    first, then = (other, mine) if largest else (mine, other)
    before = (first > then) | ((first != first) & (then == then))
    return before, (other == mine) | ((other != other) & (mine != mine))


def _ranked_in_columns(rows, k: int, largest: bool):
    """The same in 32 bits, where what an element is compared with has to stand in a column."""
    keys, n, device = _keys(rows), rows.shape[-1], rows.device
    ahead = columns.row_numbers(n, device) < columns.positions(n, device)
    for key in reversed(keys):
        before, same = _compared(columns.as_column(key), key.unsqueeze(-2), largest)
        ahead = before | (same & ahead)
    chosen = torch.where(ahead, 1.0, 0.0).sum(-2, keepdim=True) == columns.row_numbers(k, device)

    def picked(part):
        return columns.as_row(torch.where(chosen, part, 0.0).sum(-1, keepdim=True))

    parts = [picked(key.unsqueeze(-2)) for key in keys]
    values = integers.number(*reversed(parts), dtype=rows.dtype) if len(parts) > 1 else parts[0]
    return values, picked(columns.positions(n, device)).to(torch.int64)


def _one_by_one(rows, k: int, largest: bool):
    left = rows.to(torch.float32) if largest else -rows.to(torch.float32)
    n = left.shape[-1]
    positions, places = _ramp(n, left), _ramp(k, left)
    # What is not a number is the largest: it stands for an infinity, and comes before the real ones, or after them.
    nan = left != left
    behind = ~nan if largest else nan
    left = torch.where(nan, math.inf if largest else -math.inf, left)
    order = torch.where(behind, positions + n, positions)
    values = indices = torch.zeros((*left.shape[:-1], k), dtype=torch.float32, device=rows.device)
    free = None
    for place in range(k):
        extreme = left.amax(-1, keepdim=True)
        # Crossed out is an infinity that others may be, too: only what is free counts.
        met = left == extreme if free is None else (left == extreme) & free
        at = torch.where(met, order, float(2 * n)).amin(-1, keepdim=True)
        here = places == place
        values, indices = torch.where(here, extreme, values), torch.where(here, at, indices)
        others = order != at
        left = torch.where(others, left, -math.inf)
        free = others if free is None else free & others
    is_behind = indices >= n
    is_nan = ~is_behind if largest else is_behind
    values = torch.where(is_nan, math.nan, values if largest else -values)
    indices = torch.where(is_behind, indices - n, indices)
    return values.to(rows.dtype), indices.to(torch.int64)
