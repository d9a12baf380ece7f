"""Elements read and written at positions of their own, as choices between all pairs of an element and a position.

The card adds an index to the address of a row; it has no index for each element. Here every position along a dimension
stands beside every index, along an axis of their own, and a comparison tells which of them are meant. What an index
means more than once is added up by a sum over those meant, or is the last of them.
"""

import torch

from torch_spyre._inductor import columns, integers

_PAIRS_AT_MOST = 2**25
_EXACT = columns.ROWS_AT_MOST
_NARROW = (torch.bool, torch.float16, torch.bfloat16)


def supported(x, dim: int, index, source=None) -> bool:
    """Whether all positions can be told apart, in a reasonable number of pairs.

    Writes go to all of ``x`` but along ``dim``.
    """
    if x.ndim == 0 or index.ndim != x.ndim or x.numel() == 0 or index.numel() == 0:
        return False
    dim = dim % x.ndim
    if source is not None and any(index.shape[d] != x.shape[d] for d in range(x.ndim) if d != dim):
        return False
    if isinstance(source, torch.Tensor) and source.dtype != x.dtype:
        return False
    wide = x.dtype in (torch.float32, *integers.INTEGERS)
    n, count = x.shape[dim], index.shape[dim]
    told_apart = count <= _EXACT and (n <= _EXACT or (wide and dim == x.ndim - 1))
    return (wide or x.dtype in _NARROW) and told_apart and index.numel() * max(n, count) <= _PAIRS_AT_MOST


def can_add(x, dim: int, index) -> bool:
    return x.dtype.is_floating_point or (x.dtype in integers.INTEGERS and index.shape[dim] <= integers.EXACT_SUMS)


class _Pairs:
    """The axes [..., indices, positions, ...] of pairs along a dimension, as the type of the elements wants them.

    16-bit values stand where they are. Of 32-bit values, those along the last dimension become columns.
    """

    def __init__(self, x, dim: int, index):
        self.wide, self.dim, self.last = x.dtype == torch.float32, dim, dim == x.ndim - 1
        self.rank, self.device = x.ndim, x.device
        kind = torch.float32 if self.wide else torch.float16
        self.meant = self.indices(index.to(kind)) == self._numbers(x.shape[dim], column=not self.last)

    def _numbers(self, n: int, column: bool):
        after = [1] * (self.rank - self.dim - 1)
        if not self.wide:
            return torch.arange(n, dtype=torch.float16, device=self.device).view(n, *after)
        if not column:
            return columns.positions(n, self.device)
        return columns.row_numbers(n, self.device).view(n, *after) if after else columns.row_numbers(n, self.device)

    def indices(self, x):
        """What has an element for each index."""
        return columns.as_column(x) if self.wide and self.last else x.unsqueeze(self.dim + 1)

    def turns(self, count: int):
        """1, 2, 3, ... by index."""
        numbers = self._numbers(count, column=True) + 1.0
        return numbers if self.wide and self.last else numbers.unsqueeze(1)

    def by_index(self, x):
        """The sum over positions."""
        if self.wide and self.last:
            return columns.as_row(x.sum(-1, keepdim=True))
        return x.sum(self.dim + 1)


def _fit(x, shape):
    for d, n in enumerate(shape):
        x = x if x.shape[d] == n else x.narrow(d, 0, n)
    return x


def gather(x, dim: int, index):
    """The meaning of ``torch.gather``: [5, 6, 7] at [2, 0] gives [7, 5]."""
    if x.dtype == torch.bool:
        return gather(x.to(torch.float16), dim, index) != 0
    if x.dtype in integers.INTEGERS:
        return integers.number(*(gather(d, dim, index) for d in integers.digits(x)), dtype=x.dtype)
    dim = dim % x.ndim
    x = _fit(x, [x.shape[d] if d == dim else n for d, n in enumerate(index.shape)])
    pairs = _Pairs(x, dim, index)
    return pairs.by_index(torch.where(pairs.meant, x.unsqueeze(dim), 0.0))


def scatter(x, dim: int, index, source):
    """The meaning of ``torch.scatter``, of a tensor or a number; of several sources for a place the last one is there.

    [5, 6, 7] with [1, 2, 3] at [2, 0, 2] is [2, 6, 3]
    """
    tensor = isinstance(source, torch.Tensor)
    if x.dtype == torch.bool:
        return scatter(x.to(torch.float16), dim, index, source.to(torch.float16) if tensor else float(source)) != 0
    if x.dtype in integers.INTEGERS:
        high, low = divmod(0 if tensor else int(source), integers.DIGIT)
        of_source = integers.digits(source) if tensor else [float(low), float(high)]
        parts = zip(integers.digits(x), of_source, strict=True)
        return integers.number(*(scatter(d, dim, index, s) for d, s in parts), dtype=x.dtype)
    dim = dim % x.ndim
    pairs = _Pairs(x, dim, index)
    turns = pairs.turns(index.shape[dim])
    last = torch.where(pairs.meant, turns, 0.0).amax(dim, keepdim=True)
    if tensor:
        source = torch.where(turns == last, pairs.indices(_fit(source, index.shape)), 0.0).sum(dim)
    return torch.where(last.squeeze(dim) > 0.0, source, x)


def scatter_add(x, dim: int, index, source):
    """The meaning of ``torch.scatter_add``: [5, 6, 7] with [1, 2, 3] at [2, 0, 2] is [7, 6, 11]."""
    return x + _added(x, dim % x.ndim, index, _fit(source, index.shape))


def index_for_each(x, dim: int, index):
    """An index for each row, as one for each element of the rows ``x``."""
    dim = dim % x.ndim
    after = [1] * (x.ndim - dim - 1)
    if x.dtype in _NARROW or not after:
        return index.view(-1, *after).expand(x.shape)
    return columns.as_column(index.to(torch.float32)).view(-1, *after) + torch.zeros_like(x, dtype=torch.float32)


def _added(x, dim: int, index, source):
    if x.dtype in integers.INTEGERS:
        parts = zip(integers.digits(x), integers.digits(source), strict=True)
        return integers.number(*(_added(d, dim, index, s) for d, s in parts), dtype=x.dtype)
    pairs = _Pairs(x, dim, index)
    return torch.where(pairs.meant, pairs.indices(source), 0.0).sum(dim)
