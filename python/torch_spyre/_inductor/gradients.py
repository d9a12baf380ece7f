"""Gradients of operators that the card has no kernel for, written in operators that it has.

PyTorch's own forms add into places that an index names, or into slices; the card stores and does not add. Here a sum
over places is a product with a matrix of zeros and ones, whose sums are wide, or a sum of shifted images.
"""

import torch

from torch_spyre._inductor import classes

FLOATS = (torch.float16, torch.bfloat16, torch.float32)
_NONE = -(2**31)  # an index that no tensor has


def embedding(gradient, indices, rows: int, padding_idx: int):
    """What the rows of a table gather: the gradients of all places that looked them up, but for the padding row's."""
    places = torch.ops.spyre.by_class(indices.flatten(), rows, padding_idx)
    return torch.mm(places.to(gradient.dtype), gradient.reshape(-1, gradient.shape[-1]))


def _named(indices):
    """How many dimensions come before those that are named by numbers, and the numbers, one tensor for each."""
    first = next((d for d, index in enumerate(indices) if index is not None), len(indices))
    return first, [index for index in indices[first:] if index is not None]


def can_add_rows(x, indices, values) -> bool:
    """Whether elements are named by numbers for dimensions side by side, and can be told apart."""
    first, named = _named(indices)
    numbers = all(index.dtype in (torch.int32, torch.int64) for index in named)
    together = all(index is None for index in indices[first + len(named) :])
    if not named or not numbers or not together or x.dtype not in FLOATS or values.dtype != x.dtype or x.numel() == 0:
        return False
    count = torch.broadcast_shapes(*(index.shape for index in named)).numel()
    return classes.can_tell(count, x.shape[first : first + len(named)].numel())


def rows_added(x, indices, values):
    """x with values added where indices say: what ``index_put`` that accumulates means."""
    first, named = _named(indices)
    named = torch.broadcast_tensors(*named)
    shape, after = named[0].shape, first + len(named)
    extents = x.shape[first:after]
    values = values.expand(*x.shape[:first], *shape, *x.shape[after:])
    if first:  # what is named comes first
        values = values.movedim(list(range(first, first + len(shape))), list(range(len(shape))))
        rows = x.movedim(list(range(first, after)), list(range(len(named))))
        return rows_added(rows, named, values).movedim(list(range(len(named))), list(range(first, after)))
    place = None
    for index, extent in zip(named, extents, strict=True):
        index = torch.where(index < 0, index + extent, index)
        place = index if place is None else place * extent + index
    places = torch.ops.spyre.by_class(place.flatten(), extents.numel(), _NONE)
    return x + torch.mm(places.to(x.dtype), values.reshape(place.numel(), -1)).view(x.shape)


def nll_loss(gradient, x, target, weight, reduction: int, ignore_index: int, total_weight):
    """-gradient at the class that was meant, zero at all others; of a mean, a part of it."""
    gradient = gradient / total_weight if reduction == 1 else gradient
    gradient = gradient.unsqueeze(-1) if gradient.ndim else gradient
    meant = torch.ops.spyre.class_of_each(target, x.shape[1], ignore_index)
    slope = -gradient if weight is None else -gradient * weight
    return torch.where(meant, slope, 0.0)


def all_but(x, dim: int) -> list[int]:
    return [d for d in range(x.ndim) if d != dim % x.ndim]


def weight_norm(gradient, v, g, norm, dim: int):
    """Of the direction v and the length g of a weight v * g / norm(v)."""
    along = (gradient * v).sum(all_but(v, dim), keepdim=True) / norm
    return (gradient - v * (along / norm)) * (g / norm), along
