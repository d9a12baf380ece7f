"""Running sums, from operations that the card has.

Along a dimension other than the last, rows are added to rows: each is a sum of twice as many after every step. Along
the last, every sum has its own row of what it adds up. No sum passes through fewer bits than its type has: a product
with a triangle of ones, in 16 bits, is for counts that 16 bits hold.
"""

import torch

from torch_spyre._inductor import columns, integers

BLOCK = integers.EXACT_SUMS  # elements that are summed pair by pair; the sums of blocks follow in steps
_EXACT = columns.ROWS_AT_MOST
_PAIRS_AT_MOST = 2**27
_HALVES = (torch.float16, torch.bfloat16)


def supported(x, dim: int, dtype) -> bool:
    if x.ndim == 0 or x.numel() == 0 or not -x.ndim <= dim < x.ndim or x.numel() * BLOCK > _PAIRS_AT_MOST:
        return False
    whole = x.dtype in (torch.bool, *integers.INTEGERS)
    summed = integers.INTEGERS if whole else (x.dtype, torch.float32)
    return (whole or x.dtype in (torch.float32, *_HALVES)) and dtype in (None, *summed)


def running_sums(x, dim: int, dtype=None):
    """The meaning of ``torch.cumsum``: [3, 1, 4] gives [3, 4, 8]."""
    whole = not x.dtype.is_floating_point
    dtype = dtype or (torch.int64 if whole else x.dtype)
    if x.dtype in _HALVES and dtype == x.dtype and x.shape[dim] <= _EXACT and x.numel() * x.shape[dim] <= 2**24:
        return _of_halves(x.movedim(dim, -1)).movedim(-1, dim)
    if dim % x.ndim != x.ndim - 1:
        return _along_rows(x.to(dtype if whole else torch.float32), dim).to(dtype)
    if x.dtype == torch.bool and x.shape[-1] <= _EXACT:
        return _counted(x).to(dtype)
    if whole:
        return _along_last(integers.digits(x.to(torch.int64)), dtype)
    return _along_last([x.to(torch.float32)], dtype).to(dtype)


def _counted(x):
    steps = torch.arange(x.shape[-1], dtype=torch.float16, device=x.device)
    return torch.matmul(x.to(torch.float16), (steps[:, None] <= steps).to(torch.float16)).to(torch.int64)


def _of_halves(rows):
    steps = torch.arange(rows.shape[-1], dtype=torch.float16, device=rows.device)
    return torch.where(steps[:, None] >= steps, rows.unsqueeze(-2), 0.0).sum(-1)


def _along_rows(x, dim: int):
    """[a, b, c, d] -> [a, a+b, b+c, c+d] -> [a, a+b, a+b+c, a+b+c+d]"""
    n, step = x.shape[dim], 1
    while step < n:
        later = x.narrow(dim, step, n - step) + x.narrow(dim, 0, n - step)
        x = torch.cat([x.narrow(dim, 0, step), later], dim)
        step *= 2
    return x


def _number(digits: list, dtype):
    return integers.number(*digits, dtype=dtype) if dtype in integers.INTEGERS else digits[0]


def _along_last(digits: list, dtype):
    """Sums of numbers whose digits are float32, to be ``dtype``."""
    n = digits[0].shape[-1]
    if n <= BLOCK:
        return _number([_of_pairs(d) for d in digits], dtype)
    rest = -n % BLOCK
    padded = [torch.nn.functional.pad(d, (0, rest)) if rest else d for d in digits]
    blocks = [d.unflatten(-1, (-1, BLOCK)) for d in padded]
    sums = _number([b.sum(-1, keepdim=True) for b in blocks], dtype)
    before = torch.cat([torch.zeros_like(sums.narrow(-2, 0, 1)), sums.narrow(-2, 0, sums.shape[-2] - 1)], -2)
    inside = _number([_of_pairs(b) for b in blocks], dtype)
    return (inside + _along_rows(before, -2)).flatten(-2).narrow(-1, 0, n).contiguous()


def _of_pairs(x):
    """A sum for every row of a triangle."""
    n = x.shape[-1]
    triangle = columns.row_numbers(n, x.device) >= columns.positions(n, x.device)
    sums = torch.where(triangle, x.unsqueeze(-2), 0.0).sum(-1, keepdim=True)
    return columns.as_row(sums)
