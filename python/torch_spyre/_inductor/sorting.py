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


def _ranked_in_columns(rows, k: int, largest: bool):
    """The same in 32 bits, where what an element is compared with has to stand in a column."""
    parts = integers.digits(rows) if rows.dtype in integers.INTEGERS else [rows]

    def whole(of_parts):
        return integers.number(*of_parts, dtype=rows.dtype) if len(of_parts) > 1 else of_parts[0]

    other, mine = whole([columns.as_column(part) for part in parts]), rows.unsqueeze(-2)
    before, same = other > mine if largest else other < mine, other == mine
    if rows.dtype.is_floating_point:  # what is not a number is the largest, and equals its like
        first, then = (other, mine) if largest else (mine, other)
        before, same = before | ((first != first) & (then == then)), same | ((other != other) & (mine != mine))
    n, device = rows.shape[-1], rows.device
    ahead = before | (same & (columns.row_numbers(n, device) < columns.positions(n, device)))
    rank = torch.where(ahead, 1.0, 0.0).sum(-2, keepdim=True)
    chosen = rank == columns.row_numbers(k, device)

    def picked(part):
        return columns.as_row(torch.where(chosen, part, 0.0).sum(-1, keepdim=True))

    return whole([picked(part.unsqueeze(-2)) for part in parts]), picked(columns.positions(n, device)).to(torch.int64)


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
