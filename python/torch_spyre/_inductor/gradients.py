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


def can_add_rows(x, indices, values) -> bool:
    """Whether whole rows are named, by numbers for each of the first dimensions."""
    numbers = all(i is not None and i.dtype in (torch.int32, torch.int64) for i in indices)
    if not numbers or not indices or x.dtype not in FLOATS or values.dtype != x.dtype or x.numel() == 0:
        return False
    count = torch.broadcast_shapes(*(i.shape for i in indices)).numel()
    return classes.can_tell(count, x.shape[: len(indices)].numel())


def rows_added(x, indices, values):
    """x with values added to the rows that indices name: what ``index_put`` that accumulates means."""
    named = x.shape[: len(indices)]
    indices = torch.broadcast_tensors(*indices)
    place = None
    for index, extent in zip(indices, named, strict=True):
        index = torch.where(index < 0, index + extent, index)
        place = index if place is None else place * extent + index
    values = values.expand(*place.shape, *x.shape[len(indices) :]).reshape(place.numel(), -1)
    places = torch.ops.spyre.by_class(place.flatten(), named.numel(), _NONE)
    return x + torch.mm(places.to(x.dtype), values).view(x.shape)


def nll_loss(gradient, x, target, weight, reduction: int, ignore_index: int, total_weight):
    """-gradient at the class that was meant, zero at all others; of a mean, a part of it."""
    gradient = gradient / total_weight if reduction == 1 else gradient
    gradient = gradient.unsqueeze(-1) if gradient.ndim else gradient
    meant = torch.ops.spyre.class_of_each(target, x.shape[1], ignore_index)
    slope = -gradient if weight is None else -gradient * weight
    return torch.where(meant, slope, 0.0)


def layer_norm(gradient, x, normalized_shape, mean, rstd, weight, wanted):
    """Of the input, the weight and the bias; None for what is not wanted."""
    outer = list(range(x.ndim - len(normalized_shape)))
    inner = list(range(len(outer), x.ndim))

    def total(values):
        return values.sum(outer) if outer else values.clone()

    normal = (x - mean) * rstd
    of_input = None
    if wanted[0]:
        slope = gradient if weight is None else gradient * weight
        along = (slope * normal).mean(inner, keepdim=True)
        of_input = (slope - slope.mean(inner, keepdim=True) - normal * along) * rstd
    of_weight = total(gradient * normal) if wanted[1] and weight is not None else None
    return of_input, of_weight, total(gradient) if wanted[2] else None


def all_but(x, dim: int) -> list[int]:
    return [d for d in range(x.ndim) if d != dim % x.ndim]


def weight_norm(gradient, v, g, norm, dim: int):
    """Of the direction v and the length g of a weight v * g / norm(v)."""
    along = (gradient * v).sum(all_but(v, dim), keepdim=True) / norm
    return (gradient - v * (along / norm)) * (g / norm), along
