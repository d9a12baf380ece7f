"""Which class an index means, for every class at once: rows of zeros and a one.

Comparisons of 16-bit values are the only ones whose operands the card repeats in every direction. Whole numbers up to
1024 are exact in them, so a larger one is two numbers: 5000 is 4 and 904.

Compiled programs call these as operators of their own (customops.py): indices come in 32 bits, and narrowed inside of a
larger graph they would leave it in an order that nothing can be read beside.
"""

import functools

import torch

_DIGIT = 1024
CLASSES_AT_MOST = _DIGIT * _DIGIT
_PAIRS_AT_MOST = 2**27


def can_tell(count: int, classes: int) -> bool:
    """Whether so many indices stand beside all classes in a reasonable number of pairs."""
    return 0 < classes <= CLASSES_AT_MOST and 0 < count * classes <= _PAIRS_AT_MOST


def _digits(index, classes: int) -> list:
    """Halves that are equal to those of a class where the index is; an index that is none is equal to none."""
    if classes <= _DIGIT:
        return [index.to(torch.float16)]
    return [(index // _DIGIT).to(torch.float16), (index % _DIGIT).to(torch.float16)]


def _digits_of_all(classes: int, device) -> list:
    """The same of 0, 1, 2, ... Halves from the start: what is narrowed to halves has sticks in another order."""
    if classes <= _DIGIT:
        return [torch.arange(classes, dtype=torch.float16, device=device)]
    rows = torch.arange(-(-classes // _DIGIT), dtype=torch.float16, device=device).unsqueeze(-1)
    columns = torch.arange(_DIGIT, dtype=torch.float16, device=device)
    grids = [rows + torch.zeros_like(columns), torch.zeros_like(rows) + columns]
    return [grid.flatten().narrow(0, 0, classes) for grid in grids]


def _equal(these, those):
    return functools.reduce(torch.logical_and, (a == b for a, b in zip(these, those, strict=True)))


def _without(index, ignored: int, classes: int):
    """The index with another number that is no class in place of the one that shall be none."""
    return torch.where(index == ignored, -1, index) if 0 <= ignored < classes else index


def check(index, classes: int, ignored: int) -> None:
    host = index.cpu()
    wrong = host[((host < 0) | (host >= classes)) & (host != ignored)]
    if wrong.numel():
        raise IndexError(f"Target {wrong[0].item()} is out of bounds.")  # PyTorch's words


def of_each(index, classes: int, ignored: int = -1):
    """[..., classes]: whether an index means a class. [2, 0] of 3 is [[0, 0, 1], [1, 0, 0]]; the ignored one none."""
    digits = _digits(_without(index, ignored, classes), classes)
    return _equal([d.unsqueeze(-1) for d in digits], _digits_of_all(classes, index.device))


def by_class(index, classes: int, ignored: int = -1):
    """The same of one dimension, [classes, indices]."""
    digits = _digits(_without(index, ignored, classes), classes)
    return _equal([d.unsqueeze(-1) for d in _digits_of_all(classes, index.device)], digits)
