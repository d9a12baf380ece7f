"""Elements read and written at positions of their own, as choices between all pairs of an element and a position.

The card adds an index to the address of a row; it has no index for each element. Here every position along a dimension
stands beside every index, along an axis of their own, and a comparison tells which of them are meant. What an index
means more than once is added up by a sum over those meant, or is the last of them.
"""

import torch

_EXACT = 1024  # whole numbers up to here are exact in the card's 16-bit format
_PAIRS_AT_MOST = 2**24
_HALVES = (torch.float16, torch.bfloat16)


def supported(x, dim: int, index, source=None) -> bool:
    """Whether 16 bits hold the elements and tell all positions apart, in a reasonable number of pairs.

    Writes go to all of ``x`` but along ``dim``.
    """
    if x.ndim == 0 or index.ndim != x.ndim or x.numel() == 0 or index.numel() == 0:
        return False
    others = [d for d in range(x.ndim) if d != dim % x.ndim]
    whole = source is None or all(index.shape[d] == x.shape[d] for d in others)
    of_a_kind = not isinstance(source, torch.Tensor) or source.dtype == x.dtype
    n = x.shape[dim]
    return (
        x.dtype in (torch.bool, *_HALVES)
        and n <= _EXACT >= index.shape[dim]
        and index.numel() * n <= _PAIRS_AT_MOST
        and whole
        and of_a_kind
    )


def _numbers(n: int, dim: int, like):
    """0, 1, 2, ... along one dimension."""
    ramp = torch.arange(n, dtype=torch.float16, device=like.device)
    return ramp.view(n, *[1] * (like.ndim - dim - 1))


def _meant(n: int, dim: int, index):
    """[..., indices, positions, ...]: whether the index is the position."""
    return index.unsqueeze(dim + 1).to(torch.float16) == _numbers(n, dim, index)


def _fit(x, shape):
    for d, n in enumerate(shape):
        x = x if x.shape[d] == n else x.narrow(d, 0, n)
    return x


def gather(x, dim: int, index):
    """The meaning of ``torch.gather``: [5, 6, 7] at [2, 0] gives [7, 5]."""
    if x.dtype == torch.bool:
        return gather(x.to(torch.float16), dim, index) != 0
    dim = dim % x.ndim
    x = _fit(x, [x.shape[d] if d == dim else n for d, n in enumerate(index.shape)])
    return torch.where(_meant(x.shape[dim], dim, index), x.unsqueeze(dim), 0.0).sum(dim + 1)


def scatter(x, dim: int, index, source):
    """The meaning of ``torch.scatter``, of a tensor or a number; of several sources for a place the last one is there.

    [5, 6, 7] with [1, 2, 3] at [2, 0, 2] is [2, 6, 3]
    """
    if x.dtype == torch.bool:
        source = source.to(torch.float16) if isinstance(source, torch.Tensor) else float(source)
        return scatter(x.to(torch.float16), dim, index, source) != 0
    dim = dim % x.ndim
    meant = _meant(x.shape[dim], dim, index)
    if not isinstance(source, torch.Tensor):
        return torch.where(meant.to(torch.float16).amax(dim) > 0.0, source, x)
    turn = _numbers(index.shape[dim], dim, index).unsqueeze(1) + 1.0
    last = torch.where(meant, turn, 0.0).amax(dim, keepdim=True)
    written = torch.where(meant & (turn == last), _fit(source, index.shape).unsqueeze(dim + 1), 0.0).sum(dim)
    return torch.where(last.squeeze(dim) > 0.0, written, x)


def scatter_add(x, dim: int, index, source):
    """The meaning of ``torch.scatter_add``: [5, 6, 7] with [1, 2, 3] at [2, 0, 2] is [7, 6, 11]."""
    dim = dim % x.ndim
    added = torch.where(_meant(x.shape[dim], dim, index), _fit(source, index.shape).unsqueeze(dim + 1), 0.0)
    return x + added.sum(dim)
