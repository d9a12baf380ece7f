"""32-bit values across sticks: the card turns sticks of 16-bit values only, and repeats along a stick what is alone in
one. A column is a tensor [..., n, 1], an element to a stick; a reduction along the stick makes it, and a choice from
the diagonal puts its elements side by side again.
"""

import torch

ROWS_AT_MOST = 1024  # whole numbers up to here are exact in the card's 16-bit format


def row_numbers(n: int, device):
    """The column 0, 1, 2, ... as float32."""
    rows = torch.arange(n, dtype=torch.float16, device=device)[:, None].expand(n, 64)
    return rows.clone(memory_format=torch.contiguous_format).to(torch.float32).amax(-1, keepdim=True)


def positions(n: int, device):
    """0, 1, 2, ... as float32."""
    return torch.arange(n, dtype=torch.float32, device=device)


def _diagonal(n: int, device):
    return row_numbers(n, device) == positions(n, device)


def as_column(x):
    """[..., n] -> [..., n, 1]"""
    return torch.where(_diagonal(x.shape[-1], x.device), x.unsqueeze(-2), 0.0).sum(-1, keepdim=True)


def as_row(column):
    """[..., n, 1] -> [..., n]"""
    return torch.where(_diagonal(column.shape[-2], column.device), column, 0.0).sum(-2)
