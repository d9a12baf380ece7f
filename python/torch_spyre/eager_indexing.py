"""x[i, j, ...] with several tensors of positions, as views, rows and columns of x.

Eager calls look at positions anyway, to raise for those that do not exist. What they see also tells that positions
count up, as those of a model's masks do:

    mask[rows, columns]     rows [2, 1, 1, 1] = 0, 1     columns [1, 1, 1, 12] = 0 .. 11     mask[:, None, None, :]
"""

import math

import torch


def index(x, indices):
    """The meaning of ``x[indices]`` for two or more tensors of integers; other dimensions are kept."""
    dims = [d for d, i in enumerate(indices) if i is not None]
    if len(dims) < 2 or any(indices[d].dtype not in (torch.int32, torch.int64) for d in dims) or x.numel() == 0:
        return NotImplemented
    places = [_from_the_start(indices[d], x.shape[d]) for d in dims]
    if any(place.numel() == 0 for place in places):
        return NotImplemented
    shape = torch.broadcast_shapes(*(place.shape for place in places))
    neighbours = dims == list(range(dims[0], dims[-1] + 1))
    first = dims[0] if neighbours else 0  # PyTorch puts what is indexed in front otherwise
    x = x if neighbours else x.movedim(dims, list(range(len(dims))))
    axes = [[d - len(shape) for d, n in enumerate(_aligned(place, shape)) if n > 1] for place in places]
    if len({a for own in axes for a in own}) < sum(map(len, axes)):
        return _by_number(x, first, places, shape)
    for k, place in enumerate(places):
        x = _selected(x, first + k, place.flatten())
    return _in_order(x, first, axes, shape).clone(memory_format=torch.contiguous_format)


def _from_the_start(positions, extent: int):
    """On the host, where negative ones count from the end."""
    host = positions.cpu().to(torch.int64)
    host = torch.where(host < 0, host + extent, host)
    if bool(((host < 0) | (host >= extent)).any()):
        raise IndexError("a position outside the tensor")  # the CPU says which
    return host


def _aligned(place, shape) -> list[int]:
    return [1] * (len(shape) - place.ndim) + list(place.shape)


def _selected(x, dim: int, places):
    """x at these places of a dimension: a part of it where they count up."""
    start = int(places[0])
    if bool((places == torch.arange(start, start + len(places))).all()):
        return x.narrow(dim, start, len(places))
    return x.index_select(dim, places.to(x.device))


def _in_order(x, first: int, axes, shape):
    """x with a dimension for each index, as one with the axes that these indices have among all of them."""
    own = [a for mine in axes for a in mine]
    sizes = [shape[a] for a in own]
    before, after = list(x.shape[:first]), list(x.shape[first + len(axes) :])
    x = x.reshape(before + sizes + after)
    order = sorted(range(len(own)), key=own.__getitem__)
    kept = list(range(x.ndim))
    x = x.permute(kept[:first] + [first + k for k in order] + kept[first + len(own) :])
    return x.reshape(before + list(shape) + after)


def _by_number(x, first: int, places, shape):
    """Positions that vary together: one number for each in the dimensions flattened."""
    extents = x.shape[first : first + len(places)]
    numbers = sum(place * math.prod(extents[k + 1 :]) for k, place in enumerate(places))
    numbers = numbers.expand(shape).flatten().to(x.device)
    flat = x.flatten(first, first + len(places) - 1)
    found = flat.gather(0, numbers) if flat.ndim == 1 else flat.index_select(first, numbers)
    return found.unflatten(first, shape)
