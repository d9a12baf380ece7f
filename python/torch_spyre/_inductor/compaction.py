"""Elements that a mask keeps, side by side: eager operators whose results are as long as the values say.

Where an element goes is the number of those kept before it; the moves are those of scatter and gather.
"""

import torch


def _places(mask):
    """[no, yes, no, yes] -> [-1, 0, 0, 1]"""
    return torch.cumsum(mask, 0) - 1


def masked_select(x, mask):
    x, mask = (t.reshape(-1) for t in torch.broadcast_tensors(x, mask))
    count = int(mask.sum())
    kept = x.new_zeros(count + 1)  # what is not kept goes behind the end
    if x.numel() == 0 or count == 0:
        return x.new_empty(0)
    places = torch.where(mask, _places(mask), count)
    return torch.scatter(kept, 0, places, x).narrow(0, 0, count).clone()


def masked_scatter(x, mask, source):
    mask = mask.expand(x.shape)
    if x.ndim == 0 or x.numel() == 0 or source.dtype != x.dtype or int(mask.sum()) > source.numel():
        return NotImplemented
    width = x.shape[-1]
    if mask.stride(-1) == 0 and width > 1:  # whole rows are replaced by whole rows
        rows = mask.select(-1, 0).reshape(-1)
        places = _places(rows).clamp(min=0)
        taken = source.reshape(-1).narrow(0, 0, source.numel() // width * width).view(-1, width)
        return torch.where(mask, taken.index_select(0, places).view(x.shape), x)
    places, source = _places(mask.reshape(-1)).clamp(min=0), source.reshape(-1)
    return torch.where(mask, torch.gather(source, 0, places).view(x.shape), x)


def unique(x, sorted=True, return_inverse=False, return_counts=False):  # noqa: A002
    """Sorted elements that differ from the one before them."""
    flat = x.reshape(-1)
    if flat.numel() == 0:
        return NotImplemented
    values, order = torch.sort(flat, stable=True)
    first = torch.ones(1, dtype=torch.bool, device=x.device)
    if flat.numel() > 1:
        first = torch.cat([first, values.narrow(0, 1, flat.numel() - 1) != values.narrow(0, 0, flat.numel() - 1)])
    kept = masked_select(values, first)
    inverse = counts = torch.empty(0, dtype=torch.int64, device=x.device)
    if kept is not NotImplemented and (return_inverse or return_counts):
        number = _places(first).clone()  # side by side again, where sums left one to a stick
        back = torch.sort(order.clone(), stable=True)[1]
        inverse = torch.gather(number, 0, back).view(x.shape)
        starts = masked_select(torch.arange(flat.numel(), device=x.device), first)
        end = torch.full((1,), flat.numel(), device=x.device)
        counts = torch.cat([starts.narrow(0, 1, starts.numel() - 1), end]) - starts
    return kept if kept is NotImplemented else (kept, inverse, counts)
